// SPDX-License-Identifier: Apache-2.0
//! weir-control with hosts from a real API server of Kubernetes, which `cargo xtask test --only kube` builds.

mod chart;
mod cluster;
mod policies;
mod replicas;
mod traffic;

#[allow(dead_code)] // Other tests use more of it.
#[path = "../consul/control.rs"]
mod control;
#[allow(dead_code)]
#[path = "../replicas/filter.rs"]
mod filter;
#[allow(dead_code)]
#[path = "../replicas/group.rs"]
mod group;
#[allow(dead_code)]
#[path = "../inside/mod.rs"]
mod inside;
#[allow(dead_code)]
#[path = "../replicas/metered.rs"]
mod metered;
#[allow(dead_code)]
#[path = "../stage/mod.rs"]
mod stage;

use stage::{client, config, http, process, sidecar, tools, waits, world};

use std::path::Path;

use cluster::{Cluster, ENDPOINTS, slice};
use control::{Control, complaints, hosts};
use serde_json::Value;

/// How it is asked, by a token in a file beside the configuration.
const SETTINGS: &str =
    "kubernetes: { namespace: default, service: rules, port: http, kubeconfig: kubeconfig }";

fn error(cluster: &Value) -> String {
    let error = &cluster["sources"]["kubernetes"]["error"];
    error.as_str().unwrap_or_default().to_owned()
}

/// One with the token of this service account.
async fn control(cluster: &Cluster, account: &str) -> Control {
    let token = cluster.token(account).await;
    let kubeconfig = cluster.kube.kubeconfig_of(Path::new("token"));
    let files = [("kubeconfig", &*kubeconfig), ("token", &*token)];
    Control::start(SETTINGS, &files).await
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_a_services_endpoints_and_stay_while_the_api_server_is_away() {
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    cluster.apply_role(ENDPOINTS).await;
    for (number, state) in [(1, "ready"), (2, "ready"), (3, "ready"), (4, "out")] {
        cluster.create(&slice(number, state)).await;
    }
    let control = control(&cluster, "weir-control").await;
    let three = ["10.1.0.1:8080", "10.1.0.2:8080", "10.1.0.3:8080"];
    let found = control.has(&three).await;
    assert_eq!(found["hosts"][0]["named_by"], "kubernetes");
    assert_eq!(complaints(&found, "kubernetes"), "");

    cluster.replace(2, &slice(2, "terminating")).await;
    let drains = |cluster: &Value| cluster["hosts"][1]["state"] == "draining";
    control.until("a host that drains", drains).await;
    cluster.delete(2).await;
    control.has(&[three[0], three[2]]).await;

    cluster.kube.kill().unwrap();
    let away = |cluster: &Value| !error(cluster).is_empty();
    let found = control.until("an error", away).await;
    assert_eq!(hosts(&found), [three[0], three[2]]);
    cluster.kube.again().unwrap();
    cluster.create(&slice(5, "ready")).await;
    let found = control.has(&[three[0], three[2], "10.1.0.5:8080"]).await;
    assert_eq!(error(&found), "");

    // Nobody is left, and the last stay.
    for number in [1, 3, 4, 5] {
        cluster.delete(number).await;
    }
    let stays =
        |cluster: &Value| complaints(cluster, "kubernetes").contains("has no EndpointSlice");
    let found = control.until("a complaint", stays).await;
    assert!(!hosts(&found).is_empty());

    // Another namespace's account has a token that is as good, and no right.
    let stranger = self::control(&cluster, "stranger").await;
    let found = stranger.until("an error", away).await;
    let said = error(&found);
    for part in [
        "denied: 403: endpointslices.discovery.k8s.io is forbidden",
        "system:serviceaccount:weir-system:stranger",
        "a Role with get, list and watch of endpointslices",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(hosts(&found).is_empty());
}
