// SPDX-License-Identifier: Apache-2.0
//! Gathers load and cache contents of hosts and pushes them to sidecars.
//!
//! ```text
//!  file, consul ─ membership
//!                  │                    ┌─ weir_fleet::State (pure: levels, tables)
//!  sources/scrape ─┼── News ──> owner ──┤─ Event ──> metrics, log
//!  sources/cache ──┤  (mpsc)            └─ Snapshot ── watch ──> xds ── delta ADS ──> sidecars
//!  reports ────────┤             │                                 │                     │
//!  sources/nodes ──┘             ├─────────── ClientEvent ─────────┘                     │
//!     ^  ^                       └─ Row (watch) ──> weir.v1.Nodes ──> governors          │
//!     │  └── admin (View): /metrics /live /ready /tables …                               │
//!     └───────────────────────────── weir.v1.Reports ────────────────────────────────────┘
//! ```
//!
//! [`run`] takes listeners and a shutdown signal, so that tests run all of it in their own process.

pub mod admin;
mod alive;
mod begun;
mod buffers;
pub mod certificate;
mod cgroup;
pub mod client;
pub mod config;
mod errors;
pub mod feed;
pub mod flags;
pub mod follow;
pub mod forward;
pub mod gate;
mod kube;
pub mod leader;
pub mod metrics;
mod newest;
pub mod news;
pub mod owner;
pub mod policies;
mod receipts;
pub mod reports;
mod rows;
mod seldom;
pub mod server;
mod share;
pub mod sources;
pub mod standalone;
mod tasks;
pub mod tls;
pub mod xds;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use anyhow::Context;
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, warn};
use weir_notify::Manager;
use weir_tables::Meta;
use weir_telemetry::Telemetry;

use config::{Config, Loaded, Replicas};
use feed::Feed;
use news::News;
use owner::Owner;
use policies::Attached;
use tasks::Tasks;
use weir_fleet::budget::ByCluster;
use weir_fleet::role::Role;
use weir_fleet::snapshot::Snapshot;

/// News that may wait for the state's owner. A source that finds the queue full waits, and its next poll
/// with it. Few: a report on two hundred hosts takes 140 kB, and a thousand sidecars send one a second.
const UPDATES_WAITING: usize = 64;

/// Events of the discovery server's clients that may wait; more are lost.
const EVENTS_WAITING: usize = 4096;

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
    telemetry: Telemetry,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    // Whatever ends this function ends the tasks.
    let _guard = shutdown.clone().drop_guard();
    // A leader says that it ends before its streams do: whoever comes back finds another one.
    let streams = CancellationToken::new();
    let _streams = streams.clone().drop_guard();
    let attached = Attached::begin(&path, loaded).await?;
    let config = attached.config.clone();
    warn_of_missing_rules(&config);
    let counted = Counted::new(&config);
    let (owner, first_role, first) = owner(&config, &counted);
    let (updates, news) = mpsc::channel(UPDATES_WAITING);
    let (role, roles) = watch::channel(first_role);
    let (written, newest_written) = watch::channel(config.clone());
    let seams = Seams {
        updates,
        roles,
        written: newest_written,
        streams: streams.clone(),
        shutdown: shutdown.clone(),
    };
    let mut tasks = Tasks::default();
    let bound = listeners.xds.local_addr()?;
    let lead = seams.lead(config.replicas.clone(), bound, role, &mut tasks);
    let contents = owner.contents();
    let feed = seams.own(owner, first, news, &mut tasks);
    let kv_events = counted.metrics.kv_events();
    seams.gather(path, attached, written, contents, kv_events, &mut tasks);

    let grpc = server::serve(
        listeners.xds,
        seams.written.clone(),
        server::Limits::with_places(server::places(config.reports.max_proxies)),
        seams.services(&config, &counted, feed),
        streams.clone(),
    );
    let app = admin::App::new(seams.updates, counted.metrics, counted.registry);
    let exported = app.clone();
    let export = telemetry.export(async move || exported.metrics_page(), streams.clone());
    let admin = async {
        admin::serve(listeners.admin, app, streams.clone()).await;
        Ok(())
    };
    let ended = tokio::try_join!(
        grpc.instrument(tracing::info_span!("grpc")),
        admin.instrument(tracing::info_span!("admin")),
        async {
            export.await;
            Ok(())
        },
        async {
            lead.await;
            streams.cancel();
            Ok(())
        },
        async {
            let ended = tasks.last(&streams).await;
            shutdown.cancel();
            ended
        },
    );
    ended.map(drop)
}

/// The ends of the channels that most parts are given.
struct Seams {
    /// To the state's owner.
    updates: mpsc::Sender<News>,
    roles: watch::Receiver<Role>,
    /// The configuration as its files have it.
    written: watch::Receiver<Arc<Config>>,
    /// The end of every stream.
    streams: CancellationToken,
    /// The end of the process.
    shutdown: CancellationToken,
}

impl Seams {
    /// Leads until the end where there are no replicas. Else contends for their lock, and follows while another one
    /// leads.
    fn lead(
        &self,
        replicas: Option<Arc<Replicas>>,
        bound: SocketAddr,
        role: watch::Sender<Role>,
        tasks: &mut Tasks,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let Some(replicas) = replicas else {
            return Box::pin(only(role, self.shutdown.clone()));
        };
        let address = reached_at(&replicas.address, bound);
        let (deposed, leaders_deposed) = mpsc::channel(1);
        let follower = follow::run(
            replicas.clone(),
            self.roles.clone(),
            self.written.clone(),
            deposed,
            self.updates.clone(),
        );
        tasks.start("follow", follower);
        let span = tracing::info_span!("lock", replica = %replicas.name);
        let lock = leader::run(
            replicas,
            self.written.clone(),
            address,
            role,
            leaders_deposed,
            self.updates.clone(),
            self.shutdown.clone(),
        );
        Box::pin(lock.instrument(span))
    }

