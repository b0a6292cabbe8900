// SPDX-License-Identifier: Apache-2.0
//! Hosts that change when they are told to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::Result;
use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::fleet::page::{Figures, page};

/// Ten times what the breaker lets through.
const QUEUED: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Drains,
    IsBackFromDraining,
    Queues,
    IsBackFromQueue,
}

pub(super) struct Hosts(Vec<Host>);

pub(super) struct Host {
    pub(super) name: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    queued: AtomicU32,
    draining: AtomicBool,
}

impl Change {
    pub(super) const ALL: [Self; 4] = [
        Self::Drains,
        Self::IsBackFromDraining,
        Self::Queues,
        Self::IsBackFromQueue,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Drains => "a host starts draining",
            Self::IsBackFromDraining => "it ends draining",
            Self::Queues => "its queue jumps over the breaker",
            Self::IsBackFromQueue => "its queue is empty again",
        }
    }

    /// Whether requests may go to the host again.
    pub(super) fn is_back(self) -> bool {
        matches!(self, Self::IsBackFromDraining | Self::IsBackFromQueue)
    }
}

impl Hosts {
    pub(super) async fn start(count: usize) -> Result<Self> {
        let mut hosts = Vec::new();
        for _ in 0..count {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            hosts.push(Host::serve(listener.local_addr()?, listener));
        }
        Ok(Self(hosts))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|host| host.name.as_str())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Host> {
        self.0.iter().find(|host| host.name == name)
    }
}

impl Host {
    fn serve(address: SocketAddr, listener: TcpListener) -> Self {
        let state = Arc::new(State::default());
        let shown = state.clone();
        let metrics = async move || page(shown.figures());
        let router = Router::new()
            .route("/metrics", get(metrics))
            .fallback(async || "done\n");
        // Ends with the runtime.
        tokio::spawn(async { axum::serve(listener, router).await });
        let name = address.to_string();
        Self { name, state }
    }

    pub(super) fn set(&self, change: Change) {
        let queued = match change {
            Change::Queues => QUEUED,
            _ => 0,
        };
        let draining = change == Change::Drains;
        self.state.queued.store(queued, Ordering::Relaxed);
        self.state.draining.store(draining, Ordering::Relaxed);
    }
}

impl State {
    fn figures(&self) -> Figures {
        let queued = self.queued.load(Ordering::Relaxed);
        Figures {
            in_progress: queued,
            queued,
            draining: self.draining.load(Ordering::Relaxed),
            waited: 0,
        }
    }
}
