// SPDX-License-Identifier: Apache-2.0
//! The ways to share the node.

use serde::Serialize;

/// Who decides which cores the service has and which the batch job.
#[derive(Clone, Copy, Debug, clap::ValueEnum, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Whoever set it up: one core each.
    Static,
    /// The kernel: both run on both.
    Shared,
    /// weir-governor, by the service's CPU use.
    Governor,
    /// weir-governor, also told of the host's row by weir-control.
    GovernorMesh,
}

impl Way {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 4] = [
        Self::Static,
        Self::Shared,
        Self::Governor,
        Self::GovernorMesh,
    ];

    /// As tables and file names say it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Shared => "shared",
            Self::Governor => "governor",
            Self::GovernorMesh => "governor-mesh",
        }
    }

    /// Whether weir-governor runs.
    #[must_use]
    pub fn is_governed(self) -> bool {
        matches!(self, Self::Governor | Self::GovernorMesh)
    }
}
