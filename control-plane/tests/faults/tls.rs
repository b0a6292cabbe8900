// SPDX-License-Identifier: Apache-2.0
//! weir-control across a network.

use crate::certificates::{Authority, Pair};
use crate::client::keyed;
use crate::world::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn tables_and_reports_travel_by_tls_in_both_directions() {
    let authority = Authority::new();
    let [control, sidecar] = ["weir-control", "sidecar-1"].map(|name| authority.sign(name));
    let files = |pair: Pair, names: [&'static str; 2]| {
        let [certificate, key] = names;
        [(certificate, pair.certificate), (key, pair.key)]
    };
    let mut all = vec![("ca.pem", authority.certificate.clone())];
    all.extend(files(control, ["control.pem", "control.key"]));
    all.extend(files(sidecar, ["sidecar.pem", "sidecar.key"]));
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
