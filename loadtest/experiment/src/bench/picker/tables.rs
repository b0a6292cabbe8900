// SPDX-License-Identifier: Apache-2.0
//! The tables of one cluster, followed by delta xDS as the filter does.

use std::net::SocketAddr;
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, bail};
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Client;
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, Resource,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE, cache_shard_name};

use crate::bench::picker::knowledge::Knowledge;

/// Takes every table that comes; ends only with an error.
pub(crate) async fn follow(
    control: SocketAddr,
    cluster: &str,
    knowledge: &Mutex<Knowledge>,
) -> Result<()> {
    let mut client = Client::connect(format!("http://{control}"))
        .await
        .context("connecting to weir-control")?;
    let (requests, outbound) = mpsc::channel(64);
    requests
        .send(subscription(HOST_TABLE_TYPE, vec![cluster.to_owned()]))
        .await?;
    let mut responses = client
        .delta_aggregated_resources(ReceiverStream::new(outbound))
        .await?
        .into_inner();
    let mut shards = 0;
    while let Some(response) = responses.message().await? {
        requests.send(acceptance(&response)).await?;
        for resource in &response.resources {
            let wanted = take(resource, &response.type_url, knowledge)?;
            if let Some(wanted) = wanted.filter(|wanted| *wanted != shards) {
                shards = wanted;
                let names = (0..shards).map(|shard| cache_shard_name(cluster, shards, shard));
                let subscription = subscription(CACHE_SHARD_TYPE, names.collect());
                requests.send(subscription).await?;
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

fn subscription(kind: &str, names: Vec<String>) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(Node {
            // Of two streams with one name weir-control keeps the newest.
            id: format!("picker-{}", std::process::id()),
            ..Default::default()
        }),
        type_url: kind.to_owned(),
        resource_names_subscribe: names,
        ..Default::default()
    }
}

fn acceptance(response: &DeltaDiscoveryResponse) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        type_url: response.type_url.clone(),
        response_nonce: response.nonce.clone(),
        ..Default::default()
    }
}
