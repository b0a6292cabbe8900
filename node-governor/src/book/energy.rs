// SPDX-License-Identifier: Apache-2.0
//! Energy and good answers by class.

use std::time::Duration;

use crate::energy::Ledger;
use crate::sensed::{FUNCTIONS, Sensed};

/// Names of what belongs to no class; no class may have them.
pub const OTHER: &str = "other";
/// See [`OTHER`].
pub const SHARED: &str = "shared";

/// A hot function's class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Several functions may have the same.
    pub name: String,
    /// A call that takes longer is no good answer; none: every one is.
    pub good_within: Option<Duration>,
}

/// Where the whole is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Counted by RAPL's packages.
    Rapl,
    /// MODELLED: what [`crate::energy::Power`] says.
    #[default]
    Model,
}

impl Source {
    /// As the metrics say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rapl => "rapl",
            Self::Model => "model",
        }
    }
}

/// By hot function; those of one class are added up for whoever is shown them.
#[derive(Clone, Debug, Default)]
pub struct EnergyBook {
    /// Of each function.
    pub classes: Vec<Class>,
    /// Where the whole is from.
    pub source: Source,
    /// Who had how much.
    pub ledger: Ledger,
    /// Calls that ended in time.
    pub good: [u64; FUNCTIONS],
}

impl EnergyBook {
    /// Counts the calls of a tick.
    pub fn answered(&mut self, sensed: &Sensed) {
        for call in &sensed.finished {
            let class = self.classes.get(call.function);
            let within = class.and_then(|class| class.good_within);
            if let Some(good) = self.good.get_mut(call.function) {
                *good += u64::from(within.is_none_or(|within| call.took <= within));
            }
        }
    }

    /// The functions by class, in the order of the first of each.
    pub fn by_class(&self) -> Vec<(&str, Vec<usize>)> {
        let mut classes: Vec<(&str, Vec<usize>)> = Vec::new();
        for (function, class) in self.classes.iter().enumerate() {
            match classes.iter_mut().find(|(name, _)| *name == class.name) {
                Some((_, functions)) => functions.push(function),
                None => classes.push((&class.name, vec![function])),
            }
        }
        classes
    }
}
