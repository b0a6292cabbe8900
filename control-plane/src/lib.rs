// SPDX-License-Identifier: Apache-2.0
//! Gathers load and cache contents of hosts and pushes them to sidecars.
//!
//! ```text
//!  file, consul ─ membership
//!                  │                    ┌─ levels   (DAGOR, a host)
//!  sources/scrape ─┼─ Update ─> state ──┤─ tables   (pure: state → messages)
//!  sources/cache ──┤   (mpsc)   (one    └─ Snapshot ── watch ──> xds ── delta ADS ──> sidecars
//!  reports ────────┤           owner)                             │                     │
//!  sources/nodes ──┘             ├────────── ClientEvent ─────────┘                     │
//!     ^  ^                       └─ Row (watch) ──> weir.v1.Nodes ──> governors         │
//!     │  └── admin (View): /metrics /ready /tables /explain                             │
//!     └───────────────────────────── weir.v1.Reports ───────────────────────────────────┘
//! ```
//!
//! [`run`] takes listeners and a shutdown signal, so that tests run all of it in their own process.

pub mod admin;
pub mod config;
pub mod levels;
pub mod metrics;
mod newest;
pub mod reports;
pub mod server;
pub mod snapshot;
pub mod sources;
pub mod state;
pub mod tables;
mod tasks;
pub mod xds;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use config::{Config, Loaded};
use snapshot::{Feed, Snapshot};

/// News that may wait for the state's owner. A source that finds the queue full waits, and its next poll
/// with it.
const UPDATES_WAITING: usize = 4096;

/// Connections that wait to be taken. When the process or its network was away, the whole fleet comes back
/// within a moment, and whoever finds no place here tries again a second later or is reset. The system
/// lowers it to its own limit.
const CONNECTIONS_WAITING: u32 = 4096;

/// Both ports, bound.
#[derive(Debug)]
pub struct Listeners {
    /// Discovery and reports.
    pub xds: TcpListener,
    /// Admin.
    pub admin: TcpListener,
}

impl Listeners {
    /// Binds what the configuration says.
    pub async fn bind(config: &Config) -> anyhow::Result<Self> {
        let bind = async |name: &str, address: SocketAddr| {
            listen(address).with_context(|| format!("{name}.listen: cannot bind {address}"))
        };
        Ok(Self {
            xds: bind("xds", config.xds.listen).await?,
            admin: bind("admin", config.admin).await?,
        })
    }
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(CONNECTIONS_WAITING)
}

/// Runs until `shutdown` is cancelled and every stream has ended. The caller limits how long that may take.
///
/// `path` is the configuration file, which is watched.
pub async fn run(
    path: PathBuf,
    loaded: Loaded,
    listeners: Listeners,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    // Whatever ends this function ends the tasks.
    let _guard = shutdown.clone().drop_guard();
    let config = loaded.config.clone();
    let (updates, news) = mpsc::channel(UPDATES_WAITING);
    let (events, client_events) = mpsc::channel(UPDATES_WAITING);
    let (written, newest_written) = watch::channel(config.clone());
    let (configs, newest_config) = watch::channel(config.clone());
    let (metrics, xds_metrics) = (metrics::Metrics::default(), xds::XdsMetrics::default());
    let mut registry = Registry::default();
    metrics.register(registry.sub_registry_with_prefix("weir_control"));
    xds_metrics.register(registry.sub_registry_with_prefix("weir_xds"));

    let now = Instant::now();
    let node_streams = metrics.node_streams();
    let mut state = state::State::new(config.clone(), rand::random(), metrics, now);
    // Sidecars that are already waiting get the hosts at once, whatever is known of them.
    let first = state.publish(now).unwrap_or_default();
    let (published, snapshots) = watch::channel::<Arc<Snapshot>>(first);

    let owner = state::own(state, news, client_events, published, shutdown.clone());
    let mut tasks = tasks::Tasks::default();
    tasks.start("state", owner.instrument(tracing::info_span!("state")));
    let supervisor = sources::supervise(newest_config, updates.clone());
    tasks.start(
        "sources",
        supervisor.instrument(tracing::info_span!("sources")),
    );
    let members = sources::membership::run(newest_written, configs, updates.clone());
    tasks.start(
        "membership",
        members.instrument(tracing::info_span!("membership")),
    );
    let watcher = sources::file::watch(path, loaded, written, updates.clone());
    tasks.start("files", watcher.instrument(tracing::info_span!("files")));

    let feed = Feed { snapshots, events };
    let services = server::Services {
        discovery: xds::service(feed, xds_metrics, shutdown.clone()),
        reports: reports::Service::server(
            updates.clone(),
            config.reports.max_proxies,
            shutdown.clone(),
        ),
        nodes: sources::nodes::Service::server(updates.clone(), node_streams, shutdown.clone()),
    };
    let grpc = server::serve(
        listeners.xds,
        config.xds.tls.as_ref(),
        server::Limits::with_places(server::places(config.reports.max_proxies)),
        services,
        shutdown.clone(),
    );
    let app = admin::App::new(updates, registry);
    let admin = async {
        admin::serve(listeners.admin, app, shutdown.clone()).await;
        Ok(())
    };
    let result = tokio::try_join!(
        grpc.instrument(tracing::info_span!("grpc")),
        admin.instrument(tracing::info_span!("admin")),
        async {
            let result = tasks.last(&shutdown).await;
            shutdown.cancel();
            result
        },
    );
    result.map(|_| ())
}
