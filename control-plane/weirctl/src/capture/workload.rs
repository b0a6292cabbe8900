// SPDX-License-Identifier: Apache-2.0
//! The requests as a workload file: its fields are those of weir-replay's.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use weir_whole_file::WholeFile;

use super::BYTES_PER_US;
use super::log::{Log, Seen};
use super::work::Work;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// Microseconds after the first.
    pub t_us: u64,
    /// Of the data that it needs; empty: of none.
    pub key: String,
    /// `high` or `low`.
    pub priority: &'static str,
    /// On whose behalf; empty: nobody's.
    pub user: String,
    /// On one core, without the fetch.
    pub run_us: u64,
    /// Of the key's data, as a fetch at 100 MB/s would have them.
    pub bytes: u64,
    /// Which of several callers it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
}

pub(super) fn requests(log: &Log, work: &Work) -> Vec<Request> {
    let first = log.seen.first().map_or(0, |seen| seen.came);
    let request = |(seen, run_us): (&Seen, &u64)| {
        let fetch = seen.key.map_or(0, |key| work.fetches[key as usize]);
        let key = seen.key.map_or("", |key| log.keys.name(key));
        let user = seen.user.map_or("", |user| log.users.name(user));
        Request {
            t_us: seen.came - first,
            key: key.to_owned(),
            priority: if seen.important { "high" } else { "low" },
            user: user.to_owned(),
            run_us: *run_us,
            bytes: fetch.saturating_mul(BYTES_PER_US),
            sender: (log.callers.len() > 1).then(|| log.callers.name(seen.caller).to_owned()),
        }
    };
    log.seen.iter().zip(&work.runs).map(request).collect()
}

/// Writes NDJSON, whole or not at all.
///
/// # Errors
/// It cannot be written.
pub fn save(requests: &[Request], file: &Path) -> io::Result<()> {
    let mut out = WholeFile::create(file)?;
    for request in requests {
        serde_json::to_writer(&mut out, request)?;
        out.write_all(b"\n")?;
    }
    out.finish()
}
