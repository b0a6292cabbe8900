// SPDX-License-Identifier: Apache-2.0
//! A SIMULATED sidecar: the filter's discovery stream without an Envoy around it. It has a TCP
//! connection of its own, asks for the cluster's table (or for all there is) and accepts what comes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use prost::Message;
use tokio::sync::mpsc;
use tonic::Request;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use weir_tables::discovery::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node};
use weir_tables::{HOST_TABLE_TYPE, v1};

use super::codec::Raw;
use super::fleet::History;
use super::receipts::{Known, Receipts};

const METHOD: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";

/// As Envoy 1.40 has them: smaller ones cost the server more messages about them.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 24 << 20;

/// The filter's first pause before it tries again.
const PAUSE: Duration = Duration::from_millis(100);

/// What a simulated sidecar is given.
#[derive(Clone)]
pub(super) struct Task {
    pub(super) number: usize,
    pub(super) server: SocketAddr,
    /// What it asks for.
    pub(super) names: Vec<String>,
    pub(super) receipts: Arc<Receipts>,
    /// Of those that also look into the tables; the others only count.
    pub(super) history: Option<Arc<History>>,
}

/// Runs until it is dropped. A stream that ends is opened again, as the filter does.
pub(super) async fn run(task: Task) {
    let (mut served, mut known) = (false, Known::default());
    loop {
        if let Err(error) = converse(&task, &mut served, &mut known).await
            && task.receipts.lost.fetch_add(1, Ordering::Relaxed) == 0
        {
            eprintln!("bench: simulated sidecar {}: {error:#}", task.number);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn converse(task: &Task, served: &mut bool, known: &mut Known) -> Result<()> {
    let channel = Endpoint::from_shared(format!("http://{}", task.server))?
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .tcp_nodelay(true)
        .connect()
        .await?;
    let mut client = Grpc::new(channel);
    client.ready().await?;
    let (requests, outbound) = mpsc::channel(1);
    requests.send(first(task)).await?;
    let request = Request::new(ReceiverStream::new(outbound));
    let path = PathAndQuery::from_static(METHOD);
    let codec = Raw::<DeltaDiscoveryRequest>::default();
    let mut responses = client.streaming(request, path, codec).await?.into_inner();
    while let Some(message) = responses.message().await? {
        task.receipts.count(message.len());
        let response = DeltaDiscoveryResponse::decode(message)?;
        if !std::mem::replace(served, true) {
            task.receipts.served.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(history) = &task.history {
            for resource in &response.resources {
                let body = resource.resource.as_ref().context("a resource is empty")?;
                let table = v1::HostTable::decode(body.value.as_slice())?;
                task.receipts.table(known, &table, history);
            }
        }
        requests.send(accept(response)).await?;
    }
    bail!("the server has ended the stream")
}

fn first(task: &Task) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(Node {
            id: format!("simulated-{}", task.number),
            cluster: "simulated".to_owned(),
        }),
        type_url: HOST_TABLE_TYPE.to_owned(),
        resource_names_subscribe: task.names.clone(),
        ..Default::default()
    }
}

fn accept(response: DeltaDiscoveryResponse) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        type_url: response.type_url,
        response_nonce: response.nonce,
        ..Default::default()
    }
}
