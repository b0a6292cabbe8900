// SPDX-License-Identifier: Apache-2.0
//! The discovery server over real gRPC, on port 0.

use std::collections::BTreeMap;
use std::sync::Arc;

use control::Control;
use discovery::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient as Client;
use discovery::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3 as discovery;
use envoy_types::pb::google::rpc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Status, Streaming};
use waits::{until, within};
use weir_control::config::DiscoveryLimits;
use weir_control::xds::{XdsMetrics, types};
use weir_fleet::clients::ClientEvent;
use weir_fleet::snapshot::Resource;
use weir_fleet::standalone::ResourcesByType;

#[allow(dead_code)] // The tests with Envoy use more of it.
#[path = "envoy/control.rs"]
mod control;
mod logged;
#[allow(dead_code)] // Other tests use more of it.
mod waits;

const HOSTS: &str = "type.googleapis.com/weir.v1.HostTable";

const LIMITS: DiscoveryLimits = DiscoveryLimits {
    max_streams: 8,
    max_streams_per_proxy: 4,
    max_stream_bytes: 1 << 20,
    max_bytes: 3 << 19,
};

struct Server(Control);

impl Server {
    async fn start() -> Self {
        let address = "127.0.0.1:0".parse().unwrap();
        Self(Control::start(address, ResourcesByType::default(), LIMITS).await)
    }

    fn publish(&self, name: &str, version: &str) {
        let resource = Resource {
            version: version.into(),
            body: vec![7; 3].into(),
        };
        let resources = Arc::new(BTreeMap::from([(name.to_owned(), resource)]));
        self.0
            .publish([(HOSTS, resources.clone()), (types::CLUSTER, resources)].into());
    }

    async fn client(&self) -> Client<tonic::transport::Channel> {
        Client::connect(format!("http://{}", self.0.address))
            .await
            .unwrap()
    }

    /// A stream whose first request has been sent.
    async fn open(&self, first: DeltaDiscoveryRequest) -> Stream {
        let (requests, outbound) = mpsc::channel(8);
        requests.send(first).await.unwrap();
        self.stream(requests, outbound).await
    }

    /// The same, of a process of its proxy.
    async fn open_of(&self, process: &'static str, first: DeltaDiscoveryRequest) -> Stream {
        let (requests, outbound) = mpsc::channel(8);
        requests.send(first).await.unwrap();
        let mut request = Request::new(ReceiverStream::new(outbound));
        let process = MetadataValue::from_static(process);
        request.metadata_mut().insert("x-weir-process", process);
        let mut client = self.client().await;
        let answer = client.delta_aggregated_resources(request);
        Stream {
            requests,
            responses: answer.await.unwrap().into_inner(),
        }
    }

    async fn stream(
        &self,
        requests: mpsc::Sender<DeltaDiscoveryRequest>,
        outbound: mpsc::Receiver<DeltaDiscoveryRequest>,
    ) -> Stream {
        let mut client = self.client().await;
        let answer = client.delta_aggregated_resources(ReceiverStream::new(outbound));
        Stream {
            requests,
            responses: answer.await.unwrap().into_inner(),
        }
    }

    async fn event(&mut self) -> ClientEvent {
        self.0.events.recv().await.unwrap()
    }
}

struct Stream {
    requests: mpsc::Sender<DeltaDiscoveryRequest>,
    responses: Streaming<DeltaDiscoveryResponse>,
}

impl Stream {
    async fn next(&mut self) -> DeltaDiscoveryResponse {
        self.responses.message().await.unwrap().unwrap()
    }

    async fn end(&mut self) -> Status {
        waits::end(&mut self.responses).await
    }

    async fn answer(&self, response: &DeltaDiscoveryResponse, refusal: Option<&str>) {
        let refuse = |reason: &str| rpc::Status {
            message: reason.to_owned(),
            ..Default::default()
        };
        let answer = DeltaDiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            error_detail: refusal.map(refuse),
            ..Default::default()
        };
        self.requests.send(answer).await.unwrap();
    }
}

