// SPDX-License-Identifier: Apache-2.0
//! `feeds.json`: what a folder holds.

use serde::{Deserialize, Serialize};

/// What a folder holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// It was made with this seed.
    pub seed: u64,
    /// By name.
    pub projects: Vec<Project>,
}

/// One project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Project {
    /// Its name.
    pub project: String,
    /// Its items.
    pub items: u64,
    /// Size of its object, as stored.
    pub bytes: u64,
    /// Files under `rules/`, one a channel.
    pub rules: Vec<String>,
}
