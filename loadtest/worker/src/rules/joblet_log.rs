// SPDX-License-Identifier: Apache-2.0
//! One line of JSON for every joblet that has ended, for those who want to know where time went.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tracing::warn;
use weir_executor::Kind;

use super::task::Task;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When it ended, microseconds since the host began.
    pub ended_us: u64,
    /// Its kind, see [`Kind::name`].
    pub kind: String,
    /// See [`Task::name`].
    pub of: String,
    /// How long it held its cores, microseconds.
    pub ran_us: u64,
    /// The cores it held.
    pub cores: usize,
    /// Size of its result; none if it failed.
    pub bytes: Option<u64>,
}

/// Writes the log. What cannot be written is lost with a warning, once: a job matters more.
#[derive(Debug)]
pub struct JobletLog {
    out: Option<File>,
}

impl JobletLog {
    /// Begins a new file. A line is there as soon as its joblet has ended.
    pub fn create(path: &Path) -> io::Result<Self> {
        let out = Some(File::create(path)?);
        Ok(Self { out })
    }

    pub(crate) fn write(
        &mut self,
        now: Duration,
        kind: Kind,
        work: &Task,
        lasted: Duration,
        cores: usize,
        bytes: Option<u64>,
    ) {
        let line = Line {
            ended_us: micros(now),
            kind: kind.name().to_owned(),
            of: work.name(),
            ran_us: micros(lasted),
            cores,
            bytes,
        };
        let Some(out) = &mut self.out else {
            return;
        };
        let text = serde_json::to_string(&line).map_err(io::Error::from);
        let written = text.and_then(|text| out.write_all(format!("{text}\n").as_bytes()));
        if let Err(error) = written {
            warn!(%error, "the joblet log ends here");
            self.out = None;
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
