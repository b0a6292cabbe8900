// SPDX-License-Identifier: Apache-2.0
//! What `weir-sim cell` said of each cell.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::experiments::cell::{Cell, Setting};
use crate::experiments::store::Store;

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Outcome {
    pub(super) high: Group,
    pub(super) low: Group,
    pub(super) hit_ratio: f64,
    pub(super) shed: u64,
    /// Hosts of a language model have none.
    pub(super) goodput: Option<f64>,
    /// Only of hosts with cores, and where sidecars choose.
    pub(super) load_deviation: Option<f64>,
}

/// Of one priority, in seconds.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Group {
    pub(super) requests: u64,
    pub(super) failed: u64,
    pub(super) duration_s: Row,
    pub(super) wait_s: Row,
    pub(super) host_duration_s: Row,
    pub(super) host_wait_s: Row,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Row {
    pub(super) mean: f64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
}

impl Outcome {
    fn requests(&self) -> f64 {
        (self.high.requests + self.low.requests).max(1) as f64
    }

    /// Attempts that were refused, for each request.
    pub(super) fn shed_a_request(&self) -> f64 {
        self.shed as f64 / self.requests()
    }

    /// The share of requests that got no answer.
    pub(super) fn failed(&self) -> f64 {
        (self.high.failed + self.low.failed) as f64 / self.requests()
    }
}

/// By the name of the setting, a seed after the other.
pub(super) struct Outcomes(BTreeMap<String, Vec<Outcome>>);

/// The mean over seeds, and the least and the most of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) mean: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Option<Self> {
        let all = || values.iter().copied();
        (!values.is_empty()).then(|| Self {
            mean: all().sum::<f64>() / values.len() as f64,
            least: all().fold(f64::INFINITY, f64::min),
            most: all().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

impl Outcomes {
    pub(super) fn read(store: &Store, cells: &[Cell]) -> Result<Self> {
        let mut all: BTreeMap<String, Vec<Outcome>> = BTreeMap::new();
        for cell in cells {
            let file = store.file(cell);
            let named = || format!("reading {}", file.display());
            let text = fs::read(&file).with_context(named)?;
            let outcome = serde_json::from_slice(&text).with_context(named)?;
            all.entry(cell.setting.name()).or_default().push(outcome);
        }
        Ok(Self(all))
    }

    #[cfg(test)]
    pub(super) fn of(all: impl IntoIterator<Item = (Setting, Vec<Outcome>)>) -> Self {
        let named = all.into_iter().map(|(setting, of)| (setting.name(), of));
        Self(named.collect())
    }

    /// A figure over the seeds of a setting; none where it was not simulated.
    pub(super) fn spread(
        &self,
        setting: &Setting,
        figure: impl Fn(&Outcome) -> f64,
    ) -> Option<Spread> {
        let values: Vec<f64> = self.0.get(&setting.name())?.iter().map(figure).collect();
        Spread::of(&values)
    }

    /// The figure's mean over that of another setting, and the least and the most of one seed.
    pub(super) fn ratio(
        &self,
        setting: &Setting,
        to: &Setting,
        figure: impl Fn(&Outcome) -> f64,
    ) -> Option<Spread> {
        let (ours, theirs) = (self.0.get(&setting.name())?, self.0.get(&to.name())?);
        let pairs = ours.iter().zip(theirs);
        let by_seed: Vec<f64> = pairs
            .map(|(ours, theirs)| figure(ours) / figure(theirs))
            .collect();
        let mean = self.spread(setting, &figure)?.mean / self.spread(to, &figure)?.mean;
        Spread::of(&by_seed).map(|spread| Spread { mean, ..spread })
    }
}