fn first(node: &str, type_url: &str, names: &[&str]) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(Node {
            id: node.to_owned(),
            ..Default::default()
        }),
        type_url: type_url.to_owned(),
        resource_names_subscribe: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_table_is_pushed_and_its_acceptance_and_refusal_are_told() {
    let mut server = Server::start().await;
    server.publish("rules", "1");
    let mut stream = server.open(first("a", HOSTS, &["rules"])).await;
    let ClientEvent::Connected {
        proxy,
        peer,
        weir,
        version,
        ..
    } = server.event().await
    else {
        panic!()
    };
    assert_eq!((&*proxy, weir, version), ("a", true, None));
    assert!(peer.unwrap().ip().is_loopback());

    let table = stream.next().await;
    assert_eq!(
        (&*table.resources[0].name, &*table.resources[0].version),
        ("rules", "1")
    );
    let body = table.resources[0].resource.as_ref().unwrap();
    assert_eq!((&*body.type_url, &*body.value), (HOSTS, [7; 3].as_slice()));
    stream.answer(&table, None).await;
    let ClientEvent::Acked { versions, .. } = server.event().await else {
        panic!()
    };
    assert_eq!(versions, [("rules".to_owned(), "1".into())]);

    server.publish("rules", "2");
    let table = stream.next().await;
    stream
        .answer(&table, Some("two hosts with one address"))
        .await;
    let ClientEvent::Nacked {
        reason, versions, ..
    } = server.event().await
    else {
        panic!()
    };
    assert_eq!(reason, "two hosts with one address");
    assert_eq!(versions, [("rules".to_owned(), "2".into())]);
    assert_eq!(server.0.metrics.resources_sent(HOSTS), 2);

    drop(stream);
    let ClientEvent::Disconnected { reason, .. } = server.event().await else {
        panic!()
    };
    assert!(!reason.is_empty());
}

#[test]
fn a_table_that_is_not_there_is_said_with_those_that_are() {
    let asks = async |log: &logged::Log| {
        let server = Server::start().await;
        server.publish("rules", "1");
        let _stream = server.open(first("a", HOSTS, &["rules", "rulez"])).await;
        until("a line of the log", async || {
            let lines = log.lines();
            let line = lines.into_iter().find(|line| line.contains("is not there"));
            line.ok_or("no such line")
        })
        .await
    };
    logged::Log::of(|log| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let line = runtime.block_on(asks(log));
        assert!(line.starts_with("WARN"), "{line}");
        assert!(line.contains(r#"proxy=a name="rulez""#), "{line}");
        assert!(line.contains(r#"tables=["rules"]"#), "{line}");
    });
}

#[tokio::test]
async fn the_newest_stream_of_a_filter_wins_and_envoys_own_is_left_alone() {
    let server = Server::start().await;
    server.publish("rules", "1");
    let mut envoy = server.open(first("a", types::CLUSTER, &[])).await;
    let mut other = server.open(first("b", HOSTS, &["rules"])).await;
    let mut older = server.open(first("a", HOSTS, &["rules"])).await;
    for stream in [&mut envoy, &mut other, &mut older] {
        let response = stream.next().await;
        stream.answer(&response, None).await;
    }
    let mut newer = server.open(first("a", HOSTS, &["rules"])).await;
    assert_eq!(older.end().await.code(), Code::Aborted);
    newer.next().await;
    server.publish("rules", "2");
    for stream in [&mut envoy, &mut other] {
        assert_eq!(stream.next().await.resources[0].version, "2");
    }
}

/// As while an Envoy takes over from another.
#[tokio::test]
async fn two_processes_of_a_proxy_keep_a_stream_each() {
    let server = Server::start().await;
    server.publish("rules", "1");
    let of = async |process| {
        let mut stream = server.open_of(process, first("a", HOSTS, &["rules"])).await;
        let response = stream.next().await;
        stream.answer(&response, None).await;
        stream
    };
    let (mut parent, mut child) = (of("1f").await, of("2e").await);
    let mut newer = of("2e").await;
    assert_eq!(child.end().await.code(), Code::Aborted);
    server.publish("rules", "2");
    for stream in [&mut parent, &mut newer] {
        assert_eq!(stream.next().await.resources[0].version, "2");
    }
}

#[tokio::test]
async fn a_superseded_stream_whose_client_does_not_read_makes_room_at_once() {
    let mut server = Server::start().await;
    server.publish("rules", "1");
    let _stuck = server.open(first("a", HOSTS, &["rules"])).await;
    let _newer = server.open(first("a", HOSTS, &["rules"])).await;
    let ended = async {
        loop {
            if let ClientEvent::Disconnected { reason, .. } = server.event().await {
                return reason;
            }
        }
    };
    assert_eq!(within("the end of the stream", ended).await, "superseded");
}

#[tokio::test]
async fn a_stream_without_a_node_id_is_refused() {
    let server = Server::start().await;
    let status = server.open(first("", HOSTS, &["rules"])).await.end().await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("node.id"), "{status}");
}

#[tokio::test]
async fn a_request_over_the_limits_ends_its_stream_only() {
    let server = Server::start().await;
    server.publish("rules", "1");
    let mut good = server.open(first("good", HOSTS, &["rules"])).await;
    good.next().await;
    let many = names(20_000);
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let status = server.open(first("many", HOSTS, &many)).await.end().await;
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("discovery.max_stream_bytes"));
    let (requests, outbound) = mpsc::channel(1);
    let large = "x".repeat(5 << 20);
    requests
        .send(first("large", HOSTS, &[&large]))
        .await
        .unwrap();
    let answer = server
        .client()
        .await
        .delta_aggregated_resources(ReceiverStream::new(outbound))
        .await;
    if let Ok(answer) = answer {
        assert!(!matches!(answer.into_inner().message().await, Ok(Some(_))));
    }
    good.requests
        .send(first("", HOSTS, &["rules"]))
        .await
        .unwrap();
    drop(good);
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|i| i.to_string()).collect()
}

