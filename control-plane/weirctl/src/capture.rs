// SPDX-License-Identifier: Apache-2.0
//! From access logs of callers' Envoys, or from receipts, to a workload for the simulator.
//!
//! ```text
//!  access ──┐
//!           ├─> entry ─> log (in the order of arrival) ─┬─> host: when each was begun ─┐
//!  receipt ─┘                                           │                              ├─> work: run and fetch ─> workload
//!                                                       └──────────────────────────────┘                      └─> report
//! ```
//!
//! A log knows how long a host took, not how long it worked: the time in its queue is taken out by letting the logged
//! arrivals and ends pass through a queue with so many cores again.

mod access;
mod entry;
mod host;
mod log;
mod receipt;
mod report;
mod work;
mod workload;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};

pub(crate) use access::Line;
pub(crate) use log::MOST;
pub use report::{Logged, Report};
pub use workload::{Request, save};

use log::Log;
use work::Work;

/// The data of keys are said to come this fast, so that their sizes are in the workload what their fetches took.
pub(crate) const BYTES_PER_US: u64 = 100;

/// Which logs, of which hosts.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Access logs of all callers' Envoys, of the same time, or files of receipts.
    pub logs: Vec<PathBuf>,
    /// Whose receipts; none: there is only one in them.
    pub cluster: Option<String>,
    /// Of one host.
    pub cores: u32,
    /// What to fetch the data of a key is said to take; none: to be learned.
    pub fetch: Option<Duration>,
    /// Keys and users stay as they are, instead of their hashes.
    pub keep_names: bool,
}

/// What was made of them.
#[derive(Debug)]
pub struct Captured {
    /// In the order of their coming.
    pub requests: Vec<Request>,
    /// How, and what was logged.
    pub report: Report,
}

/// Makes a workload.
///
/// # Errors
/// A log cannot be read, a line is bad (which, and why), or there is nothing in them to learn from.
pub fn capture(asked: &Asked) -> Result<Captured> {
    let log = Log::read(asked)?;
    let visits = log.seen.iter().filter(|seen| seen.visit.is_some()).count();
    ensure!(
        visits > 0,
        "no line tells of a request that a host answered: an access log wants upstream_host, before_us and upstream_us, \
         as envoy-config/static/access-log.yaml has them"
    );
    let begun = host::begun(&log, asked.cores as usize);
    let work = Work::of(&log, &begun, asked.fetch);
    Ok(Captured {
        requests: workload::requests(&log, &work),
        report: Report::of(&log, &begun, &work, asked),
    })
}
