// SPDX-License-Identifier: Apache-2.0
//! Everything that is kept of a run, read.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::demo::kept::{Run, Way};
use crate::demo::replay::{REQUESTS, records};
use crate::demo::results::{Figures, Record};
use crate::demo::sampler::samples::{self, Sample};
use crate::demo::workload::PRIORITIES;

/// A run and all that came of it.
pub(super) struct Story {
    pub(super) run: Run,
    /// In the order in which they were run.
    pub(super) ways: Vec<Told>,
}

/// One way and what came of it.
pub(super) struct Told {
    pub(super) way: Way,
    pub(super) records: Vec<Record>,
    pub(super) samples: Vec<Sample>,
    pub(super) figures: Figures,
}

impl Story {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut run = Run::read(folder)?;
        ensure!(!run.ways.is_empty(), "{}: no way was run", folder.display());
        let ways = std::mem::take(&mut run.ways).into_iter();
        let ways = ways.map(|way| {
            let folder = folder.join(&way.folder);
            let records = records::read(&folder.join(REQUESTS))?;
            let file = folder.join(samples::FILE);
            let samples = fs::read_to_string(&file).map_err(anyhow::Error::from);
            let samples = samples.and_then(|text| samples::parse(&text));
            let samples = samples.with_context(|| format!("reading {}", file.display()))?;
            Ok(Told::new(way, records, samples))
        });
        let ways = ways.collect::<Result<_>>()?;
        Ok(Self { run, ways })
    }

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

impl Told {
    pub(super) fn new(way: Way, records: Vec<Record>, samples: Vec<Sample>) -> Self {
        let figures = Figures::new(&way.name, &PRIORITIES, &records, way.busy, way.lag);
        Self {
            way,
            records,
            samples,
            figures,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.way.name
    }

    /// Whether weir-control told levels of admission.
    pub(super) fn has_levels(&self) -> bool {
        self.samples.iter().any(|sample| sample.level.is_some())
    }
}
