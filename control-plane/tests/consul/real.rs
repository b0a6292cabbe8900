// SPDX-License-Identifier: Apache-2.0
//! weir-control and the real Consul.

use serde_json::{Value, json};

use crate::agent::{Agent, program};
use crate::certificates::Authority;
use crate::control::{Control, complaints, hosts};

/// The mesh's id; its trust domain is made of it.
fn mesh(id: &str) -> Value {
    json!({ "connect": { "enabled": true, "ca_config": { "cluster_id": id } } })
}

const ID: &str = "11111111-2222-3333-4444-555555555555";

fn error(cluster: &Value, source: &str) -> String {
    cluster["sources"][source]["error"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn sidecars_come_and_go_with_their_services_checks() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, mesh(ID)).await;
    let settings = format!(
        "consul: {{ address: \"{}\", tags: [ v2 ], weight_millicores: 500 }}",
        agent.url()
    );
    let control = Control::start(&settings, &[]).await;
    let nobody = |cluster: &Value| {
        complaints(cluster, "consul").contains("Consul names no instance of \"rules\"")
    };
    control.until("a complaint", nobody).await;
    agent.register(1, "").await;
    agent.register(2, "").await;
    let both = ["127.0.0.1:21001", "127.0.0.1:21002"];
    let cluster = control.has(&both).await;
    let first = &cluster["hosts"][0];
    assert_eq!(first["instance"]["id"], "rules-1-sidecar-proxy");
    assert_eq!(
        (&first["zone"], &first["instance"]["node"]),
        (&json!("a"), &json!("node"))
    );
    assert_eq!(first["capacity_millicores"], 2000, "the sidecar's weight");
    agent.set(1, "fail").await;
    control.has(&both[1..]).await;
    agent.set(1, "warn").await;
    control.has(&both).await;
    agent.set(1, "fail").await;
    control.has(&both[1..]).await;
    agent.set(2, "fail").await;
    let critical =
        |cluster: &Value| complaints(cluster, "consul").contains("can be used: 2 critical");
    let cluster = control.until("all are critical", critical).await;
    assert_eq!(
        hosts(&cluster).len(),
        1,
        "the last that was well: {cluster}"
    );
    agent.set(1, "pass").await;
    control.has(&both[..1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_consul_names_by_dns_are_the_hosts_however_many_and_the_last_stay() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, mesh(ID)).await;
    // More than it tells in a datagram.
    for number in 1..=5 {
        agent.register(number, "").await;
    }
    let server = format!("server: \"127.0.0.1:{}\"", agent.ports.dns);
    let asked = format!("name: rules.service.consul, {server}, interval: 100ms");
    let control = Control::start(&format!("dns: {{ {asked} }}"), &[]).await;
    let all = [1, 2, 3, 4, 5].map(|number| format!("127.0.0.1:900{number}"));
    let all = all.each_ref().map(String::as_str);
    let cluster = control.has(&all).await;
    assert_eq!(cluster["hosts"][0]["named_by"], "dns");
    agent.set(1, "fail").await;
    control.has(&all[1..]).await;
    for number in 2..=5 {
        agent.set(number, "fail").await;
    }
    let stays = |cluster: &Value| complaints(cluster, "dns").contains("what was found last stays");
    let cluster = control.until("nobody is named", stays).await;
    assert!(
        complaints(&cluster, "dns").contains("has no SRV record"),
        "{cluster}"
    );
    agent.set(1, "pass").await;
    control.has(&all[..1]).await;
    // Addresses without ports.
    control.configure(&format!(
        "dns: {{ {asked}, port: 7000, metrics_port: 7001 }}"
    ));
    control.has(&["127.0.0.1:7000"]).await;
    drop(agent);
    let away = |cluster: &Value| !error(cluster, "dns").is_empty();
    let cluster = control.until("an error", away).await;
    assert_eq!(hosts(&cluster), ["127.0.0.1:7000"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn services_without_a_sidecar_are_named_and_without_connect_they_are_the_hosts() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, mesh(ID)).await;
    let service = json!({ "ID": "r", "Name": "rules", "Address": "127.0.0.1", "Port": 9001 });
    agent.put("/v1/agent/service/register", service, "").await;
    let control = Control::start(&format!("consul: {{ address: \"{}\" }}", agent.url()), &[]).await;
    let proxyless =
        |cluster: &Value| complaints(cluster, "consul").contains("no Connect proxy of one");
    let cluster = control.until("a complaint", proxyless).await;
    assert!(cluster["version"].is_null());
    control.configure(&format!(
        "consul: {{ address: \"{}\", connect: false }}",
        agent.url()
    ));
    let cluster = control.has(&["127.0.0.1:9001"]).await;
    assert!(complaints(&cluster, "consul").is_empty());
    control.configure(&format!(
        "consul: {{ address: \"{}\", connect: false, filter: \"Service.Nonsense ==\" }}",
        agent.url()
    ));
    let refused = |cluster: &Value| {
        error(cluster, "consul").contains("Failed to create boolean expression evaluator")
    };
    control.until("a refused filter", refused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consul_that_begins_anew_with_another_trust_domain_is_complained_of() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, mesh(ID)).await;
    agent.register(1, "").await;
    let control = Control::start(&format!("consul: {{ address: \"{}\" }}", agent.url()), &[]).await;
    control.has(&["127.0.0.1:21001"]).await;
    let known =
        |cluster: &Value| cluster["sources"]["consul_roots"]["last_success_ms_ago"].is_u64();
    control.until("the trust domain", known).await;
    let other = ID.replace('1', "6");
    let agent = agent.replace(&program, mesh(&other)).await;
    let gone = |cluster: &Value| {
        complaints(cluster, "consul").contains("what was found last stays: 1 hosts")
    };
    let cluster = control.until("an empty answer", gone).await;
    assert_eq!(hosts(&cluster), ["127.0.0.1:21001"]);
    let moved = |cluster: &Value| {
        let said = complaints(cluster, "consul_roots");
        said.contains(&format!("was \"{ID}.consul\" and is \"{other}.consul\""))
    };
    control.until("another trust domain", moved).await;
    agent.register(2, "").await;
    control.has(&["127.0.0.1:21002"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_denied_takes_nothing_away_and_a_better_one_is_used_at_once() {
    const GOOD: &str = "aaaaaaaa-0000-0000-0000-000000000001";
    const NOBODYS: &str = "aaaaaaaa-0000-0000-0000-000000000009";
    let Some(program) = program() else { return };
    let acl = json!({
        "enabled": true, "default_policy": "deny", "tokens": { "initial_management": GOOD, "agent": GOOD },
    });
    let mut settings = mesh(ID);
    settings["acl"] = acl;
    let agent = Agent::start(&program, settings).await;
    agent.register(1, GOOD).await;
    let consul = format!(
        "consul: {{ address: \"{}\", token_file: consul.token }}",
        agent.url()
    );
    let control = Control::start(&consul, &[("consul.token", NOBODYS)]).await;
    let denied = |cluster: &Value| {
        let why = error(cluster, "consul");
        why.starts_with("denied: 403: ") && why.contains("consul.token_file names a token")
    };
    let cluster = control.until("a denial", denied).await;
    assert!(cluster["version"].is_null());
    let token = control.folder().join("consul.token");
    std::fs::write(&token, format!("{GOOD}\n")).unwrap();
    let cluster = control.has(&["127.0.0.1:21001"]).await;
    assert_eq!(error(&cluster, "consul"), "");
    std::fs::write(&token, NOBODYS).unwrap();
    let cluster = control.until("another denial", denied).await;
    assert_eq!(hosts(&cluster), ["127.0.0.1:21001"]);
    // A token that may read the service and not its nodes gets an empty answer.
    let rules = "service_prefix \"\" { policy = \"read\" }";
    agent
        .put(
            "/v1/acl/policy",
            json!({ "Name": "half", "Rules": rules }),
            GOOD,
        )
        .await;
    let half = json!({ "Policies": [ { "Name": "half" } ] });
    let half: Value = serde_json::from_str(&agent.put("/v1/acl/token", half, GOOD).await).unwrap();
    std::fs::write(&token, half["SecretID"].as_str().unwrap()).unwrap();
    let hidden = |cluster: &Value| {
        let said = complaints(cluster, "consul");
        said.contains("the token of consul.token_file may not read \"rules\"")
            && said.contains("stays")
    };
    let cluster = control.until("an answer with nothing in it", hidden).await;
    assert_eq!(hosts(&cluster), ["127.0.0.1:21001"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_tls_both_sides_are_known_to_each_other() {
    let Some(program) = program() else { return };
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (server, client) = (authority.sign("localhost"), authority.sign("weir-control"));
    let mut settings = mesh(ID);
    settings["tls"] = json!({ "https": {
        "ca_file": "FOLDER/ca.pem", "cert_file": "FOLDER/server.pem", "key_file": "FOLDER/server.key",
        "verify_incoming": true,
    } });
    let files = [
        ("ca.pem", authority.certificate.as_str()),
        ("server.pem", &server.certificate),
        ("server.key", &server.key),
    ];
    let agent = Agent::start_with(&program, settings, &files).await;
    agent.register(1, "").await;
    let address = format!("address: \"https://localhost:{}\"", agent.ports.https);
    let files = [
        ("ca.pem", authority.certificate.as_str()),
        ("stranger.pem", &stranger.certificate),
        ("client.pem", &client.certificate),
        ("client.key", &client.key),
    ];
    let identity = "certificate: client.pem, key: client.key";
    let control = Control::start(
        &format!("consul: {{ {address}, ca: stranger.pem, {identity} }}"),
        &files,
    )
    .await;
    let unknown = |cluster: &Value| error(cluster, "consul").contains("certificate");
    control
        .until("a certificate that nobody knows", unknown)
        .await;
    control.configure(&format!("consul: {{ {address}, ca: ca.pem }}"));
    let anonymous = |cluster: &Value| {
        error(cluster, "consul")
            .to_lowercase()
            .contains("certificate")
    };
    control.until("a handshake that fails", anonymous).await;
    control.configure(&format!("consul: {{ {address}, ca: ca.pem, {identity} }}"));
    control.has(&["127.0.0.1:21001"]).await;
}
