// SPDX-License-Identifier: Apache-2.0
//! What was made of a scenario, for those who send it and those who judge it.

use serde::{Deserialize, Serialize};

/// Beside the requests: their stages, and what is wanted of the answers.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Plan {
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's words.
    pub objective: String,
    /// Of every random choice.
    pub seed: u64,
    /// What it was made for.
    pub capacity: Capacity,
    /// An answer counts if it comes within this time of the moment when its request was due.
    pub deadline_ms: f64,
    /// The most important first, as weir-filter and weir-worker have `high` and `low`; others by name.
    pub priorities: Vec<String>,
    /// One after another, from 0.
    pub stages: Vec<Timed>,
    /// In all.
    pub requests: usize,
    /// Mean time on a core.
    pub mean_run_ms: f64,
    /// What is wanted.
    pub thresholds: Vec<Threshold>,
}

impl Plan {
    /// Of all stages, in seconds.
    #[must_use]
    pub fn length(&self) -> f64 {
        self.stages.last().map_or(0.0, |stage| stage.to_s)
    }

    /// The stages whose figures are told.
    pub fn measured(&self) -> impl Iterator<Item = &Timed> {
        self.stages.iter().filter(|stage| stage.measured)
    }
}

impl Timed {
    /// Seconds on a core that the fleet offers in it; none where the cores are not known.
    #[must_use]
    pub fn core_seconds(&self, capacity: &Capacity) -> Option<f64> {
        capacity
            .cores
            .map(|cores| cores * (self.to_s - self.from_s))
    }
}

/// What the fleet can do.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
pub struct Capacity {
    /// Cores, if they are known.
    pub cores: Option<f64>,
    /// Requests a second.
    pub requests_per_s: f64,
}

/// A stage with its moments.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Timed {
    /// Its name.
    pub name: String,
    /// When it begins, in seconds.
    pub from_s: f64,
    /// When it ends.
    pub to_s: f64,
    /// Whether its figures are told.
    pub measured: bool,
    /// How many begin in it.
    pub requests: usize,
    /// Seconds on a core that they need.
    pub run_s: f64,
}

/// What is wanted of the answers of a stage.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Threshold {
    /// Whose.
    pub stage: String,
    /// None: of all.
    pub priority: Option<String>,
    /// Of which figure it is asked.
    pub figure: Figure,
    /// What is asked of it.
    #[serde(flatten)]
    pub bound: Bound,
    /// Why, in words.
    pub objective: String,
}

/// A figure of the answers of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Share with a good answer in time.
    Success,
    /// Quantiles of the time that good answers took, in milliseconds.
    P50Ms,
    /// See [`Self::P50Ms`].
    P95Ms,
    /// See [`Self::P50Ms`].
    P99Ms,
    /// What the good answers needed of the cores, as a share of these.
    Goodput,
}

/// What is asked of a figure.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub enum Bound {
    /// No less.
    #[serde(rename = "at_least")]
    Least(f64),
    /// No more.
    #[serde(rename = "at_most")]
    Most(f64),
    /// No more than so many times what it is in another stage.
    #[serde(rename = "at_most_times")]
    Times {
        /// How many times.
        factor: f64,
        /// In which.
        stage: String,
    },
}