#[tokio::test]
async fn streams_beyond_the_limits_are_refused_by_name_and_those_that_end_make_room() {
    let server = Server::start().await;
    server.publish("rules", "1");
    // Of different processes, so that none supersedes another.
    let mut ones = Vec::new();
    for process in ["1", "2", "3", "4"] {
        let mut stream = server.open_of(process, first("a", HOSTS, &["rules"])).await;
        stream.next().await;
        ones.push(stream);
    }
    let mut five = server.open_of("5", first("a", HOSTS, &["rules"])).await;
    let status = five.end().await;
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("discovery.max_streams_per_proxy"));
    let mut others = Vec::new();
    for proxy in ["b", "c", "d", "e"] {
        let mut stream = server.open(first(proxy, HOSTS, &["rules"])).await;
        stream.next().await;
        others.push(stream);
    }
    let (requests, outbound) = mpsc::channel(8);
    requests.send(first("h", HOSTS, &["rules"])).await.unwrap();
    let mut client = server.client().await;
    let answer = client.delta_aggregated_resources(ReceiverStream::new(outbound));
    let status = answer.await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(
        status.message().contains("discovery.max_streams "),
        "{status}"
    );
    // When some have gone there is room again.
    others.clear();
    until("room", async || {
        let (requests, outbound) = mpsc::channel(8);
        requests.send(first("h", HOSTS, &["rules"])).await.unwrap();
        let answer = client.delta_aggregated_resources(ReceiverStream::new(outbound));
        answer.await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn names_that_all_streams_together_have_no_room_for_end_the_one_that_asks() {
    let server = Server::start().await;
    let many = names(4_000);
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    server.publish("rules", "1");
    let mut early = server.open(first("early", HOSTS, &["rules"])).await;
    let table = early.next().await;
    early.answer(&table, None).await;
    let mut one = server.open(first("one", HOSTS, &many)).await;
    one.next().await;
    let mut ended = server.open(first("two", HOSTS, &many)).await;
    let status = ended.end().await;
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("discovery.max_bytes"), "{status}");
    server.publish("rules", "2");
    early.next().await;
}

#[tokio::test]
async fn the_state_of_the_world_protocol_is_answered_with_what_to_use_instead() {
    let server = Server::start().await;
    let requests = tokio_stream::empty::<discovery::DiscoveryRequest>();
    let status = server
        .client()
        .await
        .stream_aggregated_resources(requests)
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    assert!(status.message().contains("DELTA_GRPC"), "{status}");
}

#[tokio::test]
async fn shutdown_ends_every_stream_and_the_server() {
    let server = Server::start().await;
    let mut stream = server.open(first("a", HOSTS, &["rules"])).await;
    let (requests, outbound) = mpsc::channel(1);
    let mut silent = server.stream(requests, outbound).await;
    let ends = async { (stream.end().await.code(), silent.end().await.code()) };
    let ((), ends) = tokio::join!(server.0.stop(), ends);
    assert_eq!(ends, (Code::Unavailable, Code::Unavailable));
}

#[test]
fn metrics_are_registered_under_the_callers_prefix() {
    let mut registry = prometheus_client::registry::Registry::with_prefix("weir_xds");
    XdsMetrics::default().register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(
        text.contains("\nweir_xds_streams_superseded_total 0"),
        "{text}"
    );
}

#[tokio::test]
async fn a_compressed_request_is_refused_before_a_byte_of_it_is_unpacked() {
    let server = Server::start().await;
    let mut request = Request::new(tokio_stream::iter([DeltaDiscoveryRequest::default()]));
    let gzip = MetadataValue::from_static("gzip");
    request.metadata_mut().insert("grpc-encoding", gzip);
    let answer = server
        .client()
        .await
        .delta_aggregated_resources(request)
        .await;
    let status = answer.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    assert!(status.message().contains("compressed"), "{status:?}");
}
