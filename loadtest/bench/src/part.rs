// SPDX-License-Identifier: Apache-2.0
//! The parts of the bench.

use anyhow::Result;
use clap::ValueEnum;

use crate::section::Section;
use crate::{Bench, inference, request};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// CPU and latency of a request, by who chooses its host
    Request,
    /// The same prompts to emulated hosts of a language model, by who chooses the host
    Inference,
}

impl Part {
    pub(crate) const ALL: [Self; 2] = [Self::Request, Self::Inference];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Inference => "inference",
        }
    }

    pub(crate) fn measure(self, bench: &Bench) -> Result<Vec<Section>> {
        match self {
            Self::Request => request::measure(bench),
            Self::Inference => inference::measure(bench),
        }
    }
}
