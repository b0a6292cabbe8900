// SPDX-License-Identifier: Apache-2.0
//! weir-control across a network.

use serde_json::{Value, json};

use crate::certificates::{Authority, Pair};
use crate::client::keyed;
use crate::world::{Plan, Tls};

/// weir-control and a sidecar of this name, by this authority.
fn files(authority: &Authority, name: &str) -> Tls {
    let [control, sidecar] = ["weir-control", name].map(|name| authority.sign(name));
    let files = |pair: Pair, names: [&'static str; 2]| {
        let [certificate, key] = names;
        [(certificate, pair.certificate), (key, pair.key)]
    };
    let mut all = vec![("ca.pem", authority.certificate.clone())];
    all.extend(files(control, ["control.pem", "control.key"]));
    all.extend(files(sidecar, ["sidecar.pem", "sidecar.key"]));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_and_reports_travel_by_tls_in_both_directions() {
    let authority = Authority::new();
    let all = files(&authority, "sidecar-1");
    let mut world = Plan::workers(2, &[]).tls(all).start().await;
    let caller = world.caller();
    for key in 0..20 {
        assert_eq!(caller.send("/", &keyed(key)).await.status, Some(200));
    }
    // Reports come by a stream of their own.
    world
        .until_control("weir_control_requests_total", |requests| requests >= 20.0)
        .await;
    world.prove_tables_arrive("random", "random").await;
}

/// A rule for who may do all that a sidecar does with the cluster `rules`.
fn rules(identity: &str) -> Value {
    json!({"authorization": [{
        "identity": identity, "clusters": ["rules"], "what": ["tables", "keys", "report"],
    }]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_goes_by_its_own_name_through_new_certificates_until_its_rule_goes() {
    let authority = Authority::new();
    let (us, others) = ("spiffe://mesh/ns/a/*", "spiffe://mesh/ns/b/*");
    let all = files(&authority, "spiffe://mesh/ns/a/sidecar");
    let plan = Plan::workers(2, &[]).tls(all).with(rules(us));
    let mut world = plan.start().await;
    let caller = world.caller();
    for key in 0..20 {
        assert_eq!(caller.send("/", &keyed(key)).await.status, Some(200));
    }
    world
        .until_control("weir_control_requests_total", |requests| requests >= 20.0)
        .await;

    // Another certificate of the listener, and by it whoever connects anew.
    let renewed = authority.sign_between("weir-control", 2020, 2041);
    world.replace("control.key", &renewed.key);
    world.replace("control.pem", &renewed.certificate);
    let ends = "weir_control_certificate_expiry_timestamp_seconds{name=\"xds.tls.certificate\"}";
    world
        .until_control(ends, |until| until == 2_240_611_200.0)
        .await;
    world.prove_tables_arrive("random", "random").await;
    world.restart_sidecar().await;
    world.prove_tables_arrive("baseline", "baseline").await;

    // Without a rule it is told nothing more, and nobody is refused for that.
    world.configure(rules(others));
    let denied = "weir_control_denied_total{what=\"tables\"}";
    world.until_control(denied, |denied| denied >= 1.0).await;
    let caller = world.caller();
    for key in 0..20 {
        assert_eq!(caller.send("/", &keyed(key)).await.status, Some(200));
    }
}
