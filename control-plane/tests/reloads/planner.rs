// SPDX-License-Identifier: Apache-2.0
//! A caching plan that weir-control learns, and a host that goes.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::json;

use crate::client::{Caller, keyed};
use crate::world::Plan;

const KEYS: usize = 20;

/// Where each key goes, once all go where they are planned.
async fn plan(caller: &Caller) -> Option<BTreeMap<usize, SocketAddr>> {
    let mut hosts = BTreeMap::new();
    for key in 0..KEYS {
        let answer = caller.send("/", &keyed(key)).await;
        (answer.status == Some(200) && answer.reason == "planned").then_some(())?;
        hosts.insert(key, answer.host?);
    }
    Some(hosts)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learned_plan_stays_and_where_a_host_is_gone_its_keys_alone_move() {
    let learned = json!({
        "policy": {"selection": "caching_plan"},
        "cache": null,
        // None moves of its own.
        "planner": {"every": "1s", "moved_per_minute": 0},
    });
    let plan_of_world = Plan::workers(3, &[]).with(json!({"clusters": {"rules": learned}}));
    let mut world = plan_of_world.start().await;
    let caller = world.caller();
    let first = world.until("a plan", async || plan(&caller).await).await;
    for _ in 0..3 {
        assert_eq!(plan(&caller).await.as_ref(), Some(&first), "it stays");
    }
    let evictions = "weir_control_plan_evictions_total{cluster=\"rules\"}";
    assert_eq!(world.control_metric(evictions).await, Some(0.0));

    let gone = world.workers[0].address;
    world.workers[0].kill();
    let elsewhere = async || {
        let now = plan(&caller).await?;
        now.values().all(|host| *host != gone).then_some(now)
    };
    let second = world.until("a plan without the host", elsewhere).await;
    let moved = first.iter().filter(|(key, host)| second[key] != **host);
    let moved: Vec<_> = moved.map(|(_, host)| *host).collect();
    assert!(!moved.is_empty() && moved.iter().all(|host| *host == gone));
    let moves = "weir_control_plan_moves_total{cluster=\"rules\",reason=\"host_gone\"}";
    // A sidecar may pass over a host before weir-control knows that it is gone.
    let all = Some(moved.len() as f64);
    let told = async || (world.control_metric(moves).await == all).then_some(());
    world.until("the moves", told).await;
}
