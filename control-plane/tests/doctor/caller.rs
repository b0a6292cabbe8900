// SPDX-License-Identifier: Apache-2.0
//! Links in the caller's Envoy.

use weirctl::doctor::Diagnosis;
use weirctl::doctor::finding::Verdict::{Broken, Poor};

use crate::bench::{Plan, named};
use crate::{process, tools};

#[tokio::test]
async fn nothing_is_said_where_every_link_holds() {
    Plan::new().start().await.until_sound().await;
}

#[tokio::test]
async fn an_envoy_that_is_not_there() {
    let nowhere = process::free_address().to_string().parse().unwrap();
    let diagnosis = Diagnosis::of(&[], &[nowhere]).await;
    let refused = "Connection refused";
    assert!(
        named(&diagnosis, Broken, "caller's Envoy", refused).is_some(),
        "{diagnosis}"
    );
}

#[tokio::test]
async fn a_listener_without_the_filter() {
    let router = "                  - name: envoy.filters.http.router";
    let plan = Plan::new().part("                  # WEIR 2", router, "");
    let bench = plan.start().await;
    bench.until_named(Broken, "filter", "root_id").await;
}

#[tokio::test]
async fn a_module_that_is_missing() {
    let plan = Plan::new();
    let filter = tools::envoy_config("static/filter.yaml", &[]);
    let filter = plan.file("filter.yaml", &filter);
    let watched = tools::envoy_config(
        "static/watched-filter.yaml",
        &[("/etc/weir/filter.yaml", &*filter)],
    );
    let router = "                  - name: envoy.filters.http.router";
    let bench = plan
        .part("                  # WEIR 2", router, &watched)
        .start()
        .await;
    bench
        .until_named(Broken, "filter", "came and was refused")
        .await;
}

#[tokio::test]
async fn a_plugin_for_a_cluster_that_envoy_has_not() {
    let plan = Plan::new().clusters(r#"{ "rulez": { "table": "rules" } }"#);
    let bench = plan.start().await;
    bench
        .until_named(
            Broken,
            "filter's settings",
            "\"rulez\", which this Envoy has not",
        )
        .await;
}

#[tokio::test]
async fn a_cluster_that_is_switched_off() {
    let off = r#"{ "rules": { "enabled": false, "table": "rules" } }"#;
    let bench = Plan::new().clusters(off).start().await;
    bench
        .until_named(Poor, "filter's settings", "switched off")
        .await;
}

#[tokio::test]
async fn a_policy_that_does_not_follow() {
    let plan = Plan::new().part("      load_balancing_policy:", "      # WEIR 5", "");
    let bench = plan.start().await;
    bench
        .until_named(Broken, "cluster's policy", "not followed")
        .await;
    bench
        .until_named_by_requests(Broken, "choices are followed", "another host")
        .await;
}

#[tokio::test]
async fn a_policy_that_reads_another_header() {
    let (header, other) = (
        "- header: x-gateway-destination-endpoint",
        "- header: x-other",
    );
    let bench = Plan::new().envoy(header, other).start().await;
    bench
        .until_named(Broken, "cluster's policy", "\"x-other\"")
        .await;
}

#[tokio::test]
async fn a_route_that_removes_the_header() {
    let route = "                        - match: { prefix: / }\n";
    let removes = format!(
        "{route}                          request_headers_to_remove: [x-gateway-destination-endpoint]\n"
    );
    let bench = Plan::new().envoy(route, &removes).start().await;
    bench
        .until_named(Broken, "the header's way", "request_headers_to_remove")
        .await;
}

#[tokio::test]
async fn a_route_without_retries() {
    let from = "                            # WEIR 3";
    let bench = Plan::new().part(from, "\n  clusters:", "").start().await;
    bench.until_named(Poor, "retries", "no retry_policy").await;
}

#[tokio::test]
async fn few_requests_at_a_time() {
    let from = "      # WEIR 6";
    let plan = Plan::new().part(from, "      # The same addresses", "");
    let bench = plan.start().await;
    bench
        .until_named(Poor, "circuit breakers", "1024 requests")
        .await;
}

#[tokio::test]
async fn other_hosts_than_those_of_weir_control() {
    let plan = Plan::new();
    let (other, another) = (process::free_address(), process::free_address());
    let hosts = format!(
        "          - lb_endpoints:\n              - endpoint:\n                  address:\n                    \
         socket_address: {{ address: 127.0.0.1, port_value: {} }}\n              - endpoint:\n                  \
         address:\n                    socket_address: {{ address: 127.0.0.1, port_value: {} }}\n\n",
        other.port(),
        another.port()
    );
    let plan = plan.part("          - lb_endpoints:", "    # WEIR 7", &hosts);
    let bench = plan.start().await;
    bench
        .until_named(Broken, "the same hosts", "no choice can be followed")
        .await;
}

#[tokio::test]
async fn callers_who_are_not_believed() {
    let (name, none) = (
        "\"control_cluster\":",
        "\"trust\": \"none\", \"control_cluster\":",
    );
    let bench = Plan::new().envoy(name, none).start().await;
    bench
        .until_named_by_requests(Poor, "trust", "not believed")
        .await;
}

#[tokio::test]
async fn requests_that_never_end() {
    let timeout = "                request_timeout: 300s\n";
    let bench = Plan::new().envoy(timeout, "").start().await;
    bench
        .until_named(Poor, "filter", "no request_timeout")
        .await;
}
