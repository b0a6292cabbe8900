// SPDX-License-Identifier: Apache-2.0
//! A batch job as it is configured.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Job;

/// In an argument or a value of a variable, stands for the number of threads.
pub const THREADS: &str = "{threads}";

/// A job and how it comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its name, queue and threads.
    pub job: Job,
    /// What it is.
    pub source: Source,
    /// The CPU time that it takes in all, where that is known: for its progress.
    pub takes: Option<Duration>,
}

/// What a job is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Started by the governor.
    Command(Command),
    /// A cgroup of somebody else's, by its path below the mount: a container, a pod, a unit. The job runs while
    /// it has processes.
    Cgroup(String),
}

/// How a job is started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Program and arguments, with [`THREADS`] where the number belongs. The program is a path with a slash.
    pub line: Vec<String>,
    /// Where it runs; none: `/`.
    pub directory: Option<PathBuf>,
    /// Besides `PATH`; nothing else is passed on.
    pub environment: BTreeMap<String, String>,
    /// As whom: user and group, in no other group. None: as the governor, which is not root then.
    pub user: Option<(u32, u32)>,
}

/// What becomes of jobs that run when the governor is told to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStop {
    /// They go on, thawed, on [`jobs_alone`](crate::config::Shares::jobs_alone); the next governor takes them up.
    #[default]
    Keep,
    /// They are thawed, told to end, and killed when they have not after the grace.
    End,
}

/// What all jobs share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The cgroup above those of jobs that the governor starts.
    pub cgroup: String,
    /// A folder for `NAME.log`, what each job writes, and `timeline.jsonl`.
    pub logs: PathBuf,
    /// See there.
    pub on_stop: OnStop,
    /// Between the request to end and the kill.
    pub grace: Duration,
}
