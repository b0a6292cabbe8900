// SPDX-License-Identifier: Apache-2.0
//! The parts of the bench.

use anyhow::Result;
use clap::ValueEnum;

use crate::section::Section;
use crate::{Bench, decide, filter};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Nanoseconds of a decision, by policy and size of the fleet
    Decide,
    /// Fuel, host calls and memory of the filter
    Filter,
}

impl Part {
    pub(crate) const ALL: [Self; 2] = [Self::Decide, Self::Filter];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Decide => "decide",
            Self::Filter => "filter",
        }
    }

    pub(crate) fn measure(self, bench: &Bench) -> Result<Vec<Section>> {
        match self {
            Self::Decide => decide::measure(bench),
            Self::Filter => filter::measure(bench),
        }
    }
}
