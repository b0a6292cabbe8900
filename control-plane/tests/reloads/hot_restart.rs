// SPDX-License-Identifier: Apache-2.0
//! Envoy takes over from Envoy.

use crate::steady::Steady;
use crate::world::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn sidecars_that_take_over_from_each_other_lose_no_request() {
    let mut world = Plan::workers(3, &[]).hot_restarts().start().await;
    let load = Steady::start(world.egress).await;
    for epoch in 1..=2 {
        let mut parent = world.hot_restart(epoch).await;
        // Both live, and both have a filter of one name with a stream of its own.
        world
            .until_control("weir_xds_streams{kind=\"weir\"}", |streams| streams == 2.0)
            .await;
        load.next(50).await;
        load.until_ended("the parent", || parent.has_ended()).await;
        load.next(50).await;
        world
            .until_control("weir_xds_streams{kind=\"weir\"}", |streams| streams == 1.0)
            .await;
        world
            .until_control("weir_control_reporting_proxies", |proxies| proxies == 1.0)
            .await;
    }
    let superseded = "weir_xds_streams_superseded_total";
    world
        .until_control(superseded, |streams| streams == 0.0)
        .await;
    load.assert_informed().await;
    world.prove_tables_arrive("baseline", "baseline").await;
}
