// SPDX-License-Identifier: Apache-2.0
//! What is kept of a run: enough to tell of it again.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::demo::results::Figures;
use crate::driver;
use crate::origin::Origin;
use crate::replay::{self, REQUESTS, Record};
use crate::sampler::{self, Sample};

/// The file of what is the same for all ways, in the run's folder.
const FILE: &str = "run.json";

/// What is the same for all ways.
#[derive(Serialize, Deserialize)]
pub(super) struct Run {
    #[serde(flatten)]
    pub(super) origin: Origin,
    /// The hosts slept instead of working.
    pub(super) emulated: bool,
    /// Seconds of sending for each way.
    pub(super) seconds: f64,
    /// Seconds until a caller gives up.
    pub(super) deadline: f64,
    /// Of each host.
    pub(super) cores: usize,
}

/// One way of a run: a line of `rounds.jsonl`.
#[derive(Serialize, Deserialize)]
pub(super) struct Way {
    pub(super) name: String,
    /// Its folder in the run's.
    pub(super) folder: String,
    /// weir-control's overload policy; none without weir-control.
    pub(super) overload: Option<String>,
    /// In the order of the samples.
    pub(super) hosts: Vec<SocketAddr>,
    /// Share of the machine's cores' time while it was sent.
    pub(super) busy: Option<f64>,
    /// How far the replayer was behind, in milliseconds: 99th percentile.
    pub(super) lag: f64,
}

/// A way and what came of it.
#[derive(Serialize)]
pub struct Told {
    #[serde(flatten)]
    pub(super) way: Way,
    #[serde(skip)]
    pub(super) records: Vec<Record>,
    #[serde(skip)]
    pub(super) samples: Vec<Sample>,
    #[serde(skip)]
    pub(super) figures: Figures,
}

impl Run {
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        driver::write_json(&folder.join(FILE), self)
    }

    /// serde_json names line and column of what it does not understand.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(FILE);
        let text = fs::read(&file)
            .with_context(|| format!("reading {}: is this a run's folder?", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("reading {}", file.display()))
    }
}

impl Told {
    pub(super) fn new(way: Way, records: Vec<Record>, samples: Vec<Sample>) -> Self {
        let figures = Figures::new(&way.name, &records, way.busy, way.lag);
        Self {
            way,
            records,
            samples,
            figures,
        }
    }

    /// What the run's folder keeps of a way.
    pub(super) fn read(way: Way, folder: &Path) -> Result<Self> {
        let folder = folder.join(&way.folder);
        let records = replay::read(&folder.join(REQUESTS))?;
        let samples = driver::read_lines(&folder.join(sampler::FILE))?;
        Ok(Self::new(way, records, samples))
    }

    pub(super) fn name(&self) -> &str {
        &self.way.name
    }

    /// Whether weir-control told levels of admission.
    pub(super) fn has_levels(&self) -> bool {
        self.samples.iter().any(|sample| sample.level.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_run_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Run::read(folder.path()).err().unwrap();
        assert!(format!("{error:#}").contains("run.json"));
        fs::write(folder.path().join(FILE), "{\n\"begun\": soon}").unwrap();
        let error = format!("{:#}", Run::read(folder.path()).err().unwrap());
        assert!(error.contains("line 2 column"), "{error}");
    }
}
