// SPDX-License-Identifier: Apache-2.0
//! A discovery server with a snapshot made by hand.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::CancellationToken;
use weir_control::config::DiscoveryLimits;
use weir_control::feed::Feed;
use weir_control::xds::{self, XdsMetrics, types};
use weir_fleet::clients::ClientEvent;
use weir_fleet::snapshot::Snapshot;
use weir_fleet::standalone::ResourcesByType;

/// Longer than Envoy's longest pause between two connections, which is 30 s.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Control {
    pub(crate) address: SocketAddr,
    pub(crate) metrics: XdsMetrics,
    pub(crate) events: mpsc::Receiver<ClientEvent>,
    snapshots: watch::Sender<Arc<Snapshot>>,
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Control {
    pub(crate) async fn start(
        address: SocketAddr,
        resources: ResourcesByType,
        limits: DiscoveryLimits,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (snapshots, receiver) = watch::channel(Arc::new(Snapshot {
            resources,
            ..Default::default()
        }));
        let (sender, events) = mpsc::channel(1024);
        let feed = Feed {
            snapshots: receiver,
            events: sender,
        };
        let (metrics, shutdown) = (XdsMetrics::default(), CancellationToken::new());
        let service = xds::service(feed, metrics.clone(), limits, shutdown.clone());
        let router = xds::server().add_service(service);
        let stop = shutdown.clone();
        let task = tokio::spawn(async move {
            let incoming = TcpListenerStream::new(listener);
            router
                .serve_with_incoming_shutdown(incoming, stop.cancelled_owned())
                .await
                .unwrap();
        });
        Self {
            address,
            metrics,
            events,
            snapshots,
            shutdown,
            task,
        }
    }

    pub(crate) fn publish(&self, resources: ResourcesByType) {
        self.snapshots.send_replace(Arc::new(Snapshot {
            resources,
            ..Default::default()
        }));
    }

    /// The first event that `wanted` makes something of; those before it are dropped.
    pub(crate) async fn until<T>(&mut self, wanted: impl Fn(&ClientEvent) -> Option<T>) -> T {
        let found = async {
            loop {
                let event = self.events.recv().await.unwrap();
                if let Some(found) = wanted(&event) {
                    return found;
                }
            }
        };
        timeout(PATIENCE, found).await.expect("no such event")
    }

    /// Resources sent so far, of Envoy's types.
    pub(crate) fn sent(&self) -> u64 {
        let all = [
            types::CLUSTER,
            types::ENDPOINTS,
            types::LISTENER,
            types::ROUTE,
            types::EXTENSION,
        ];
        all.map(|type_url| self.metrics.resources_sent(type_url))
            .iter()
            .sum()
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap();
    }
}

/// The versions in an event, if it accepts resources of a type.
pub(crate) fn accepted(wanted: &'static str) -> impl Fn(&ClientEvent) -> Option<usize> {
    move |event| match event {
        ClientEvent::Acked {
            type_url, versions, ..
        } if **type_url == *wanted => Some(versions.len()),
        _ => None,
    }
}
