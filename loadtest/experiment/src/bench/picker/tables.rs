// SPDX-License-Identifier: Apache-2.0
//! The tables of one cluster, followed by delta xDS as the filter does.

use std::net::SocketAddr;
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, bail};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Request;
use weir_filter::stream;
use weir_tables::discovery::Resource;
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE, cache_shard_name};

use crate::bench::picker::knowledge::Knowledge;
use crate::fleet::connection::{connect, open, subscription};

/// Takes every table that comes; ends only with an error.
pub(crate) async fn follow(
    control: SocketAddr,
    cluster: &str,
    knowledge: &Mutex<Knowledge>,
) -> Result<()> {
    // Of two streams with one name weir-control keeps the newest.
    let node = format!("picker-{}", std::process::id());
    let subscribe = |kind, names| subscription(&node, kind, names);
    let channel = connect(control, CancellationToken::new()).await;
    let channel = channel.context("connecting to weir-control")?;
    let (requests, outbound) = mpsc::channel(64);
    let first = subscribe(HOST_TABLE_TYPE, vec![cluster.to_owned()]);
    requests.send(first).await?;
    let mut responses = open(channel, Request::new(ReceiverStream::new(outbound))).await?;
    let mut shards = 0;
    while let Some(response) = responses.message().await? {
        let accepted = stream::answer(&response, &Default::default());
        requests.send(accepted).await?;
        for resource in &response.resources {
            let wanted = take(resource, &response.type_url, knowledge)?;
            if let Some(wanted) = wanted.filter(|wanted| *wanted != shards) {
                shards = wanted;
                let names = (0..shards).map(|shard| cache_shard_name(cluster, shards, shard));
                requests
                    .send(subscribe(CACHE_SHARD_TYPE, names.collect()))
                    .await?;
            }
        }
    }
    bail!("weir-control ended the stream")
}

/// Returns the number of shards, where it is a table that says so.
fn take(resource: &Resource, kind: &str, knowledge: &Mutex<Knowledge>) -> Result<Option<u32>> {
    let body = resource
        .resource
        .as_ref()
        .context("a resource has no body")?;
    let mut knowledge = knowledge
        .lock()
        .map_err(|_| anyhow!("a decision panicked"))?;
    match kind {
        HOST_TABLE_TYPE => knowledge.set_table(&resource.name, &body.value).map(Some),
        CACHE_SHARD_TYPE => knowledge
            .set_shard(&resource.name, &body.value)
            .map(|()| None),
        other => bail!("{other} was not asked for"),
    }
}
