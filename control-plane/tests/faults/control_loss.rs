// SPDX-License-Identifier: Apache-2.0
//! weir-control dead or frozen.

use crate::client::{Answer, keyed};
use crate::config::select;
use crate::load::{Load, assert_all_ok};
use crate::world::{Plan, World};

const STREAMS_OPENED: &str = "weir_filter_streams_opened_total";
const STALE_TABLES: &str = "weir_stale_tables";
const BY_CACHE: [&str; 3] = ["known_cached", "assumed_cached", "not_cached"];

/// A world whose hosts have every key, under load.
async fn start() -> (World, Load) {
    let world = Plan::workers(3, &[]).start().await;
    let load = Load::start(world.egress, 50, keyed);
    let known = |answers: &[Answer]| {
        answers
            .iter()
            .filter(|a| a.reason == "known_cached")
            .count()
    };
    load.until("known keys", 0, |answers| known(answers) >= 20)
        .await;
    (world, load)
}

/// Nothing is refused, and the filter goes on choosing by what it knew.
fn assert_chosen_by_cache(answers: &[Answer]) {
    assert_all_ok(answers);
    let by_cache = |answer: &&Answer| BY_CACHE.contains(&&*answer.reason);
    let other = answers.iter().find(|answer| !by_cache(answer));
    assert!(other.is_none(), "chosen otherwise: {other:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn when_weir_control_is_killed_the_last_tables_serve_until_it_is_back() {
    let (mut world, load) = start().await;
    let opened = world.envoy_metric(STREAMS_OPENED).await.unwrap();
    world.control = None;
    let killed = load.sent();
    load.next(20).await;
    world.until_envoy(STALE_TABLES, |stale| stale > 0.0).await;
    load.next(50).await;
    assert_chosen_by_cache(&load.since(killed));

    world.configure(select("baseline"));
    world.start_control();
    let new = |answers: &[Answer]| answers.last().is_some_and(|a| a.reason == "baseline");
    load.until("the new policy", killed, new).await;
    world.until_envoy(STREAMS_OPENED, |now| now > opened).await;
    world.until_envoy(STALE_TABLES, |stale| stale == 0.0).await;
    assert_all_ok(&load.finish().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_weir_control_is_frozen_the_last_tables_serve_until_it_goes_on() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let (mut world, load) = start().await;
    world.control.as_ref().unwrap().signal("STOP");
    let frozen = load.sent();
    world.until_envoy(STALE_TABLES, |stale| stale > 0.0).await;
    // The keep-alive of the connection tells Envoy that nobody is there.
    world
        .until_envoy("weir_filter_connected", |connected| connected == 0.0)
        .await;
    load.next(50).await;
    assert_chosen_by_cache(&load.since(frozen));

    world.configure(select("baseline"));
    world.control.as_ref().unwrap().signal("CONT");
    let new = |answers: &[Answer]| answers.last().is_some_and(|a| a.reason == "baseline");
    load.until("the new policy", frozen, new).await;
    world.until_envoy(STALE_TABLES, |stale| stale == 0.0).await;
    assert_all_ok(&load.finish().await);
}
