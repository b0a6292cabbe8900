// SPDX-License-Identifier: Apache-2.0
//! The parts of the bench.

use anyhow::Result;
use clap::ValueEnum;

use crate::section::Section;
use crate::{Bench, request};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// CPU and latency of a request, by who chooses its host
    Request,
}

impl Part {
    pub(crate) const ALL: [Self; 1] = [Self::Request];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
        }
    }

    pub(crate) fn measure(self, bench: &Bench) -> Result<Vec<Section>> {
        match self {
            Self::Request => request::measure(bench),
        }
    }
}
