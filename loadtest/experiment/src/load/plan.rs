// SPDX-License-Identifier: Apache-2.0
//! The plan that weir-replay made of a scenario, as it writes it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// Stages, priorities and thresholds of a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Plan {
    pub(super) scenario: String,
    pub(super) objective: String,
    pub(super) seed: u64,
    pub(super) capacity: Capacity,
    pub(super) deadline_ms: f64,
    /// The most important first.
    pub(super) priorities: Vec<String>,
    pub(super) stages: Vec<Stage>,
    pub(super) requests: u64,
    pub(super) mean_run_ms: f64,
    pub(super) thresholds: Vec<Threshold>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Capacity {
    pub(super) cores: Option<f64>,
    pub(super) requests_per_s: f64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Stage {
    pub(super) name: String,
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    pub(super) measured: bool,
    pub(super) requests: u64,
    /// Seconds on a core that its requests need.
    pub(super) run_s: f64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Threshold {
    pub(super) stage: String,
    /// None: of all.
    pub(super) priority: Option<String>,
    pub(super) figure: Figure,
    #[serde(flatten)]
    pub(super) bound: Bound,
    pub(super) objective: String,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Figure {
    Success,
    P50Ms,
    P95Ms,
    P99Ms,
    Goodput,
}

/// The limit of a figure.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum Bound {
    #[serde(rename = "at_least")]
    Least(f64),
    #[serde(rename = "at_most")]
    Most(f64),
    /// So many times the figure of another stage, at most.
    #[serde(rename = "at_most_times")]
    Times { factor: f64, stage: String },
}

impl Plan {
    pub(super) fn read(file: &Path) -> Result<Self> {
        let text = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("reading {}", file.display()))
    }

    /// Seconds.
    pub(super) fn length(&self) -> f64 {
        self.stages.last().map_or(0.0, |stage| stage.to_s)
    }

    pub(super) fn measured(&self) -> impl Iterator<Item = &Stage> {
        self.stages.iter().filter(|stage| stage.measured)
    }
}

impl Stage {
    /// What its cores could do; none where they are not known.
    pub(super) fn core_seconds(&self, capacity: &Capacity) -> Option<f64> {
        capacity
            .cores
            .map(|cores| cores * (self.to_s - self.from_s))
    }
}
