// SPDX-License-Identifier: Apache-2.0
//! How hosts and Prometheus are asked.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_policy::Salt;

use super::{HostTls, Server};
use crate::prometheus::Figure;

/// When and where a source asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Between the beginnings of two polls; 10 % jitter is added.
    pub interval: Duration,
    /// A poll that takes longer has failed.
    pub timeout: Duration,
    /// Of the URL.
    pub path: String,
    /// Of the answer's body.
    pub max_bytes: usize,
    /// Absent: in the clear.
    pub tls: Option<HostTls>,
}

/// How metrics are read. Each is a name, or a name and labels that a sample has to have: `name{label="value"}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scrape {
    /// When and where.
    pub poll: Poll,
    /// Gauge of jobs running or queued; with [`Self::adds_queued`], of jobs that run.
    pub in_progress: String,
    /// Jobs in progress are those that run and those of [`Self::queued`], which two gauges tell.
    pub adds_queued: bool,
    /// Gauge of queued jobs.
    pub queued: String,
    /// Fewer queued jobs than none are none: the gauge is the difference of two counts of different moments.
    pub floors_queued: bool,
    /// Its label that has the business class as a number.
    pub queued_priority_label: String,
    /// Histogram or summary of waits in seconds; none where hosts have no such.
    pub queuing_delay: Option<String>,
    /// Waits are told when answers are done: they say how long jobs wait only where the length of the queue, or how many
    /// jobs leave it, does not.
    pub delay_is_late: bool,
    /// Histogram or summary of the time in which prompts are read, in seconds.
    pub reading: String,
    /// Histogram or summary of the time in which answers are written, in seconds.
    pub writing: String,
    /// Gauge of cores in use.
    pub busy_cores: String,
    /// Gauge of core seconds that jobs are expected to need still, with the same label.
    pub work: String,
    /// Gauge of cores that the host has.
    pub cores: String,
    /// Gauge that is not 0 while a host wants no new requests.
    pub draining: String,
}

/// Names that stand where none is written, of metrics that few hosts have.
impl Scrape {
    /// Of [`Self::reading`].
    pub const READING: &str = "weir_host_reading_seconds";
    /// Of [`Self::writing`].
    pub const WRITING: &str = "weir_host_writing_seconds";
    /// Of [`Self::busy_cores`].
    pub const BUSY_CORES: &str = "weir_host_busy_cores";
    /// Of [`Self::work`].
    pub const WORK: &str = "weir_host_work_seconds";
    /// Of [`Self::cores`].
    pub const CORES: &str = "weir_host_cores";
    /// Of [`Self::draining`].
    pub const DRAINING: &str = "weir_host_draining";
}

/// How cache contents are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// When and where.
    pub poll: Poll,
    /// Of one host.
    pub max_keys: usize,
    /// Of one key's name.
    pub max_key_bytes: usize,
    /// The cluster's.
    pub salt: Option<Salt>,
}

/// A Prometheus server that knows figures of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prometheus {
    /// Whom to ask.
    pub server: Server,
    /// Between the beginnings of two rounds of queries; 10 % jitter is added.
    pub interval: Duration,
    /// A query that takes longer has failed.
    pub timeout: Duration,
    /// The label whose value is the `address` or the `metrics_address` of a host.
    pub label: String,
    /// PromQL by figure, none of it empty; a figure that is not here is not asked.
    pub queries: BTreeMap<Figure, String>,
}
