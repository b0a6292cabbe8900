// SPDX-License-Identifier: Apache-2.0
//! The parts of the bench.

use anyhow::Result;
use clap::ValueEnum;

use crate::bench::section::Section;
use crate::bench::setting::Setting;
use crate::bench::{decide, inference, push, request};

/// A part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// CPU and latency of a request, by who chooses its host
    Request,
    /// CPU of a request with less and less of the filter, in both of its shells
    Layers,
    /// Nanoseconds of a decision, by policy and size of the fleet
    Decide,
    /// Fuel, host calls and memory of the filter
    Filter,
    /// From a change at a host to the sidecars that decide by it; a thousand sidecars
    Push,
    /// The same prompts to emulated hosts of a language model, by who chooses the host
    Inference,
    /// The same at several loads, from 0.6 of what the hosts can do to 1.2: only where it is named
    InferenceLoads,
    /// The same, where picker or weir-control is killed in the middle: only where it is named
    InferenceKilled,
    /// The same with more than the hosts can do, a part of it important: only where it is named
    InferencePriorities,
    /// The same with prompts that have nothing in common: only where it is named
    InferenceKeyless,
    /// One caller and eight in the trace's own time, ten minutes: only where it is named
    InferenceCallers,
}

impl Part {
    pub(crate) fn measure(self, setting: &Setting) -> Result<Vec<Section>> {
        match self {
            Self::Request => request::measure(setting),
            Self::Layers => request::layers(setting),
            Self::Decide => decide::measure(setting),
            #[cfg(any(test, feature = "harness"))]
            Self::Filter => crate::bench::filter::measure(setting),
            #[cfg(not(any(test, feature = "harness")))]
            Self::Filter => anyhow::bail!("it is built without the feature `harness`"),
            Self::Push => push::measure(setting),
            Self::Inference => inference::measure(setting),
            Self::InferenceLoads => inference::loads(setting),
            Self::InferenceKilled => inference::killed(setting),
            Self::InferencePriorities => inference::priorities(setting),
            Self::InferenceKeyless => inference::keyless(setting),
            Self::InferenceCallers => inference::callers(setting),
        }
    }

    /// Whether it is measured where none is named.
    pub(crate) fn is_usual(self) -> bool {
        !matches!(
            self,
            Self::InferenceLoads
                | Self::InferenceKilled
                | Self::InferencePriorities
                | Self::InferenceKeyless
                | Self::InferenceCallers
        )
    }
}
