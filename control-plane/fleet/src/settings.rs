// SPDX-License-Identifier: Apache-2.0
//! Settings of a fleet, checked: what an operator may say of clusters, hosts, and how they are asked.
//!
//! Files are read and checked elsewhere; nothing here reads one.

mod admission;
mod cluster;
mod consul;
mod dns;
mod kept;
mod kubernetes;
mod kv_events;
mod polls;
mod registry;
mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::authorization::Authorization;
use crate::standalone::Standalone;

pub use admission::{Control, Dagor};
pub use cluster::{Cluster, Host, Instance, Plan, Planning, Written};
pub use consul::{Consul, Question, Token};
pub use dns::Dns;
pub use kept::Kept;
pub use kubernetes::{Access, ApiServer, Backend, Bearer, Kubernetes, ServicePort};
pub use kv_events::KvEvents;
pub use polls::{Cache, Poll, Prometheus, Scrape};
pub use registry::Registry;
pub use server::{HostTls, Server};

/// Default of [`Settings::cache_bytes_per_second`], a second of each sidecar's and cluster's: a hundredth of a gigabit.
pub const CACHE_BYTES_PER_SECOND: usize = 512 << 10;

/// Default of [`Settings::table_bytes_per_second`], a second of each sidecar's and cluster's: a table of 14 hosts goes
/// out whenever it changes, one of 200 ten times a second.
pub const TABLE_BYTES_PER_SECOND: usize = 64 << 10;

/// Settings of the whole fleet.
#[derive(Clone, Debug)]
pub struct Settings {
    /// By name.
    pub clusters: BTreeMap<String, Arc<Cluster>>,
    /// A shard of cache contents rests after it was pushed, up to a second, so that a sidecar gets no more of
    /// a cluster where a second is enough for that.
    pub cache_bytes_per_second: usize,
    /// A table rests after it was pushed, up to a second, so that newer figures alone ask for no more of a sidecar.
    pub table_bytes_per_second: usize,
    /// Limits on what is kept of reports.
    pub reports: ReportLimits,
    /// Counted memory that may be taken; absent: the limit that [`crate::state::State::within`] was given.
    pub memory_limit: Option<usize>,
    /// Resources for Envoys that have no other control plane.
    pub standalone: Option<Arc<dyn Standalone>>,
    /// Shown beside each proxy; absent: whoever passes the listener may do everything.
    pub authorization: Option<Arc<Authorization>>,
}

/// What is kept of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportLimits {
    /// Proxies.
    pub max_proxies: usize,
    /// VM records of one proxy.
    pub max_vms: usize,
    /// Counters by VM, cluster, host and rank of all proxies; one has at most a fifth of them.
    pub max_rows: usize,
    /// Bytes of reports of all streams that wait to be counted.
    pub max_waiting_bytes: usize,
    /// A record that has not been renewed for this long is dropped.
    pub forget_after: Duration,
}
