// SPDX-License-Identifier: Apache-2.0
//! A sidecar that asks for more than there is.

use discovery::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Client;
use discovery::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3 as discovery;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Streaming};

use crate::program::{FREE, Program, until};
use crate::waits::within;

/// As the issue counts them.
const TYPES: usize = 32;
const NAMES: usize = 100_000;

const CLUSTERS: &str = "clusters: { rules: { hosts: [ { address: \"127.0.0.1:1\" } ] } }\n";
const HOSTS: &str = "type.googleapis.com/weir.v1.HostTable";

struct Subscriber {
    requests: mpsc::Sender<DeltaDiscoveryRequest>,
    responses: Streaming<DeltaDiscoveryResponse>,
}

fn request(node: &str, type_url: &str, names: Vec<String>) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(Node {
            id: node.to_owned(),
            ..Default::default()
        }),
        type_url: type_url.to_owned(),
        resource_names_subscribe: names,
        ..Default::default()
    }
}

impl Subscriber {
    async fn new(control: &Program, first: DeltaDiscoveryRequest) -> Self {
        let (requests, outbound) = mpsc::channel(1);
        let client = Client::connect(format!("http://{}", control.xds)).await;
        // The first answer may come before the first response, and must not wait for it.
        requests.send(first).await.unwrap();
        let mut client = client.unwrap();
        let answer = client.delta_aggregated_resources(ReceiverStream::new(outbound));
        Self {
            requests,
            responses: answer.await.unwrap().into_inner(),
        }
    }

    async fn tables(control: &Program, node: &str) -> Self {
        let mut subscriber = Self::new(control, request(node, HOSTS, vec!["rules".into()])).await;
        let table = subscriber.responses.message().await.unwrap().unwrap();
        assert_eq!(table.resources[0].name, "rules");
        subscriber
    }

    /// How it ends, if it does.
    async fn refusal(&mut self) -> Option<(Code, String)> {
        loop {
            match self.responses.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(status) => return Some((status.code(), status.message().to_owned())),
            }
        }
    }
}

fn refused(control: &Program, reason: &str) -> Option<u64> {
    let page = control.page("/metrics");
    let counter = format!("weir_xds_refused_total{{reason=\"{reason}\"}} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&counter));
    line.and_then(|count| count.parse().ok())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_names_of_each_of_many_types_end_their_stream_and_take_little_memory() {
    let control = Program::start(&format!("{FREE}{CLUSTERS}"), &[]);
    let honest = Subscriber::tables(&control, "honest").await;
    let before = control.most_memory();
    let names: Vec<String> = (0..NAMES).map(|name| format!("invented-{name}")).collect();
    let of = |number| {
        request(
            "greedy",
            &format!("type.googleapis.com/weir.v1.T{number}"),
            names.clone(),
        )
    };
    let mut greedy = Subscriber::new(&control, of(0)).await;
    for number in 1..TYPES {
        // Where the stream has ended nobody takes it.
        let _ = greedy.requests.send(of(number)).await;
    }
    // What the server has read when it answers this it has kept or refused.
    let last = request("greedy", HOSTS, vec!["rules".into()]);
    let _ = greedy.requests.send(last).await;
    let end = within("its refusal", greedy.refusal()).await;
    let megabytes = (control.most_memory() - before) >> 20;
    assert!(
        megabytes < 48,
        "{megabytes} MiB more for one stream, {end:?}"
    );
    let (code, message) = end.unwrap();
    assert_eq!(code, Code::ResourceExhausted, "{message}");
    assert!(message.contains("discovery.max_stream_bytes"), "{message}");
    until("the count", || {
        (refused(&control, "stream_bytes")? == 1).then_some(())
    });
    let log = control.log();
    assert!(
        log.contains("greedy") && log.contains("max_stream_bytes"),
        "{log}"
    );
    // The others are served.
    Subscriber::tables(&control, "another").await;
    drop(honest);
}
