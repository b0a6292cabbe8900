// SPDX-License-Identifier: Apache-2.0
//! News of a fleet.

use std::sync::Arc;
use std::time::Instant;

use weir_tables::v1;

use crate::authorization::Caps;
use crate::clients::ClientEvent;
use crate::figures::Scraped;
use crate::holdings::Changes;
use crate::poll::{PollError, Source};
use crate::prometheus::Answers;
use crate::settings::Settings;
use crate::snapshot::Snapshot;

/// News.
#[derive(Debug)]
pub enum Update {
    /// Settings that check.
    Configured(Arc<Settings>),
    /// The same settings with other hosts, because discovery found them.
    Discovered(Arc<Settings>),
    /// Settings that do not check, with the reason; the old ones stay.
    Misconfigured(String),
    /// How discovery goes.
    Asked {
        /// Name of the cluster.
        cluster: Arc<str>,
        /// What was asked.
        source: Source,
        /// What there is to complain of in the answer.
        result: Result<Vec<String>, PollError>,
    },
    /// Discovery has a new question, and the hosts are not of its answer yet.
    Waiting {
        /// Name of the cluster.
        cluster: Arc<str>,
        /// What is to be complained of until Consul answers.
        complaint: String,
    },
    /// A poll of a host's metrics.
    Scraped {
        /// Name of the cluster.
        cluster: Arc<str>,
        /// Address of the host.
        host: Arc<str>,
        /// When the poll began: figures are no younger than that.
        asked: Instant,
        /// What it brought.
        result: Result<Scraped, PollError>,
    },
    /// A poll of a host's cache contents.
    Cached {
        /// Name of the cluster.
        cluster: Arc<str>,
        /// Address of the host.
        host: Arc<str>,
        /// How often the cluster's cache contents had been dropped when it began.
        drops: u64,
        /// What it brought.
        result: Result<Changes, PollError>,
    },
    /// A round of a cluster's queries to Prometheus.
    Queried {
        /// Name of the cluster.
        cluster: Arc<str>,
        /// When the round began: figures are no younger than that.
        asked: Instant,
        /// What it brought.
        answers: Answers,
    },
    /// A proxy's counters.
    Reported(Reported),
    /// Capacity of the service on a host's node.
    Capacity {
        /// Name of the cluster.
        cluster: Arc<str>,
        /// Address of the host.
        host: Arc<str>,
        /// Thousandths of a core.
        millicores: u32,
    },
    /// A discovery stream's doings.
    Client(ClientEvent),
    /// Resources of the leader that this replica follows.
    Mirrored {
        /// Its lock index.
        index: u64,
        /// All of it.
        snapshot: Arc<Snapshot>,
    },
    /// The leader that this replica follows is not reached.
    Severed {
        /// Its lock index.
        index: u64,
    },
    /// It is reached again; it may have nothing new to say.
    Reached {
        /// Its lock index.
        index: u64,
    },
    /// A complaint about the lock of the replicas; none where it works.
    Complained(Option<String>),
}

/// A report, and how far it counts.
#[derive(Clone, Debug, Default)]
pub struct Reported {
    /// The report.
    pub report: v1::Report,
    /// The most important class that counts, by cluster.
    pub caps: Caps,
}

/// Of a proxy that may claim everything.
impl From<v1::Report> for Reported {
    fn from(report: v1::Report) -> Self {
        let caps = Caps::new();
        Self { report, caps }
    }
}