    /// Starts the task that owns the state, which publishes `first` before it hears any news.
    fn own(
        &self,
        owner: Owner,
        first: Option<Arc<Snapshot>>,
        news: mpsc::Receiver<News>,
        tasks: &mut Tasks,
    ) -> Feed {
        let (events, client_events) = mpsc::channel(EVENTS_WAITING);
        let (published, snapshots) = watch::channel(first.unwrap_or_default());
        let owner = owner::run(
            owner,
            news,
            client_events,
            published,
            self.roles.clone(),
            self.streams.clone(),
        );
        tasks.start("state", owner.instrument(tracing::info_span!("state")));
        Feed { snapshots, events }
    }

    /// Starts what gathers: from hosts, from discovery, and from the configuration's files.
    fn gather(
        &self,
        path: PathBuf,
        mut attached: Attached,
        written: watch::Sender<Arc<Config>>,
        contents: watch::Receiver<ByCluster>,
        kv_events: metrics::kv_events::KvEvents,
        tasks: &mut Tasks,
    ) {
        let (configs, newest_config) = watch::channel(attached.config.clone());
        let updates = || self.updates.clone();
        let roles = || self.roles.clone();
        let supervisor = sources::supervise(newest_config, roles(), contents, kv_events, updates());
        tasks.start(
            "sources",
            supervisor.instrument(tracing::info_span!("sources")),
        );
        let members = sources::membership::run(self.written.clone(), roles(), configs, updates());
        tasks.start(
            "membership",
            members.instrument(tracing::info_span!("membership")),
        );
        tasks.start("alive", alive::tell(Manager::find(), updates()));
        if let Some(files) = attached.config.receipts.clone() {
            tasks.start("receipts", receipts::keep(files, updates()));
        }
        let (found, objects) = watch::channel(std::mem::take(&mut attached.objects));
        let (judged, verdicts) = watch::channel(attached.verdicts.clone());
        if attached.base.policies.is_some() {
            let written = || self.written.clone();
            let tell = policies::tell(verdicts, written(), roles(), updates());
            tasks.start("policies", policies::follow(written(), found));
            tasks.start("status", tell);
        }
        let watcher = sources::file::watch(path, attached, objects, judged, written, updates());
        tasks.start("files", watcher.instrument(tracing::info_span!("files")));
    }

    fn services(&self, config: &Config, counted: &Counted, feed: Feed) -> server::Services {
        let metrics = &counted.metrics;
        let streams = || self.streams.clone();
        let gate = gate::Gate::new(self.written.clone(), metrics.denials());
        let discovery = xds::service(feed, counted.xds.clone(), config.discovery, streams());
        let reports = reports::Service::server(
            self.updates.clone(),
            config.reports,
            metrics.clone(),
            streams(),
        );
        let nodes = sources::nodes::Service::server(
            self.updates.clone(),
            metrics.node_streams(),
            gate.clone(),
            streams(),
        );
        let routes = forward::Routes::new(self.roles.clone(), self.written.clone(), streams());
        server::Services {
            discovery: discovery.guarded(gate.clone()),
            reports: routes.to(reports.guarded(gate)),
            nodes: routes.to(nodes),
        }
    }
}

fn warn_of_missing_rules(config: &Config) {
    let tls = config.xds.tls.as_ref();
    if tls.is_some_and(|tls| tls.client_ca.is_some()) && config.authorization.is_none() {
        warn!("no rules of authorization: every client certificate may read and report everything");
    }
}

/// Metrics, and the registry that shows them.
struct Counted {
    metrics: metrics::Metrics,
    xds: xds::XdsMetrics,
    registry: Registry,
}

impl Counted {
    fn new(config: &Config) -> Self {
        let (metrics, xds) = (metrics::Metrics::default(), xds::XdsMetrics::default());
        let mut registry = Registry::default();
        weir_pages::register(&mut registry, "weir_control", env!("CARGO_PKG_VERSION"));
        let ours = registry.sub_registry_with_prefix("weir_control");
        metrics.register(ours);
        if config.replicas.is_some() {
            metrics.register_replica(ours);
        }
        xds.register(registry.sub_registry_with_prefix("weir_xds"));
        Self {
            metrics,
            xds,
            registry,
        }
    }
}

/// The owner of the state, its role, and what is pushed at first.
fn owner(config: &Config, counted: &Counted) -> (Owner, Role, Option<Arc<Snapshot>>) {
    let now = Instant::now().into_std();
    let epoch = Meta::draw_epoch(0, rand::random());
    let owner = Owner::new(config, epoch, counted.metrics.clone(), now)
        // The other half is for what is not counted: connections, messages on their way, the allocator.
        .within(
            cgroup::own_memory_max().map(|max| max / 2),
            counted.xds.names(),
        );
    match &config.replicas {
        // The only one leads from the start. Sidecars that are already waiting get the hosts at once, whatever is
        // known of them, but for levels.
        None => {
            let mut owner = owner.resuming();
            let first = owner.publish(now);
            (owner, Role::Leading { index: 0 }, first)
        }
        Some(replicas) => {
            let owner = owner.of_several(replicas.lock.handed_over_after());
            (owner, Role::Waiting, None)
        }
    }
}

/// Leads until the end.
async fn only(role: watch::Sender<Role>, shutdown: CancellationToken) {
    shutdown.cancelled().await;
    drop(role);
}

/// Port 0 is the one that was bound.
fn reached_at(address: &str, bound: SocketAddr) -> String {
    match address.strip_suffix(":0") {
        Some(host) => format!("{host}:{}", bound.port()),
        None => address.to_owned(),
    }
}
