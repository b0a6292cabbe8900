// SPDX-License-Identifier: Apache-2.0
//! A sidecar that dies and comes again.

use crate::client::keyed;
use crate::load::{Load, assert_all_ok};
use crate::world::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_that_was_killed_answers_from_its_first_request_and_has_one_stream() {
    let mut world = Plan::workers(2, &[]).start().await;
    let load = Load::start(world.egress, 50, keyed);
    load.next(20).await;
    drop(load);
    for _ in 0..2 {
        world.restart_sidecar().await;
        let caller = world.caller();
        for number in 0..10 {
            assert_all_ok(&[caller.send("/", &keyed(number)).await]);
        }
        world.until_tables_decide().await;
        world
            .until_control("weir_xds_streams{kind=\"weir\"}", |streams| streams == 1.0)
            .await;
        world
            .until_control("weir_control_reporting_proxies", |proxies| proxies == 1.0)
            .await;
    }
    world.prove_tables_arrive("baseline", "baseline").await;
}
