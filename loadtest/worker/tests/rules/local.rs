// SPDX-License-Identifier: Apache-2.0
//! A host within this process, over a folder. Its connections are memory, so that tokio's clock, where
//! it is paused, moves on only when everybody waits: it would also where bytes are in a kernel.

use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{DuplexStream, duplex};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use weir_executor::{Eviction, Order, Settings};
use weir_feeds::{FeedLimits, ItemStore};
use weir_rules::Limits;
use weir_worker::host::Host;
use weir_worker::metrics::Families;
use weir_worker::priorities::Priorities;
use weir_worker::rules::cores::Cores;
use weir_worker::rules::objects::Objects;
use weir_worker::rules::service;
use weir_worker::rules::task::Tools;
use weir_worker::server;
use weir_worker::server::app::App;

use crate::client::Client;
use crate::http::Address;

/// Bytes that a side takes and does not read: far less than a large answer.
const NARROW: usize = 4096;

/// The way in, of a client.
#[derive(Debug)]
pub(crate) struct Door(mpsc::UnboundedSender<DuplexStream>);

impl Address for Door {
    type Stream = DuplexStream;

    async fn connect(&self) -> DuplexStream {
        let (client, host) = duplex(NARROW);
        self.0.send(host).unwrap();
        client
    }
}

/// The way in, of the host.
struct Listener(mpsc::UnboundedReceiver<DuplexStream>);

impl axum::serve::Listener for Listener {
    type Io = DuplexStream;
    type Addr = ();

    async fn accept(&mut self) -> (DuplexStream, ()) {
        match self.0.recv().await {
            Some(stream) => (stream, ()),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) struct Local {
    client: Client<Door>,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) served: JoinHandle<anyhow::Result<()>>,
    _folder: TempDir,
}

impl Deref for Local {
    type Target = Client<Door>;

    fn deref(&self) -> &Client<Door> {
        &self.client
    }
}

impl Local {
    /// A host of one project, which drains for 60 s.
    pub(crate) async fn start(project: &str, items: &str) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join(format!("{project}.ndjson")), items).unwrap();
        let store = ItemStore::open(folder.path().to_str().unwrap()).unwrap();
        let settings = Settings {
            cores: 2,
            cache_bytes: 1 << 30,
            max_queued: 10,
            change_log: 100,
            order: Order::Priority,
            eviction: Eviction::default(),
        };
        let tools = Tools {
            store: store.clone(),
            feed_limits: FeedLimits::default(),
            limits: Limits::default(),
            io: Handle::current(),
        };
        let metrics = Families::default();
        let engine = Cores::new(&settings, 42, tools, metrics.clone(), None);
        let host = Host::start(engine, metrics.clone());
        let list = ["high=0", "low=16"].map(|one| one.parse().unwrap());
        let priorities = Priorities::new(list.to_vec(), "low").unwrap();
        let name = "127.0.0.1:1".parse().unwrap();
        let app = Arc::new(App::new(host, metrics, priorities, name).unwrap());
        let options = service::Options {
            limits: Limits::default(),
            max_body_bytes: 1 << 20,
            optimise: true,
            wide_fetches: true,
        };
        let objects = Objects::new(store, Duration::from_secs(10));
        let jobs = service::router(Arc::clone(&app), objects, options);
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async {
            let _ = stopped.await;
        };
        let drain = Duration::from_secs(60);
        let leaving = server::Leaving {
            notice: Duration::ZERO,
            drain,
        };
        let (door, connections) = mpsc::unbounded_channel();
        let listener = Listener(connections);
        let served = tokio::spawn(server::run(listener, app, jobs, leaving, shutdown));
        Self {
            client: Client(Door(door)),
            stop: Some(stop),
            served,
            _folder: folder,
        }
    }

    /// As SIGTERM does.
    pub(crate) fn terminate(&mut self) {
        self.stop.take();
    }
}
