// SPDX-License-Identifier: Apache-2.0
//! What weir-control is told, checked.
//!
//! ```text
//!  files ── written (shapes, text, lines) ── check (ranges, reasons) ──> Config, Error { file, line, field, reason }
//! ```
//!
//! Nothing after this module checks a setting again.

pub mod authorization;
mod check;
mod consul;
pub mod replicas;
pub mod written;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use weir_policy::overload::breaker;
use weir_policy::{HostId, KeyHash, Policy, Salt, dagor, steady};

use crate::certificate::Validity;
use crate::sources::floor::Kept;
use crate::sources::prometheus::Figure;

pub use authorization::Authorization;
pub(crate) use check::with_sources;
pub use consul::{Consul, Question, Token};
pub use replicas::Replicas;
pub use weir_settings::{Error, show_duration, show_size};

/// Of cache contents, for each sidecar and cluster: a hundredth of a gigabit.
pub const CACHE_BYTES_PER_SECOND: usize = 512 << 10;

/// Everything that can be set.
#[derive(Clone, Debug)]
pub struct Config {
    /// The discovery and report listener.
    pub xds: Xds,
    /// The admin listener.
    pub admin: SocketAddr,
    /// Changes within this time go out as one table.
    pub publish: Duration,
    /// A shard of cache contents rests after it was pushed, up to a second, so that a sidecar gets no more of
    /// a cluster where a second is enough for that.
    pub cache_bytes_per_second: usize,
    /// What is kept of reports.
    pub reports: ReportLimits,
    /// Counted memory that may be taken; absent: half of what the cgroup has, if it has a limit.
    pub memory_limit: Option<usize>,
    /// What discovery streams may take.
    pub discovery: crate::xds::Limits,
    /// By name.
    pub clusters: BTreeMap<String, Arc<Cluster>>,
    /// What Envoys get that have no other control plane.
    pub standalone: Option<Arc<crate::xds::standalone::Standalone>>,
    /// Absent: this one is the only one.
    pub replicas: Option<Arc<Replicas>>,
    /// Who may do what; absent: whoever passes the listener may do everything.
    pub authorization: Option<Arc<Authorization>>,
    /// When the certificates are good that the files have, by the field that names the file.
    pub certificates: BTreeMap<String, Validity>,
}

/// The discovery and report listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xds {
    /// Where it listens.
    pub listen: SocketAddr,
    /// How it is protected.
    pub tls: Option<Tls>,
}

/// Contents of the PEM files.
#[derive(Clone, PartialEq, Eq)]
pub struct Tls {
    /// Certificate chain.
    pub certificate: Vec<u8>,
    /// Private key.
    pub key: Vec<u8>,
    /// Clients must show a certificate of this authority.
    pub client_ca: Option<Vec<u8>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("client_ca", &self.client_ca.is_some())
            .finish_non_exhaustive()
    }
}

/// Somebody who is asked by HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// Its address: `http://` or `https://`, and no slash at the end.
    pub url: String,
    /// Contents of a PEM file: only these authorities are trusted. Absent: the system's are.
    pub ca: Option<Vec<u8>>,
    /// What is shown to it: certificate and key, PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl Server {
    /// Whether it is asked by TLS.
    pub fn is_secure(&self) -> bool {
        self.url.starts_with("https://")
    }

    /// Whether what is sent to it stays on this machine.
    pub fn is_loopback(&self) -> bool {
        let Ok(url) = self.url.parse::<http::Uri>() else {
            return false;
        };
        let host = url.host().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let ip = bare.parse::<std::net::IpAddr>();
        ip.map_or(host.eq_ignore_ascii_case("localhost"), |ip| {
            ip.is_loopback()
        })
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("url", &self.url)
            .field("ca", &self.ca.is_some())
            .field("identity", &self.identity.is_some())
            .finish()
    }
}

/// How hosts are asked by HTTPS. Contents of PEM files.
#[derive(Clone, PartialEq, Eq)]
pub struct HostTls {
    /// Only these authorities are trusted. Absent: the system's are.
    pub ca: Option<Vec<u8>>,
    /// What is shown to hosts: certificate and key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The name that hosts' certificates have. Absent: each has the address that it is asked at.
    pub server_name: Option<String>,
}

impl fmt::Debug for HostTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTls")
            .field("ca", &self.ca.is_some())
            .field("identity", &self.identity.is_some())
            .field("server_name", &self.server_name)
            .finish()
    }
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

