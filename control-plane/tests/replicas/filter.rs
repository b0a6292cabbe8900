// SPDX-License-Identifier: Apache-2.0
//! A sidecar's filter as a replica sees it: the filter's own rules of what is taken, on a real stream.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prost::Message;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use weir_filter::index::{Index, Kind};
use weir_filter::stream::{self, Subscriptions};
use weir_tables::Meta;
use weir_tables::discovery::DeltaDiscoveryResponse;

use envoy_types::pb::envoy::service::discovery::v3 as discovery;

const LOOKS: usize = 4_500;
const PAUSE: Duration = Duration::from_millis(20);

/// What was taken and what was not, in order.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) taken: Vec<(Meta, Vec<u8>)>,
    pub(crate) at: Vec<Instant>,
    pub(crate) refused: Vec<String>,
    index: Index,
}

/// Asks for the table of `rules`. Its stream ends with it.
pub(crate) struct Filter {
    pub(crate) seen: Arc<Mutex<Seen>>,
    task: Option<tokio::task::JoinHandle<()>>,
    began: Instant,
}

impl Filter {
    /// A filter that has a stream to this replica.
    pub(crate) fn at(xds: SocketAddr) -> Self {
        let mut filter = Self {
            seen: Arc::default(),
            task: None,
            began: Instant::now(),
        };
        filter.moves(xds);
        filter
    }

    /// Another replica from now on; what it has, it keeps. It comes back there until it moves again.
    pub(crate) fn moves(&mut self, xds: SocketAddr) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        let (seen, began) = (self.seen.clone(), self.began);
        self.task = Some(tokio::spawn(async move {
            loop {
                // Whoever is dead or frozen ends it.
                let _ended = talk(xds, &seen, began).await;
                tokio::time::sleep(PAUSE).await;
            }
        }));
    }

    /// Waits for what was seen.
    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Seen) -> bool) {
        for _ in 0..LOOKS {
            if is(&self.seen.lock().unwrap()) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
        let seen = self.seen.lock().unwrap();
        let last = seen.taken.last().map(|(meta, _)| meta.to_string());
        panic!(
            "waited in vain for {what}; last taken {last:?}, refused {:?}",
            seen.refused
        );
    }

    /// Waits for a table of the leader of this lock index.
    pub(crate) async fn has_table_of(&self, index: u64) {
        let has = |seen: &Seen| seen.last() == Some(index);
        self.until(&format!("a table of lock index {index}"), has)
            .await;
    }

    /// Waits for two more tables.
    pub(crate) async fn gets_more(&self) {
        let before = self.seen.lock().unwrap().taken.len();
        self.until("more tables", |seen| seen.taken.len() >= before + 2)
            .await;
    }
}

impl Seen {
    /// Lock index of the newest table.
    pub(crate) fn last(&self) -> Option<u64> {
        self.taken.last()?.0.fence()
    }

    /// Bytes by version.
    pub(crate) fn tables(&self) -> BTreeMap<String, Vec<u8>> {
        let taken = self.taken.iter();
        taken
            .map(|(meta, body)| (meta.to_string(), body.clone()))
            .collect()
    }
}

async fn talk(
    xds: SocketAddr,
    seen: &Mutex<Seen>,
    began: Instant,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let endpoint = Endpoint::from_shared(format!("http://{xds}"))?
        .http2_keep_alive_interval(Duration::from_secs(1))
        .keep_alive_timeout(Duration::from_secs(1));
    let channel = endpoint.connect().await?;
    let mut client =
        discovery::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient::new(
            channel,
        );
    let (requests, outbound) = mpsc::channel(4);
    let wanted = ["rules".to_owned()].into();
    let mut subscriptions = Subscriptions::default();
    let first = {
        let seen = seen.lock().unwrap();
        subscriptions.request(Kind::Table, wanted, "sidecar", &seen.index)
    };
    // Its messages are a part of Envoy's.
    let first = first.unwrap().encode_to_vec();
    requests
        .send(discovery::DeltaDiscoveryRequest::decode(first.as_slice())?)
        .await?;
    let answer = client
        .delta_aggregated_resources(ReceiverStream::new(outbound))
        .await?;
    let mut responses = answer.into_inner();
    while let Some(response) = responses.message().await? {
        let bytes = response.encode_to_vec();
        let response = DeltaDiscoveryResponse::decode(bytes.as_slice())?;
        let answer = take(&response, &mut seen.lock().unwrap(), began.elapsed());
        requests
            .send(discovery::DeltaDiscoveryRequest::decode(answer.as_slice())?)
            .await?;
    }
    Ok(())
}

fn take(response: &DeltaDiscoveryResponse, seen: &mut Seen, now: Duration) -> Vec<u8> {
    let update = stream::check(response, Kind::Table, &seen.index, usize::MAX, false, now);
    assert!(update.removed.is_empty(), "{:?}", update.removed);
    let answer = stream::answer(response, &update).encode_to_vec();
    for (_, refusal) in update.refusals {
        seen.refused.push(refusal.to_string());
    }
    for new in update.accepted {
        seen.index
            .insert(Kind::Table, new.name, new.meta, new.says, now);
        seen.taken.push((new.meta, new.body.to_vec()));
        seen.at.push(Instant::now());
    }
    answer
}

impl Drop for Filter {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}
