// SPDX-License-Identifier: Apache-2.0
//! Hooks of the dynamic module that panic: nobody's request fails for it.

use crate::client::keyed;
use crate::crash::crash;
use crate::load::{Load, assert_all_ok};
use crate::process;
use crate::world::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_hook_panics_goes_on_and_so_do_all_after_it() {
    if weir_needs::provided_or_skip("WEIR_FILTER_NATIVE").is_none() {
        return;
    }
    let plan = Plan::workers(2, &[]).filter(process::crashing_filter());
    let mut world = plan.start().await;
    let load = Load::start(world.egress, 20, keyed);
    for what in ["here", "owner"] {
        // Connections of their own, and so workers of chance.
        for _ in 0..8 {
            let answer = world.caller().send("/", &crash(what)).await;
            assert_eq!(answer.status, Some(200), "{answer:#?}");
        }
    }
    for hook in ["request_headers", "config_scheduled"] {
        let is_said = async || {
            let said = format!("weir panicked in {hook}: a test wants it");
            world.sidecar.log().contains(&said).then_some(())
        };
        world.until(hook, is_said).await;
    }
    world.prove_tables_arrive("baseline", "baseline").await;
    assert_all_ok(&load.finish().await);
    assert!(!world.sidecar.has_ended());
}
