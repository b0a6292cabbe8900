// SPDX-License-Identifier: Apache-2.0
//! What weir-control is told, checked.
//!
//! ```text
//!  files ── written (shapes, text, lines) ── check (ranges, reasons) ──> Config, Error { file, line, field, reason }
//! ```
//!
//! Nothing after this module checks a setting again.

mod as_read;
mod check;
mod discovery;
pub mod policies;
pub mod replicas;
mod wants;
pub mod written;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use weir_fleet::Settings;

use crate::certificate::Validity;
use crate::standalone::Standalone;

pub use crate::tls::Tls;
pub use as_read::AsRead;
pub(crate) use check::policies as policy;
pub use discovery::DiscoveryLimits;
pub use policies::Policies;
pub use replicas::Replicas;
pub(crate) use wants::counted;
pub use weir_fleet::authorization::Authorization;
pub use weir_fleet::settings::{
    Access, ApiServer, Backend, Bearer, Cache, Cluster, Consul, Control, Dagor, Dns, Host, HostTls,
    Instance, Kept, Kubernetes, KvEvents, Plan, Planning, Poll, Prometheus, Question, Registry,
    ReportLimits, Scrape, Server, ServicePort, Token, Written,
};
pub use weir_settings::{Error, show_duration, show_size};

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
    /// Bytes of tables a second that newer figures may ask for, of each sidecar and cluster.
    pub table_bytes_per_second: usize,
    /// What is kept of reports.
    pub reports: ReportLimits,
    /// Counted memory that may be taken; absent: half of what the cgroup has, if it has a limit.
    pub memory_limit: Option<usize>,
    /// Where receipts go beside memory; absent: nowhere.
    pub receipts: Option<ReceiptFiles>,
    /// What discovery streams may take.
    pub discovery: DiscoveryLimits,
    /// By name.
    pub clusters: BTreeMap<String, Arc<Cluster>>,
    /// What Envoys get that have no other control plane.
    pub standalone: Option<Arc<Standalone>>,
    /// Whose clusters are beside these; absent: nobody's.
    pub policies: Option<Policies>,
    /// Absent: this one is the only one.
    pub replicas: Option<Arc<Replicas>>,
    /// Who may do what; absent: whoever passes the listener may do everything.
    pub authorization: Option<Arc<Authorization>>,
    /// When the certificates are good that the files have, by the field that names the file.
    pub certificates: BTreeMap<String, Validity>,
}

impl Config {
    /// Settings of the fleet.
    pub fn fleet(&self) -> Settings {
        let standalone = self.standalone.clone();
        Settings {
            clusters: self.clusters.clone(),
            cache_bytes_per_second: self.cache_bytes_per_second,
            table_bytes_per_second: self.table_bytes_per_second,
            reports: self.reports,
            memory_limit: self.memory_limit,
            standalone: standalone.map(|standalone| standalone as _),
            authorization: self.authorization.clone(),
        }
    }
}

/// Files of receipts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptFiles {
    /// The newest one.
    pub file: PathBuf,
    /// Bytes from which on it becomes an older one.
    pub max_size: usize,
    /// Older ones that are kept.
    pub keep: u32,
}

/// The discovery and report listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xds {
    /// Where it listens.
    pub listen: SocketAddr,
    /// How it is protected.
    pub tls: Option<Tls>,
}

/// A configuration and the files it was made of.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What they say.
    pub config: Arc<Config>,
    /// The configuration file first, then every file it names, as they were read.
    pub files: Files,
}

/// Files as they were read, and those that could not be.
pub type Files = BTreeMap<PathBuf, AsRead>;

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
