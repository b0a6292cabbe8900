// SPDX-License-Identifier: Apache-2.0
//! What is kept of a run: enough to tell of it again.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::demo::envoys::{self, Usage};
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

/// A way and what came of it: a line of `rounds.jsonl`, and files in its folder.
#[derive(Serialize, Deserialize)]
pub struct Told {
    pub(super) name: String,
    /// Its folder in the run's.
    pub(super) folder: String,
    /// weir-control's overload policy; none without weir-control.
    pub(super) overload: Option<String>,
    /// In the order of the samples.
    pub(super) hosts: Vec<SocketAddr>,
    /// Share of the machine's cores' time while it was sent, in 0..=1.
    pub(super) busy: Option<f64>,
    /// How far the replayer was behind, in milliseconds: 99th percentile.
    pub(super) lag: f64,
    pub(super) envoys: Usage,
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
    /// Every way that the run's folder keeps.
    pub(super) fn read_all(folder: &Path) -> Result<Vec<Self>> {
        let mut ways: Vec<Self> = driver::read_lines(&folder.join(driver::ROUNDS))?;
        for told in &mut ways {
            let folder = folder.join(&told.folder);
            told.records = replay::read(&folder.join(REQUESTS))?;
            told.samples = driver::read_lines(&folder.join(sampler::FILE))?;
            told.figures = Figures::new(&told.name, &told.records);
        }
        ensure!(!ways.is_empty(), "{}: no way was run", folder.display());
        Ok(ways)
    }

    /// Its line in the table of what Envoys did.
    pub(super) fn envoys(&self) -> envoys::Row<'_> {
        envoys::Row {
            way: &self.name,
            requests: self.figures.all.requests,
            outside: self.figures.outside,
            usage: &self.envoys,
        }
    }

    /// How busy it was with the way.
    pub(super) fn machine(&self) -> String {
        let busy = self.busy.map(|share| 100.0 * share);
        let busy = busy.map(|share| format!("the machine's cores {share:.0} % busy, "));
        let (busy, lag) = (busy.unwrap_or_default(), self.lag);
        format!("{busy}replayer at most {lag:.0} ms behind for 99 %")
    }

    /// Whether weir-control told levels of admission.
    pub(super) fn has_levels(&self) -> bool {
        self.samples.iter().any(|sample| sample.level.is_some())
    }
}

#[cfg(test)]
impl Told {
    /// A way of three hosts that nobody ran.
    pub(super) fn made_up(name: &str, overload: Option<&str>, busy: f64, lag: f64) -> Self {
        let address = |n: u16| SocketAddr::from(([127, 0, 0, 1], 9000 + n));
        Self {
            name: name.to_owned(),
            folder: name.replace([' ', '+'], "-"),
            overload: overload.map(str::to_owned),
            hosts: (0..3).map(address).collect(),
            busy: Some(busy),
            lag,
            envoys: Usage::default(),
            records: Vec::new(),
            samples: Vec::new(),
            figures: Figures::default(),
        }
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
