// SPDX-License-Identifier: Apache-2.0
//! What was made of a scenario, for those who send it and those who judge it.

use serde::Serialize;

/// Beside the requests: their stages, and what is wanted of the answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
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

/// What the fleet can do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Capacity {
    /// Cores, if they are known.
    pub cores: Option<f64>,
    /// Requests a second.
    pub requests_per_s: f64,
}

/// A stage with its moments.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Threshold {
    /// Whose.
    pub stage: String,
    /// None: of all.
    pub priority: Option<String>,
    /// `success`, `p50_ms`, `p95_ms`, `p99_ms` or `goodput`.
    pub figure: &'static str,
    /// What is asked of it.
    #[serde(flatten)]
    pub bound: Bound,
    /// Why, in words.
    pub objective: String,
}

/// What is asked of a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
