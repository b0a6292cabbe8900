// SPDX-License-Identifier: Apache-2.0
//! The parts of the bench.

use anyhow::Result;
use clap::ValueEnum;

use crate::Bench;
use crate::push;
use crate::section::Section;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    Push,
}

impl Part {
    pub(crate) const ALL: [Self; 1] = [Self::Push];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
        }
    }

    pub(crate) fn measure(self, bench: &Bench) -> Result<Vec<Section>> {
        match self {
            Self::Push => push::measure(bench),
        }
    }
}
