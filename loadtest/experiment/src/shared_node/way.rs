// SPDX-License-Identifier: Apache-2.0
//! The ways to share the node.

use serde::Serialize;

/// Who decides which cores the service has and which the batch job.
#[derive(Clone, Copy, Debug, clap::ValueEnum, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The administrator: one core each.
    Static,
    /// The kernel: both run on both.
    Shared,
    /// weir-governor, by the service's CPU use.
    Governor,
    /// weir-governor, also told of the host's row by weir-control.
    GovernorMesh,
}

impl Way {
    /// Whether weir-governor runs.
    #[must_use]
    pub fn is_governed(self) -> bool {
        matches!(self, Self::Governor | Self::GovernorMesh)
    }
}
