// SPDX-License-Identifier: Apache-2.0
//! Events of a step, for metrics and logs.

use std::sync::Arc;
use std::time::Duration;

use crate::budget::Contents;
use crate::ledger::Folded;
use crate::poll::{PollError, Source};
use crate::role::Role;
use crate::rollout::Worse;

/// An event. Names of clusters, hosts and proxies are as in the settings and the reports.
#[derive(Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Event {
    /// A poll has ended: `ok`, or the name of its fault.
    Polled {
        source: Source,
        result: &'static str,
    },
    /// Polls of a host succeed again, have other complaints, or fail in another way.
    PollsChanged {
        cluster: String,
        host: String,
        source: Source,
        outcome: Result<Vec<String>, PollError>,
    },
    /// A host refuses connections, or does so no more; `dead` hosts of its cluster do now.
    DeadHosts {
        cluster: String,
        host: String,
        dead: usize,
        health_ignored: bool,
    },
    /// Discovery succeeds again, has other complaints, or fails in another way.
    DiscoveryChanged {
        cluster: String,
        source: Source,
        outcome: Result<Vec<String>, PollError>,
    },
    /// Discovery has a new question.
    DiscoveryWaits { cluster: String, complaint: String },
    /// Prometheus answers another way than before; with a host, only about that one.
    PrometheusChanged {
        cluster: String,
        host: Option<String>,
        error: Option<String>,
        complaints: Vec<String>,
    },
    /// A report was counted.
    Reported { proxy: String, folded: Folded },
    /// A receipt has come, and has this number.
    Receipt {
        cluster: String,
        number: u64,
        steered: bool,
        lasted: Duration,
    },
    /// Envoy of a proxy ignores the filter's choices, or heeds them again.
    ChoicesIgnored {
        cluster: String,
        proxy: String,
        ignored: bool,
    },
    /// The governor of a host's node has fallen silent for `reports.forget_after`, or says something again.
    NodeSilent {
        cluster: String,
        host: String,
        silent: bool,
    },
    /// Requests of a cluster that are steered fare worse, so none is until the policy changes.
    Withdrawn { cluster: String, worse: Worse },
    /// Cache contents of a cluster are dropped because the limit is reached, or kept again.
    ContentsChanged {
        cluster: String,
        bytes: usize,
        limit: Option<usize>,
        contents: Contents,
    },
    /// Nothing is kept of what a host told of its cache: it is asked for all of it again.
    ContentsRefused,
    /// Settings are in force; clusters that were named before are gone.
    Configured { gone: Vec<String> },
    /// A cluster's hosts are still to be found, so that no table of it is pushed; or they are there.
    TableMissing { cluster: String, missing: bool },
    /// A table of hosts was built.
    TableBuilt { cluster: String, unix_ms: u64 },
    /// A shard of cache contents was built.
    ShardBuilt { cluster: String },
    /// A table of the leader's is pushed, which was built then.
    TableMirrored { cluster: String, unix_ms: u64 },
    /// Few hosts of a cluster are up, so that those which drain are chosen as well; or enough are.
    PanicMode { cluster: String, panics: bool },
    /// A proxy refused resources of a type.
    ResourcesRefused {
        proxy: Arc<str>,
        type_url: Arc<str>,
        reason: String,
    },
    /// This replica has another role. Where it `led` before, it builds no tables any more.
    RoleChanged { role: Role, led: bool },
    /// This replica leads anew: all that it knew of hosts is forgotten.
    Begun,
}
