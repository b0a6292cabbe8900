// SPDX-License-Identifier: Apache-2.0
//! A Consul that says what a test wants, and what weir-control makes of it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3 as discovery;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::control::{Control, complaints, hosts};

/// What is answered at this moment. Each change is a new index.
#[derive(Clone)]
struct Said {
    index: u64,
    /// None: questions for them wait until there are some.
    hosts: Option<String>,
    trust_domain: &'static str,
}

struct Fake {
    address: SocketAddr,
    said: Arc<watch::Sender<Said>>,
    server: JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Fake {
    async fn start(hosts: Option<String>) -> Self {
        let first = Said {
            index: 5,
            hosts,
            trust_domain: "a.consul",
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let said = Arc::new(watch::channel(first).0);
        let shared = said.clone();
        let app = axum::Router::new().fallback(async move |uri: Uri| answer(&uri, &shared).await);
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            address,
            said,
            server,
        }
    }

    fn say(&self, hosts: Option<String>) {
        self.change(|said| said.hosts = hosts);
    }

    fn change(&self, change: impl FnOnce(&mut Said)) {
        self.said.send_modify(|said| {
            said.index += 1;
            change(said);
        });
    }

    fn settings(&self) -> String {
        format!(
            "consul: {{ address: \"http://{}\", wait: 600s }}",
            self.address
        )
    }
}

async fn answer(uri: &Uri, said: &watch::Sender<Said>) -> Response {
    let mut said = said.subscribe();
    let query = uri.query().unwrap_or_default();
    let index = query
        .split('&')
        .find_map(|field| field.strip_prefix("index="));
    let index = index.map_or(0, |index| index.parse().unwrap());
    let of_hosts = uri.path() == "/v1/health/connect/rules";
    let newest = said
        .wait_for(|said| said.index > index && (said.hosts.is_some() || !of_hosts))
        .await
        .unwrap()
        .clone();
    let body = match uri.path() {
        "/v1/health/connect/rules" => newest.hosts.unwrap_or_default(),
        "/v1/connect/ca/roots" => format!("{{\"TrustDomain\":\"{}\"}}", newest.trust_domain),
        "/v1/catalog/service/rules" => "[{}]".into(),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    ([("X-Consul-Index", newest.index.to_string())], body).into_response()
}

/// Sidecars on these ports, each with the status of its check.
fn sidecars(ports: &[(u16, &str)]) -> Option<String> {
    let entries = ports.iter().map(|(port, status)| {
        json!({
            "Node": { "Node": "n", "Address": "127.0.0.1" },
            "Service": {
                "ID": format!("rules-{port}"), "Service": "rules-sidecar-proxy", "Kind": "connect-proxy",
                "Port": port, "Meta": { "zone": "a", "weir-capacity-millicores": "4000" },
                "Proxy": { "DestinationServiceName": "rules", "LocalServicePort": 9001 },
            },
            "Checks": [ { "Status": status } ],
        })
    });
    Some(Value::from_iter(entries).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_table_is_pushed_before_a_host_is_known_and_explain_says_why() {
    let fake = Fake::start(None).await;
    let control = Control::start(&fake.settings(), &[]).await;
    let asked =
        |cluster: &Value| cluster["sources"]["consul_roots"]["last_success_ms_ago"].is_u64();
    let cluster = control.until("the trust domain", asked).await;
    assert!(
        cluster["version"].is_null() && cluster["not_pushed"].is_string(),
        "{cluster}"
    );
    let (status, why) = control.page("/explain?cluster=rules").await;
    assert_eq!(status, 404);
    assert!(
        why.contains("no host of this cluster was found yet; proxies keep what they have"),
        "{why}"
    );
    fake.say(Some("[]".into()));
    let empty =
        |cluster: &Value| complaints(cluster, "consul").contains("Consul knows 1 instances");
    let cluster = control.until("a complaint", empty).await;
    assert!(
        cluster["version"].is_null(),
        "an empty answer is no table either: {cluster}"
    );
    let (_, why) = control.page("/explain?cluster=rules").await;
    assert!(
        why.contains("consul: Consul knows 1 instances of") && why.contains("no table is pushed"),
        "{why}"
    );
    fake.say(sidecars(&[(1, "passing")]));
    let cluster = control.has(&["127.0.0.1:1"]).await;
    assert!(
        cluster["not_pushed"].is_null() && complaints(&cluster, "consul").is_empty(),
        "{cluster}"
    );
    let (_, explained) = control.page("/explain?cluster=rules").await;
    let explained: Value = serde_json::from_str(&explained).unwrap();
    assert_eq!(
        (&explained["ranked"][0]["zone"], &explained["outcome"]),
        (&json!("a"), &json!("send"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_consul_says_the_last_hosts_that_could_be_used_stay() {
    let fake = Fake::start(sidecars(&[(1, "passing"), (2, "warning")])).await;
    let control = Control::start(&fake.settings(), &[]).await;
    let both = ["127.0.0.1:1", "127.0.0.1:2"];
    let cluster = control.has(&both).await;
    let first = &cluster["hosts"][0];
    assert_eq!(
        (&first["named_by"], &first["instance"]["id"]),
        (&json!("consul"), &json!("rules-1"))
    );
    assert_eq!(first["capacity_millicores"], 4000);
    fake.say(sidecars(&[(1, "passing"), (2, "critical")]));
    control.has(&both[..1]).await;
    let broken = [
        ("[]", "register each with connect { sidecar_service {} }"),
        ("{}", "bad_body: "),
        ("<html>", "bad_body: not a list of instances in JSON"),
    ];
    let critical = sidecars(&[(1, "critical"), (2, "critical")]).unwrap();
    let broken = broken.map(|(body, why)| (body.to_owned(), why));
    for (body, why) in broken
        .into_iter()
        .chain([(critical, "can be used: 2 critical")])
    {
        fake.say(Some(body));
        let told = |cluster: &Value| cluster["sources"]["consul"].to_string().contains(why);
        let cluster = control.until(why, told).await;
        assert_eq!(hosts(&cluster), both[..1]);
        assert!(!cluster["version"].is_null());
    }
    fake.say(sidecars(&[(2, "passing"), (3, "passing")]));
    control.has(&["127.0.0.1:2", "127.0.0.1:3"]).await;
    let (_, page) = control.page("/metrics").await;
    for result in ["ok", "bad_body"] {
        let counted = format!("weir_control_polls_total{{source=\"consul\",result=\"{result}\"}}");
        assert!(page.contains(&counted), "{page}");
    }
    assert!(
        !page.contains("config_loads_total{result=\"ok\"} 1"),
        "nobody changed the configuration: {page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_trust_domain_is_complained_of_until_it_is_the_old_one_again() {
    let fake = Fake::start(sidecars(&[(1, "passing")])).await;
    let control = Control::start(&fake.settings(), &[]).await;
    control.has(&["127.0.0.1:1"]).await;
    fake.change(|said| said.trust_domain = "b.consul");
    let moved = |cluster: &Value| {
        complaints(cluster, "consul_roots").contains("was \"a.consul\" and is \"b.consul\"")
    };
    control.until("a complaint", moved).await;
    let (_, explained) = control.page("/explain?cluster=rules").await;
    assert!(
        explained.contains("consul_roots: the trust domain was"),
        "{explained}"
    );
    fake.change(|said| said.trust_domain = "a.consul");
    let back = |cluster: &Value| complaints(cluster, "consul_roots").is_empty();
    control.until("no complaint", back).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_configuration_keeps_what_was_found_of_the_same_question() {
    let fake = Fake::start(sidecars(&[(1, "passing"), (2, "passing")])).await;
    let control = Control::start(&fake.settings(), &[]).await;
    control.has(&["127.0.0.1:1", "127.0.0.1:2"]).await;
    // It says nothing any more: what is known is from before.
    fake.say(None);
    let hosts = "hosts: [ { address: \"127.0.0.1:2\", capacity_millicores: 7 }, { address: \"127.0.0.1:9\" } ]";
    control.configure(&format!("{}, {hosts}", fake.settings()));
    let all = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:9"];
    let cluster = control.has(&all).await;
    let named = |host: usize| {
        cluster["hosts"][host]["named_by"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!([0, 1, 2].map(named), ["consul", "both", "configuration"]);
    assert_eq!(cluster["hosts"][1]["capacity_millicores"], 7);
    // Nobody answers this one.
    let other = fake
        .settings()
        .replace("consul: {", "consul: { service: other,");
    control.configure(&format!("{other}, {hosts}"));
    let waits = |cluster: &Value| complaints(cluster, "consul").contains("as the question before");
    let cluster = control.until("a complaint", waits).await;
    assert_eq!(self::hosts(&cluster), all);
    control.configure("hosts: [ { address: \"127.0.0.1:9\" } ]");
    let cluster = control.has(&["127.0.0.1:9"]).await;
    assert!(
        cluster["sources"].as_object().unwrap().is_empty(),
        "{cluster}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_has_a_table_from_before_keeps_it_until_hosts_are_found() {
    use discovery::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
    let fake = Fake::start(None).await;
    let control = Control::start(&fake.settings(), &[]).await;
    let resumes = discovery::DeltaDiscoveryRequest {
        node: Some(Node {
            id: "p".into(),
            ..Default::default()
        }),
        type_url: weir_tables::HOST_TABLE_TYPE.into(),
        resource_names_subscribe: vec!["rules".into()],
        initial_resource_versions: [("rules".to_owned(), "1.1".to_owned())].into(),
        ..Default::default()
    };
    let address = format!("http://{}", control.xds);
    let mut client = AggregatedDiscoveryServiceClient::connect(address)
        .await
        .unwrap();
    let (ask, requests) = tokio::sync::mpsc::channel(2);
    ask.send(resumes).await.unwrap();
    let requests = tokio_stream::wrappers::ReceiverStream::new(requests);
    let mut answers = client
        .delta_aggregated_resources(requests)
        .await
        .unwrap()
        .into_inner();
    let resumed = |page: &Value| page["proxies"][0]["proxy"] == "p";
    control.tables("a proxy", resumed).await;
    // It is heard, and nothing is said of what it has.
    let heard = answers.message().await.unwrap().unwrap();
    assert!(heard.resources.is_empty() && heard.removed_resources.is_empty());
    let accepts = discovery::DeltaDiscoveryRequest {
        type_url: weir_tables::HOST_TABLE_TYPE.into(),
        response_nonce: heard.nonce,
        ..Default::default()
    };
    ask.send(accepts).await.unwrap();
    fake.say(sidecars(&[(1, "passing")]));
    let first = answers.message().await.unwrap().unwrap();
    assert!(first.removed_resources.is_empty(), "{first:?}");
    assert_eq!(first.resources[0].name, "rules");
}
