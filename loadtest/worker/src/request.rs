// SPDX-License-Identifier: Apache-2.0
//! From request headers to a job.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;

use crate::executor::{self, CLASSES};

/// Longest key, in bytes. A key names a project, it does not carry one.
pub const MAX_KEY_BYTES: usize = 4096;
/// Longest run a request may ask for.
pub const MAX_RUN: Duration = Duration::from_secs(3600);

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

    fn class(&self, name: Option<&str>) -> u8 {
        name.and_then(|name| self.by_name.get(name))
            .copied()
            .unwrap_or(self.default)
    }
}

/// A header that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("header {header}: {reason}")]
pub struct BadHeader {
    header: &'static str,
    reason: String,
}

/// Reads the job and its modelled run time; a missing run time is `default_run`.
pub fn parse(
    headers: &HeaderMap,
    priorities: &Priorities,
    default_run: Duration,
) -> Result<(executor::Request, Duration), BadHeader> {
    let key = text(headers, "x-weir-key")?;
    if let Some(key) = key {
        check_key(key)?;
    }
    let class = priorities.class(text(headers, "x-weir-priority")?);
    let bytes = number(headers, "x-emulate-bytes")?.unwrap_or(0);
    let run = number(headers, "x-emulate-run-us")?.map_or(default_run, Duration::from_micros);
    if run > MAX_RUN {
        return Err(BadHeader {
            header: "x-emulate-run-us",
            reason: format!("more than {} s", MAX_RUN.as_secs()),
        });
    }
    let key = key.map(Arc::from);
    Ok((executor::Request { key, bytes, class }, run))
}

fn check_key(key: &str) -> Result<(), BadHeader> {
    let reason = match key.len() {
        0 => "is empty".to_owned(),
        n if n > MAX_KEY_BYTES => format!("{n} bytes, the limit is {MAX_KEY_BYTES}"),
        _ => return Ok(()),
    };
    Err(BadHeader {
        header: "x-weir-key",
        reason,
    })
}

fn text<'a>(headers: &'a HeaderMap, header: &'static str) -> Result<Option<&'a str>, BadHeader> {
    let Some(value) = headers.get(header) else {
        return Ok(None);
    };
    std::str::from_utf8(value.as_bytes())
        .map(Some)
        .map_err(|_| BadHeader {
            header,
            reason: "is not UTF-8".to_owned(),
        })
}

fn number(headers: &HeaderMap, header: &'static str) -> Result<Option<u64>, BadHeader> {
    let Some(value) = text(headers, header)? else {
        return Ok(None);
    };
    value.parse().map(Some).map_err(|_| BadHeader {
        header,
        reason: "is not a whole number in 0..2^64".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn priorities() -> Priorities {
        let list = ["high=0", "low=16"].map(|p| p.parse().unwrap());
        Priorities::new(list.to_vec(), "low").unwrap()
    }

    fn parse_one(
        name: &'static str,
        value: &[u8],
    ) -> Result<(executor::Request, Duration), BadHeader> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_bytes(value).unwrap());
        parse(&headers, &priorities(), Duration::from_millis(1))
    }

    #[test]
    fn a_request_without_headers_is_a_low_job_without_data() {
        let (job, run) = parse(&HeaderMap::new(), &priorities(), Duration::ZERO).unwrap();
        assert_eq!((job.key, job.bytes, job.class), (None, 0, 16));
        assert_eq!(run, Duration::ZERO);
    }

    #[test]
    fn an_unknown_priority_counts_as_the_default() {
        assert_eq!(parse_one("x-weir-priority", b"high").unwrap().0.class, 0);
        assert_eq!(parse_one("x-weir-priority", b"urgent").unwrap().0.class, 16);
    }

    #[test]
    fn every_malformed_header_is_named_in_its_error() {
        let long = vec![b'k'; MAX_KEY_BYTES + 1];
        let cases: [(&'static str, &[u8]); 7] = [
            ("x-weir-key", b""),
            ("x-weir-key", b"\xff\xfe"),
            ("x-weir-key", &long),
            ("x-weir-priority", b"\xff"),
            ("x-emulate-bytes", b"-1"),
            ("x-emulate-run-us", b"1.5"),
            ("x-emulate-run-us", b"99999999999999"),
        ];
        for (name, value) in cases {
            let error = parse_one(name, value).unwrap_err().to_string();
            assert!(error.starts_with(&format!("header {name}: ")), "{error}");
        }
    }

    #[test]
    fn a_priority_must_be_a_name_and_a_class_below_32() {
        for bad in ["high", "=1", "high=32", "high=x"] {
            assert!(bad.parse::<Priority>().is_err(), "{bad}");
        }
        assert!(Priorities::new(vec!["a=1".parse().unwrap()], "b").is_err());
    }
}
