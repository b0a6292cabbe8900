// SPDX-License-Identifier: Apache-2.0
//! The gRPC face of the server: `envoy.service.discovery.v3.AggregatedDiscoveryService`, delta variant.
//! What `envoy-types` generates for it would copy every resource once more on its way out.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use http::header::CONTENT_TYPE;
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::metadata::GRPC_CONTENT_TYPE;
use tonic::server::NamedService;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstDecoder;
use weir_fleet::clients::StreamId;

use super::MAX_REQUEST_BYTES;
use super::codec::Responses;
use super::session::Refusal;
use super::stream::{RESPONSES_WAITING, Shared, serve};
use crate::begun;
use crate::buffers;
use crate::gate::Gate;
use crate::newest;

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

    /// The same where callers need leave.
    pub fn guarded(mut self, gate: Gate) -> Self {
        self.shared.gate = gate;
        self
    }
}

impl NamedService for Discovery {
    const NAME: &'static str = "envoy.service.discovery.v3.AggregatedDiscoveryService";
}

impl Service<http::Request<Body>> for Discovery {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answer = match request.uri().path() {
            DELTA => self.open(request),
            STATE_OF_THE_WORLD => Status::unimplemented(
                "weir-control speaks the delta protocol only: set ads_config.api_type to DELTA_GRPC",
            )
            .into_http(),
            _ => Status::unimplemented("no such method").into_http(),
        };
        ready(Ok(answer))
    }
}

impl Discovery {
    fn open(&self, request: http::Request<Body>) -> http::Response<Body> {
        let encoding = request.headers().get("grpc-encoding");
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return Status::unimplemented("grpc-encoding: requests are not taken compressed")
                .into_http();
        }
        let share = self.shared.room.begun();
        let decode = |body| {
            let body = begun::counted(body, share);
            let decoder = ProstDecoder::<DeltaDiscoveryRequest>::new(buffers::small());
            Streaming::new_request(decoder, body, None, Some(MAX_REQUEST_BYTES))
        };
        let caller = self
            .shared
            .gate
            .caller(request.extensions(), request.headers());
        let caller = match caller {
            Ok(caller) => caller,
            Err(status) => return status.into_http(),
        };
        let request = Request::from_http(request.map(decode));
        let peer = (caller, newest::process(request.metadata()));
        let place = match self.shared.room.enter() {
            Ok(place) => place,
            Err(full) => {
                // Nobody knows yet whose it is.
                self.shared.refuses(full, "", peer.0.address);
                return Status::from(Refusal::from(full)).into_http();
            }
        };
        let stream = StreamId(self.streams.fetch_add(1, Ordering::Relaxed));
        let (responses, waiting) = mpsc::channel(RESPONSES_WAITING);
        let shared = self.shared.clone();
        let requests = request.into_inner();
        tokio::spawn(serve(shared, (stream, place), peer, requests, responses));
        let mut answer = http::Response::new(Body::new(Responses::new(waiting)));
        answer.headers_mut().insert(CONTENT_TYPE, GRPC_CONTENT_TYPE);
        answer
    }
}