/// One cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// How hosts are chosen.
    pub policy: Policy,
    /// How admission levels move.
    pub dagor: Dagor,
    /// What keys are hashed with; absent: they have no salt.
    pub salt: Option<Salt>,
    /// Into how many resources cache contents are split; 0: none are pushed.
    pub cache_shards: u32,
    /// Sorted by address, no address twice. As written; those that Consul names are added by `sources::membership`.
    pub hosts: Vec<Host>,
    /// For how long a list that lost more than half of its hosts has to be read before it counts; zero: any list does
    /// at once.
    pub shrink_after: Duration,
    /// Why the hosts are not those that are written now.
    pub kept: Option<Kept>,
    /// Absent: all hosts are written here.
    pub consul: Option<Arc<Consul>>,
    /// Absent: hosts' metrics are not read.
    pub scrape: Option<Scrape>,
    /// Absent: hosts are not asked for cache contents.
    pub cache: Option<Cache>,
    /// Absent: no Prometheus server is asked for figures.
    pub prometheus: Option<Prometheus>,
    /// Which keys are assigned to which host; with it cache contents are these.
    pub plan: Option<Plan>,
}

impl Cluster {
    /// How hosts are asked for cache contents. Where none are kept nobody is asked: who is asked again begins
    /// with all that there is, and who went on would hear of changes alone.
    pub fn asked_cache(&self) -> Option<&Cache> {
        self.cache.as_ref().filter(|_| self.cache_shards > 0)
    }
}

/// A caching plan: by host, the keys that are assigned to it.
pub type Plan = BTreeMap<HostId, Vec<KeyHash>>;

/// How admission levels move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dagor {
    /// By which rule.
    pub control: Control,
    /// Of [`Control::Steady`].
    pub steady: steady::Params,
    /// Of [`Control::Steady`]: a host whose queue takes so much longer than the usual host's passes on what
    /// it cannot do.
    pub behind: Duration,
    /// Of the other two.
    pub params: dagor::Params,
    /// The level moves after this time ...
    pub window: Duration,
    /// ... or this many requests, whichever is first.
    pub window_requests: u64,
    /// Where no queuing delay is known or counts, a host with more queued jobs than this is overloaded.
    pub queued_jobs: u32,
}

/// By which rule admission levels move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// One level for the cluster, from how long its queues will take ([`steady`]); a host that is far behind
    /// the others passes on what it cannot do.
    #[default]
    Steady,
    /// A level for each host, from its queuing delay (Zhou et al., SoCC 2018).
    Paper,
    /// The same from its queued jobs (document 001, section 9.1.3).
    StalledJobs,
}

impl Default for Dagor {
    fn default() -> Self {
        Self {
            control: Control::default(),
            steady: steady::Params::default(),
            behind: steady::Params::default().high,
            params: dagor::Params::default(),
            // The paper's window (section 4.1).
            window: Duration::from_secs(1),
            window_requests: 2000,
            // As document 001 does (section 9.1.3): DAGOR on stalled jobs has the breaker's threshold.
            queued_jobs: breaker::QUEUED_JOBS,
        }
    }
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Where requests go; canonical `ip:port`.
    pub address: String,
    /// Where its metrics are read.
    pub metrics_address: String,
    /// Where its cache contents are read.
    pub cache_address: String,
    /// Thousandths of a core; 0 where unknown.
    pub capacity_millicores: u32,
    /// When it goes away; 0 where it does not.
    pub preempt_at_unix_ms: u64,
    /// Gets nothing new.
    pub draining: bool,
    /// Present where the host is written, not only found.
    pub written: Option<Written>,
    /// Present where it was found: what discovery knows it as.
    pub instance: Option<Instance>,
}

/// Which fields of a host are written; they count more than what was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Written {
    pub metrics_address: bool,
    pub cache_address: bool,
    pub capacity_millicores: bool,
    pub preempt_at_unix_ms: bool,
}

/// What discovery knows a host as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Instance {
    /// Id of the service on its node.
    pub id: String,
    /// Name of the node.
    pub node: String,
    /// Where it is, if it says so.
    pub zone: Option<String>,
}

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

/// How metrics are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scrape {
    /// When and where.
    pub poll: Poll,
    /// Gauge of jobs running or queued.
    pub in_progress: String,
    /// Gauge of queued jobs.
    pub queued: String,
    /// Its label that has the business class as a number.
    pub queued_priority_label: String,
    /// Histogram or summary of waits in seconds.
    pub queuing_delay: String,
    /// Gauge of cores in use.
    pub busy_cores: String,
    /// Gauge of core seconds that jobs are expected to need still, with the same label.
    pub work: String,
    /// Gauge that is not 0 while a host wants no new requests.
    pub draining: String,
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

/// A configuration and the files it was made of.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What they say.
    pub config: Arc<Config>,
    /// The configuration file first, then every file it names, with the contents as read.
    pub files: Files,
}

/// Files as they were read; none where one could not be.
pub type Files = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// Reads and checks the file and those it names.
///
/// On an error the files read so far come with it, so that a watcher knows what to wait for.
pub fn load(path: &Path) -> Result<Loaded, (Error, Files)> {
    let mut reader = check::Reader::default();
    match check::file(path, &mut reader) {
        Ok(config) => Ok(Loaded {
            config: Arc::new(config),
            files: reader.files,
        }),
        Err(error) => Err((error, reader.files)),
    }
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
