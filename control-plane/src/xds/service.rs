// SPDX-License-Identifier: Apache-2.0
//! The gRPC face of the server.

use std::sync::atomic::{AtomicU64, Ordering};

use envoy_types::pb::envoy::service::discovery::v3 as discovery;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::Instrument;

use super::stream::{RESPONSES_WAITING, Shared, serve};
use crate::snapshot::StreamId;
use discovery::aggregated_discovery_service_server::AggregatedDiscoveryService;

/// Serves `envoy.service.discovery.v3.AggregatedDiscoveryService`, delta variant.
#[derive(Debug)]
pub struct Discovery {
    shared: Shared,
    streams: AtomicU64,
}

impl Discovery {
    pub(super) fn new(shared: Shared) -> Self {
        Self {
            shared,
            streams: AtomicU64::new(0),
        }
    }
}

#[tonic::async_trait]
impl AggregatedDiscoveryService for Discovery {
    type StreamAggregatedResourcesStream =
        tokio_stream::Empty<Result<discovery::DiscoveryResponse, Status>>;

    async fn stream_aggregated_resources(
        &self,
        _: Request<Streaming<discovery::DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        Err(Status::unimplemented(
            "weir-control speaks the delta protocol only: set ads_config.api_type to DELTA_GRPC",
        ))
    }

    type DeltaAggregatedResourcesStream =
        ReceiverStream<Result<discovery::DeltaDiscoveryResponse, Status>>;

    async fn delta_aggregated_resources(
        &self,
        request: Request<Streaming<discovery::DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        let peer = request.remote_addr();
        let stream = StreamId(self.streams.fetch_add(1, Ordering::Relaxed));
        let (responses, outbound) = mpsc::channel(RESPONSES_WAITING);
        let task = serve(
            self.shared.clone(),
            stream,
            peer,
            request.into_inner(),
            responses,
        );
        tokio::spawn(task.instrument(tracing::info_span!("xds", stream = stream.0)));
        Ok(Response::new(ReceiverStream::new(outbound)))
    }
}
