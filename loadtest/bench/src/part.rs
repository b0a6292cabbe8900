// SPDX-License-Identifier: Apache-2.0
//! The parts of the bench.

use anyhow::Result;
use clap::ValueEnum;

use crate::Bench;
use crate::section::Section;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {}

impl Part {
    pub(crate) const ALL: [Self; 0] = [];

    pub(crate) fn name(self) -> &'static str {
        match self {}
    }

    pub(crate) fn measure(self, _bench: &Bench) -> Result<Vec<Section>> {
        match self {}
    }
}
