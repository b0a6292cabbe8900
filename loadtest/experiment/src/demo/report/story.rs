// SPDX-License-Identifier: Apache-2.0
//! A run and all that came of it.

use crate::demo::kept::{Run, Told};
use crate::demo::results::Figures;

#[derive(Clone, Copy)]
pub(in crate::demo) struct Story<'a> {
    pub(in crate::demo) run: &'a Run,
    /// In the order in which they were run.
    pub(in crate::demo) ways: &'a [Told],
}

impl Story<'_> {
    pub(super) fn figures(&self) -> impl Iterator<Item = &Figures> {
        self.ways.iter().map(|told| &told.figures)
    }

    /// When the last way had its last answer, in seconds since its first request.
    pub(super) fn end(&self) -> f64 {
        let samples = self.ways.iter().flat_map(|told| &told.samples);
        let last = samples.map(|sample| sample.at).fold(0.0, f64::max);
        last.max(self.run.seconds)
    }
}
