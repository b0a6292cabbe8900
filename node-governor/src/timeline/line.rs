// SPDX-License-Identifier: Apache-2.0
//! A line of the file, as JSON. What has not changed is left out; a line `start` says everything.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Of one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Line {
    /// Milliseconds since 1970.
    pub at: u64,
    /// A governor has started, or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// By name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub jobs: BTreeMap<String, Job>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
    /// The governor has ended as asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end: bool,
}

/// What does not change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Start {
    /// Of the machine, as `0-3`.
    pub cores: String,
    /// That the service's latency shall stay under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ms: Option<f64>,
    /// In their order.
    pub jobs: Vec<Named>,
    /// The same governor goes on in a new file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
}

/// A job's name and kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Named {
    pub name: String,
    pub queue: String,
    pub threads: u32,
}

/// Which cores the service has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Service {
    /// As `0-1`; empty where it lives on another node.
    pub cores: String,
    /// The reason's name.
    pub why: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pressed: bool,
}

/// How far a job is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    /// The state's name.
    pub state: String,
    /// Where it runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cores: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Of the time since the sample before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sample {
    /// Cores that the service used, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// The highest tail latency that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail_ms: Option<f64>,
}
