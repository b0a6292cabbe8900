// SPDX-License-Identifier: Apache-2.0
//! The gRPC face of the server: `envoy.service.discovery.v3.AggregatedDiscoveryService`, delta variant.
//! What `envoy-types` generates for it would copy every resource once more on its way out.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Status, Streaming};

use super::MAX_REQUEST_BYTES;
use super::codec::{DeltaCodec, Response};
use super::stream::{RESPONSES_WAITING, Shared, serve};
use crate::newest;
use crate::snapshot::StreamId;

const DELTA: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
const STATE_OF_THE_WORLD: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

/// Serves the delta protocol. Clones are the same server.
#[derive(Clone, Debug)]
pub struct Discovery {
    shared: Shared,
    streams: Arc<AtomicU64>,
}

impl Discovery {
    pub(super) fn new(shared: Shared) -> Self {
        Self {
            shared,
            streams: Arc::default(),
        }
    }
}

impl NamedService for Discovery {
    const NAME: &'static str = "envoy.service.discovery.v3.AggregatedDiscoveryService";
}

impl Service<http::Request<Body>> for Discovery {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let streams = self.clone();
        Box::pin(async move {
            let refused = match request.uri().path() {
                DELTA => {
                    let mut grpc = Grpc::new(DeltaCodec)
                        .apply_max_message_size_config(Some(MAX_REQUEST_BYTES), None);
                    return Ok(grpc.streaming(streams, request).await);
                }
                STATE_OF_THE_WORLD => {
                    "weir-control speaks the delta protocol only: set ads_config.api_type to DELTA_GRPC"
                }
                _ => "no such method",
            };
            Ok(Status::unimplemented(refused).into_http())
        })
    }
}

impl StreamingService<DeltaDiscoveryRequest> for Discovery {
    type Response = Response;
    type ResponseStream = ReceiverStream<Result<Response, Status>>;
    type Future = Ready<Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<DeltaDiscoveryRequest>>) -> Self::Future {
        let peer = (request.remote_addr(), newest::process(request.metadata()));
        let stream = StreamId(self.streams.fetch_add(1, Ordering::Relaxed));
        let (responses, outbound) = mpsc::channel(RESPONSES_WAITING);
        let shared = self.shared.clone();
        tokio::spawn(serve(shared, stream, peer, request.into_inner(), responses));
        ready(Ok(tonic::Response::new(ReceiverStream::new(outbound))))
    }
}
