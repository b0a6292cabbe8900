// SPDX-License-Identifier: Apache-2.0
//! A scenario as it is written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::plan::Figure;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) objective: String,
    pub(super) deadline_ms: f64,
    pub(super) made: Option<Made>,
    pub(super) trace: Option<Trace>,
    #[serde(default)]
    pub(super) thresholds: Vec<Threshold>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Made {
    pub(super) stages: Vec<Stage>,
    /// Shares by name.
    pub(super) priorities: BTreeMap<String, f64>,
    /// 0: nobody is named.
    pub(super) users: u32,
    pub(super) keys: Keys,
    pub(super) run_ms: Distribution,
    /// Of each key's data.
    pub(super) bytes: Distribution,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stage {
    pub(super) name: String,
    pub(super) duration_s: f64,
    pub(super) rate: Rate,
    /// The rate at the end, if it is another.
    pub(super) to: Option<Rate>,
    /// Whether its figures are told.
    #[serde(default = "measured")]
    pub(super) measured: bool,
}

fn measured() -> bool {
    true
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Rate {
    OfCapacity(f64),
    PerSecond(f64),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    pub(super) number: u32,
    pub(super) zipf: f64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Distribution {
    Fixed(f64),
    /// From, to.
    Uniform([f64; 2]),
    /// Its mean.
    Exponential(f64),
}

/// Minutes of the Azure Functions trace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Trace {
    /// Relative to the scenario, as `keys`.
    pub(super) counts: PathBuf,
    pub(super) keys: PathBuf,
    pub(super) from_minute: u64,
    pub(super) minutes: u64,
    pub(super) speed_up: f64,
    /// Share of the invocations.
    pub(super) sample: f64,
    /// Run times over what the cores offer.
    pub(super) utilisation: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Threshold {
    pub(super) stage: String,
    /// None: of all.
    pub(super) priority: Option<String>,
    pub(super) figure: Figure,
    pub(super) at_least: Option<f64>,
    pub(super) at_most: Option<f64>,
    pub(super) at_most_times: Option<Times>,
    pub(super) objective: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Times {
    pub(super) factor: f64,
    pub(super) stage: String,
}
