// SPDX-License-Identifier: Apache-2.0
//! Counters and gauges: known to the process by a number, and to each configuration by one of Envoy's. Envoy takes
//! definitions only while a configuration is made, and a label's values when a metric changes.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};

use weir_filter::host::{Change, MetricType};

use crate::abi::{Configuration, Metric};

/// Metrics of the process; the filter has some sixty.
const MAX: usize = 256;

/// A metric, or one value of its label.
#[derive(Clone, PartialEq, Eq)]
pub struct Known {
    /// It is what was set last or the sum, and may fall.
    pub is_gauge: bool,
    /// Without its label.
    pub name: String,
    /// Name and value.
    pub label: Option<(String, String)>,
}

/// Metrics that any VM has made known.
pub(crate) struct Metrics {
    known: RwLock<Vec<Known>>,
    values: [AtomicI64; MAX],
}

/// What Envoy calls them for one configuration, in their order: its number, the label's value, whether it is a gauge.
#[derive(Default)]
pub(crate) struct Numbers(Vec<Option<(usize, Option<String>, bool)>>);

/// What Envoy was told of each.
#[derive(Default)]
pub(crate) struct Told(Vec<i64>);

impl Metrics {
    pub(crate) const fn new() -> Self {
        Self {
            known: RwLock::new(Vec::new()),
            values: [const { AtomicI64::new(0) }; MAX],
        }
    }

    /// Makes one known, or finds it.
    pub(crate) fn define(
        &self,
        metric_type: MetricType,
        name: &str,
        label: Option<(&str, &str)>,
    ) -> Option<u32> {
        let wanted = Known {
            is_gauge: metric_type == MetricType::Gauge,
            name: name.into(),
            label: label.map(|(label, value)| (label.into(), value.into())),
        };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|known| *known == wanted);
        let at = at.or_else(|| {
            let is_room = known.len() < MAX;
            is_room.then(|| known.push(wanted))?;
            Some(known.len() - 1)
        })?;
        Some(at as u32)
    }

    /// Makes all that are known, known to Envoy.
    pub(crate) fn numbers(&self, configuration: Configuration) -> Numbers {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut families: Vec<(&str, Option<usize>)> = Vec::new();
        let mut numbers = Vec::with_capacity(known.len());
        for metric in known.iter() {
            let there = families.iter().find(|(name, _)| *name == metric.name);
            let number = there.map_or_else(
                || {
                    let label = metric.label.iter().map(|(label, _)| label.as_str());
                    let labels: Vec<&str> = label.collect();
                    configuration.define(metric.is_gauge, &metric.name, &labels)
                },
                |(_, number)| *number,
            );
            families.push((&metric.name, number));
            let value = metric.label.as_ref().map(|(_, value)| value.clone());
            numbers.push(number.map(|number| (number, value, metric.is_gauge)));
        }
        Numbers(numbers)
    }

    /// Changes one here. Envoy hears of it by [`Self::tell`]: each time it is told costs as much as a decision.
    pub(crate) fn change(&self, id: u32, change: Change) {
        let Some(value) = self.values.get(id as usize) else {
            return;
        };
        match change {
            Change::To(to) => value.store(to as i64, Ordering::Relaxed),
            Change::By(by) => {
                value.fetch_add(by, Ordering::Relaxed);
            }
        }
    }

    /// Tells Envoy what has changed since it was told last.
    pub(crate) fn tell(&self, configuration: Configuration, numbers: &Numbers, told: &mut Told) {
        told.0.resize(numbers.0.len().max(told.0.len()), 0);
        for ((number, told), value) in numbers.0.iter().zip(&mut told.0).zip(&self.values) {
            let value = value.load(Ordering::Relaxed);
            let before = std::mem::replace(told, value);
            let Some((number, label, is_gauge)) = number else {
                continue;
            };
            let (kind, by) = match is_gauge {
                true => (Metric::Gauge, value.max(0)),
                false => (Metric::Counter, value.saturating_sub(before)),
            };
            if value != before {
                let label = label.as_deref().map(|label| [label]);
                let label = label.as_ref().map_or(&[][..], |label| label);
                configuration.change(kind, *number, label, by.max(0) as u64);
            }
        }
    }

    /// Every one, with its value.
    pub(crate) fn all(&self) -> Vec<(Known, u64)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let values = self
            .values
            .iter()
            .map(|value| value.load(Ordering::Relaxed));
        let all = known.iter().cloned().zip(values);
        all.map(|(known, value)| (known, value.max(0) as u64))
            .collect()
    }

    /// The value of one, over the process.
    pub(crate) fn get(&self, id: u32) -> Option<u64> {
        let value = self.values.get(id as usize)?.load(Ordering::Relaxed);
        Some(value.max(0) as u64)
    }
}
