// SPDX-License-Identifier: Apache-2.0
//! Links between the filter and weir-control.

use serde_json::json;
use weirctl::doctor::Diagnosis;
use weirctl::doctor::finding::Verdict::Broken;

use crate::bench::{Plan, named};
use crate::certificates::Authority;
use crate::process;
use crate::sidecar::Sidecar;
use crate::tools;

#[tokio::test]
async fn a_control_cluster_that_envoy_has_not() {
    let (right, wrong) = (
        r#""control_cluster": "weir-control""#,
        r#""control_cluster": "weir-ctrl""#,
    );
    let bench = Plan::new().envoy(right, wrong).start().await;
    bench
        .until_named(
            Broken,
            "control_cluster",
            "\"weir-ctrl\", which this Envoy has not",
        )
        .await;
}

#[tokio::test]
async fn another_port_than_weir_controls() {
    let plan = Plan::new();
    let right = format!("port_value: {}", plan.xds.port());
    let wrong = format!("port_value: {}", process::free_address().port());
    let bench = plan.envoy(&right, &wrong).start().await;
    bench
        .until_named(Broken, "control_cluster", "no connection to")
        .await;
    bench.until_named(Broken, "stream", "has a stream of").await;
}

#[tokio::test]
async fn http_1_to_weir_control() {
    let from = "            http2_protocol_options:";
    let to = "            http_protocol_options: {}\n";
    let plan = Plan::new().part(
        from,
        "      load_assignment:\n        cluster_name: weir-control",
        to,
    );
    let bench = plan.start().await;
    bench
        .until_named(Broken, "control_cluster", "speaks HTTP/1.1")
        .await;
}

#[tokio::test]
async fn a_certificate_that_has_expired() {
    let plan = Plan::new();
    let authority = Authority::new();
    let server = authority.sign("weir-control");
    let client = authority.sign_between("spiffe://weir/caller", 2020, 2021);
    let ca = plan.file("ca.pem", &authority.certificate);
    let certificate = plan.file("control.pem", &server.certificate);
    let key = plan.file("control.key", &server.key);
    let own = plan.file("sidecar.pem", &client.certificate);
    let own_key = plan.file("sidecar.key", &client.key);
    let begin = "      load_assignment:\n        cluster_name: weir-control";
    let tls = format!(
        "      transport_socket:\n        name: envoy.transport_sockets.tls\n        typed_config:\n          \
         \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext\n          \
         sni: weir-control\n          common_tls_context:\n            tls_certificates:\n              \
         - certificate_chain: {{ filename: {own} }}\n                private_key: {{ filename: {own_key} }}\n            \
         validation_context: {{ trusted_ca: {{ filename: {ca} }} }}\n{begin}"
    );
    let tls_of_control =
        json!({"xds": {"tls": {"certificate": certificate, "key": key, "client_ca": ca}}});
    let bench = plan
        .envoy(begin, &tls)
        .control(tls_of_control)
        .start()
        .await;
    bench
        .until_named(Broken, "certificates", "sidecar.pem has expired")
        .await;
    bench
        .until_named(Broken, "stream", "nothing has come")
        .await;
}

#[tokio::test]
async fn a_table_that_weir_control_has_not() {
    let plan = Plan::new().clusters(r#"{ "rules": { "table": "rulez" } }"#);
    let bench = plan.start().await;
    bench
        .until_named(Broken, "tables", "wants table \"rulez\"")
        .await;
}

#[tokio::test]
async fn keys_that_are_salted_on_one_side() {
    let salt = "00112233445566778899aabbccddeeff";
    let salted = format!(r#"{{ "rules": {{ "table": "rules", "key_salt": "{salt}" }} }}"#);
    let bench = Plan::new().clusters(&salted).start().await;
    bench
        .until_named(Broken, "tables", "only the filter salts")
        .await;
}

#[tokio::test]
async fn two_envoys_of_one_id() {
    let bench = Plan::new().start().await;
    let replace = [
        ("port_value: 9901", "port_value: 0"),
        ("port_value: 15001", "port_value: 0"),
    ];
    let other = tools::envoy_config("static/envoy.yaml", &replace);
    let filter = tools::filter();
    let other = other.replace("/etc/weir/weir_filter.wasm", filter.to_str().unwrap());
    let other = Sidecar::start(&other).await;
    let envoys = [&bench.sidecar, &other].map(|one| one.admin.to_string().parse().unwrap());
    let diagnosis = Diagnosis::of(&[], &envoys).await;
    let words = "several Envoys have this node id";
    assert!(
        named(&diagnosis, Broken, "stream", words).is_some(),
        "{diagnosis}"
    );
}
