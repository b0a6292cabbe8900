// SPDX-License-Identifier: Apache-2.0
//! Medeiros, *Profile-guided frequency scaling for search workloads*, 2020: what it says, and what the model says.

pub mod experiments;
pub mod facts;
pub mod fit;
pub mod report;
pub mod shards;

/// Of the 99th percentile, in seconds (chapter 4).
pub const DEADLINE_S: f64 = 1.0;
