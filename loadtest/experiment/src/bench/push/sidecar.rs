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
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Request;
use weir_filter::stream;
use weir_tables::{HOST_TABLE_TYPE, v1};

use super::receipts::{Known, Receipts};
use crate::fleet::connection::{connect, open, subscription};
use crate::fleet::hosts::History;

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
    let channel = connect(task.server, CancellationToken::new()).await?;
    let (requests, outbound) = mpsc::channel(1);
    let node = format!("simulated-{}", task.number);
    let names = task.names.clone();
    let first = subscription(&node, HOST_TABLE_TYPE, names);
    requests.send(first).await?;
    let mut responses = open(channel, Request::new(ReceiverStream::new(outbound))).await?;
    while let Some(response) = responses.message().await? {
        task.receipts.count(response.encoded_len());
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
        requests
            .send(stream::answer(&response, &Default::default()))
            .await?;
    }
    bail!("the server has ended the stream")
}
