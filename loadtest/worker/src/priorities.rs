// SPDX-License-Identifier: Apache-2.0
//! Names of priorities.

use std::collections::BTreeMap;
use std::str::FromStr;

use weir_executor::CLASSES;

/// One `NAME=CLASS` of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priority {
    /// The name callers send.
    pub name: String,
    /// Its class, 0..=31.
    pub class: u8,
}

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, class) = text.split_once('=').ok_or("expected NAME=CLASS")?;
        let class: u8 = class
            .parse()
            .map_err(|_| format!("class {class:?} is not a number"))?;
        if name.is_empty() {
            return Err("the name is empty".to_owned());
        }
        if usize::from(class) >= CLASSES {
            return Err(format!("class {class} is not in 0..=31"));
        }
        Ok(Self {
            name: name.to_owned(),
            class,
        })
    }
}

/// Priority names and the class of whoever sends none of them.
#[derive(Debug, Clone)]
pub struct Priorities {
    by_name: BTreeMap<String, u8>,
    default: u8,
}

impl Priorities {
    /// Refuses a default that is not among the names.
    pub fn new(list: Vec<Priority>, default: &str) -> Result<Self, String> {
        let by_name: BTreeMap<_, _> = list.into_iter().map(|p| (p.name, p.class)).collect();
        let default = *by_name
            .get(default)
            .ok_or_else(|| format!("the default priority {default:?} is not one of the names"))?;
        Ok(Self { by_name, default })
    }

    /// Every class that has a name, once, in order.
    #[must_use]
    pub fn classes(&self) -> Vec<u8> {
        let mut classes: Vec<_> = self.by_name.values().copied().collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// The class of a name that callers may send.
    pub fn known(&self, name: &str) -> Result<u8, String> {
        self.by_name.get(name).copied().ok_or_else(|| {
            let names: Vec<_> = self.by_name.keys().map(String::as_str).collect();
            format!("{name:?} is not one of {}", names.join(", "))
        })
    }

    /// The class of a name, or the default one.
    #[must_use]
    pub fn class(&self, name: Option<&str>) -> u8 {
        name.and_then(|name| self.by_name.get(name))
            .copied()
            .unwrap_or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_must_be_a_name_and_a_class_below_32() {
        for bad in ["high", "=1", "high=32", "high=x"] {
            assert!(bad.parse::<Priority>().is_err(), "{bad}");
        }
        assert!(Priorities::new(vec!["a=1".parse().unwrap()], "b").is_err());
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones_or_counts_as_the_default() {
        let list = ["high=0", "low=16"].map(|p| p.parse().unwrap());
        let priorities = Priorities::new(list.to_vec(), "low").unwrap();
        assert_eq!(priorities.known("high"), Ok(0));
        let error = priorities.known("urgent").unwrap_err();
        assert_eq!(error, "\"urgent\" is not one of high, low");
        assert_eq!(priorities.class(Some("urgent")), 16);
        assert_eq!(priorities.class(None), 16);
    }
}
