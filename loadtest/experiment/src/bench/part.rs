// SPDX-License-Identifier: Apache-2.0
//! The parts of the bench.

use anyhow::Result;
use clap::ValueEnum;

use crate::bench::Bench;
use crate::section::Section;
use crate::{decide, filter, inference, push, request};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// CPU and latency of a request, by who chooses its host
    Request,
    /// Nanoseconds of a decision, by policy and size of the fleet
    Decide,
    /// Fuel, host calls and memory of the filter
    Filter,
    /// From a change at a host to the sidecars that decide by it; a thousand sidecars
    Push,
    /// The same prompts to emulated hosts of a language model, by who chooses the host
    Inference,
}

impl Part {
    pub(crate) const ALL: [Self; 5] = [
        Self::Request,
        Self::Decide,
        Self::Filter,
        Self::Push,
        Self::Inference,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Decide => "decide",
            Self::Filter => "filter",
            Self::Push => "push",
            Self::Inference => "inference",
        }
    }

    pub(crate) fn measure(self, bench: &Bench) -> Result<Vec<Section>> {
        match self {
            Self::Request => request::measure(bench),
            Self::Decide => decide::measure(bench),
            Self::Filter => filter::measure(bench),
            Self::Push => push::measure(bench),
            Self::Inference => inference::measure(bench),
        }
    }
}
