// SPDX-License-Identifier: Apache-2.0
//! One line of JSON for every joblet that has ended, for those who want to know where time went.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tracing::warn;
use weir_executor::Kind;

use crate::task::Task;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When it ended, microseconds since the host began.
    pub ended_us: u64,
    /// Its kind, see [`Kind::name`].
    pub kind: String,
    /// The project of a FeedSource; project/digest of the rules of SharedOperators and Operators;
    /// the session of an OutputFeed.
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
    out: Option<BufWriter<File>>,
}

impl JobletLog {
    /// Begins a new file; what is written reaches it at the latest when the log is dropped.
    pub fn create(path: &Path) -> io::Result<Self> {
        let out = BufWriter::new(File::create(path)?);
        Ok(Self { out: Some(out) })
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
            of: match work {
                Task::Fetch(object) => object.project.to_string(),
                Task::Apply { rules, project } => {
                    format!("{project}/{:032x}", u128::from_be_bytes(rules.id()))
                }
                Task::Answer { session, .. } => session.to_string(),
            },
            ran_us: micros(lasted),
            cores,
            bytes,
        };
        let Some(out) = &mut self.out else {
            return;
        };
        let written = serde_json::to_writer(&mut *out, &line).map_err(io::Error::from);
        if let Err(error) = written.and_then(|()| out.write_all(b"\n")) {
            warn!(%error, "the joblet log ends here");
            self.out = None;
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
