// SPDX-License-Identifier: Apache-2.0
//! Counters, gauges and histograms, one set per host as in Envoy.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::abi::Status;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Counter = 0,
    Gauge = 1,
    Histogram = 2,
}

impl Kind {
    pub(crate) fn from_abi(kind: u32) -> Result<Self, Status> {
        match kind {
            0 => Ok(Self::Counter),
            1 => Ok(Self::Gauge),
            2 => Ok(Self::Histogram),
            _ => Err(Status::BadArgument),
        }
    }
}

/// The metrics of a [`Host`](crate::Host): VMs that define the same name add to the same metric.
/// Clones show the same metrics.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Rc<RefCell<Values>>);

/// One value for a counter or gauge, all that was recorded for a histogram.
type Values = BTreeMap<(Kind, String), Vec<u64>>;

impl Metrics {
    /// The value of a counter; 0 if no module defined it.
    pub fn counter(&self, name: &str) -> u64 {
        self.value(Kind::Counter, name)
    }

    /// The value of a gauge; 0 if no module defined it.
    pub fn gauge(&self, name: &str) -> u64 {
        self.value(Kind::Gauge, name)
    }

    /// Everything that was recorded in a histogram, in order.
    pub fn histogram(&self, name: &str) -> Vec<u64> {
        self.0
            .borrow()
            .get(&(Kind::Histogram, name.to_owned()))
            .cloned()
            .unwrap_or_default()
    }

    /// The names of all metrics that were defined, sorted by kind and name.
    pub fn names(&self) -> Vec<String> {
        self.0
            .borrow()
            .keys()
            .map(|(_, name)| name.clone())
            .collect()
    }

    /// Sets a counter or gauge, defined or not.
    pub(crate) fn set(&self, kind: Kind, name: &str, value: u64) {
        self.0
            .borrow_mut()
            .insert((kind, name.to_owned()), vec![value]);
    }

    fn value(&self, kind: Kind, name: &str) -> u64 {
        self.0
            .borrow()
            .get(&(kind, name.to_owned()))
            .and_then(|values| values.last().copied())
            .unwrap_or(0)
    }

    pub(crate) fn define(&self, kind: Kind, name: &str) {
        let empty = if kind == Kind::Histogram {
            vec![]
        } else {
            vec![0]
        };
        self.0
            .borrow_mut()
            .entry((kind, name.to_owned()))
            .or_insert(empty);
    }

    fn update(&self, kind: Kind, name: &str, change: impl FnOnce(&mut u64)) {
        if let Some(value) = self
            .0
            .borrow_mut()
            .get_mut(&(kind, name.to_owned()))
            .and_then(|v| v.last_mut())
        {
            change(value);
        }
    }
}

/// The metric ids of one VM: the kind is in the two low bits.
#[derive(Debug, Default)]
pub(crate) struct MetricIds {
    names: BTreeMap<u32, (Kind, String)>,
    defined: [u32; 3],
}

impl MetricIds {
    /// Each definition gets a new id, also of a name that has one.
    pub(crate) fn define(&mut self, metrics: &Metrics, kind: Kind, name: &str) -> u32 {
        metrics.define(kind, name);
        self.defined[kind as usize] += 4;
        let id = self.defined[kind as usize] + kind as u32;
        self.names.insert(id, (kind, name.to_owned()));
        id
    }

    pub(crate) fn increment(&self, metrics: &Metrics, id: u32, by: i64) -> Result<(), Status> {
        if id & 3 >= Kind::Histogram as u32 {
            return Err(Status::BadArgument);
        }
        match self.names.get(&id).ok_or(Status::NotFound)? {
            (Kind::Counter, _) if by <= 0 => return Err(Status::BadArgument),
            (kind, name) => {
                metrics.update(*kind, name, |value| *value = value.wrapping_add_signed(by))
            }
        }
        Ok(())
    }

    /// Adds to a counter, sets a gauge, records in a histogram.
    pub(crate) fn record(&self, metrics: &Metrics, id: u32, value: u64) -> Result<(), Status> {
        match self.names.get(&id).ok_or(Status::NotFound)? {
            (Kind::Counter, name) => {
                metrics.update(Kind::Counter, name, |v| *v = v.wrapping_add(value))
            }
            (Kind::Gauge, name) => metrics.update(Kind::Gauge, name, |v| *v = value),
            (Kind::Histogram, name) => {
                metrics
                    .0
                    .borrow_mut()
                    .entry((Kind::Histogram, name.clone()))
                    .or_default()
                    .push(value);
            }
        }
        Ok(())
    }

    pub(crate) fn get(&self, metrics: &Metrics, id: u32) -> Result<u64, Status> {
        if id & 3 >= Kind::Histogram as u32 {
            return Err(Status::BadArgument);
        }
        let (kind, name) = self.names.get(&id).ok_or(Status::NotFound)?;
        Ok(metrics.value(*kind, name))
    }
}
