// SPDX-License-Identifier: Apache-2.0
//! The delta discovery server.
//!
//! ```text
//! watch<Snapshot> ──> stream task ── Session ── Subscription per type ──> responses
//!                     (one each)        ^  pure       pure
//! mpsc<ClientEvent> <── ACK, NACK ──────┘
//! ```
//!
//! The filter and Envoy itself use the same service, each with a stream of its own. [`crate::standalone`]
//! turns clusters and hosts into resources for Envoys without another control plane.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

use crate::config::DiscoveryLimits;
use crate::feed::Feed;
use crate::gate::Gate;
use crate::newest::Newest;
use views::Views;

pub(crate) mod codec;
mod metrics;
mod room;
mod service;
pub mod session;
pub mod stream;
pub mod subscription;
pub mod types;
mod views;

pub use metrics::XdsMetrics;
pub use room::Full;
pub use service::Discovery;

/// Largest request taken: room for 100,000 names of 40 bytes.
const MAX_REQUEST_BYTES: usize = 4 << 20;

/// A sidecar that vanished without a word is noticed in these two together. The sidecars'
/// side is the same (`connection_keepalive` in envoy-config).
const PING_INTERVAL: Duration = Duration::from_secs(5);
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Streams of one connection. A sidecar needs four; a mesh gateway in front of this server carries
/// many sidecars' streams and opens another connection when this one is full.
const STREAMS_PER_CONNECTION: u32 = 256;

/// The discovery service, for `Server::add_service`. Its streams end when `shutdown` is cancelled
/// or the sender of snapshots is gone.
pub fn service(
    feed: Feed,
    metrics: XdsMetrics,
    limits: DiscoveryLimits,
    shutdown: CancellationToken,
) -> Discovery {
    let room = room::Room::new(limits, metrics.names());
    let shared = stream::Shared {
        feed,
        metrics,
        proxies: Newest::default(),
        gate: Gate::default(),
        views: Views::default(),
        room,
        said: Arc::default(),
        unknown: Arc::default(),
        shutdown,
    };
    Discovery::new(shared)
}

/// A server with the limits and pings that sidecars need. TLS and services are the caller's.
pub fn server() -> Server {
    Server::builder()
        .http2_keepalive_interval(Some(PING_INTERVAL))
        .http2_keepalive_timeout(Some(PING_TIMEOUT))
        .max_concurrent_streams(Some(STREAMS_PER_CONNECTION))
        .tcp_nodelay(true)
}
