// SPDX-License-Identifier: Apache-2.0
//! A connection that can be cut: the other side sees a reset, and whoever uses it an error.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use anyhow::Result;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::client::Grpc;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Streaming};
use tonic_prost::ProstCodec;
use weir_tables::discovery::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node};

const METHOD: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
/// As Envoy 1.40 has them: smaller ones cost the server more messages about them.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 24 << 20;

/// A connection to a server that is cut when the token is cancelled.
pub(crate) async fn connect(server: SocketAddr, cut: CancellationToken) -> Result<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{server}"))?
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let connector = Connector { server, cut };
    Ok(endpoint.connect_with_connector(connector).await?)
}

/// The first request for resources of a kind: those of these names, or all.
pub(crate) fn subscription(node: &str, kind: &str, names: Vec<String>) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(Node {
            id: node.to_owned(),
            ..Default::default()
        }),
        type_url: kind.to_owned(),
        resource_names_subscribe: names,
        ..Default::default()
    }
}

/// Opens the stream of subscriptions and responses.
pub(crate) async fn open(
    channel: Channel,
    outbound: Request<ReceiverStream<DeltaDiscoveryRequest>>,
) -> Result<Streaming<DeltaDiscoveryResponse>> {
    let mut client = Grpc::new(channel).max_decoding_message_size(64 << 20);
    client.ready().await?;
    let codec = ProstCodec::<DeltaDiscoveryRequest, DeltaDiscoveryResponse>::default();
    let path = PathAndQuery::from_static(METHOD);
    Ok(client.streaming(outbound, path, codec).await?.into_inner())
}

#[derive(Clone)]
struct Connector {
    server: SocketAddr,
    cut: CancellationToken,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Connection>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { server, cut } = self.clone();
        Box::pin(async move {
            let stream = TcpStream::connect(server).await?;
            stream.set_nodelay(true)?;
            // It is closed by a reset.
            stream.set_zero_linger()?;
            let cut = Box::pin(cut.cancelled_owned());
            Ok(TokioIo::new(Connection { stream, cut }))
        })
    }
}

struct Connection {
    stream: TcpStream,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Connection {
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.cut.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::ConnectionReset.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
