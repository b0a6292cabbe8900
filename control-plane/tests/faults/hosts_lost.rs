// SPDX-License-Identifier: Apache-2.0
//! Hosts that die, leave, or are not there.

use serde_json::json;

use crate::client::{Answer, Caller, keyed};
use crate::hosts::Host;
use crate::http;
use crate::load::{Load, assert_all_ok};
use crate::world::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn when_a_host_is_killed_its_requests_go_to_the_next_until_it_is_back() {
    let mut world = Plan::workers(3, &[]).start().await;
    let dead = world.workers[0].address;
    // Every other key is new: a host that nobody expects to know any gets its share of those.
    let keys = |number: usize| match number % 2 {
        0 => keyed(number),
        _ => vec![("x-weir-key", format!("new-{number}"))],
    };
    let load = Load::start(world.egress, 50, keys);
    let visited = |answers: &[Answer]| answers.iter().any(|answer| answer.host == Some(dead));
    load.until("a visit", 0, visited).await;

    // A request whose work may have begun is not repeated, so those on their way may fail.
    let answered = load.since(0).len();
    world.workers[0].kill();
    let killed = load.sent();
    let on_their_way = killed - answered;
    let down = async || {
        let tables = world.tables().await?;
        let hosts = tables["clusters"]["rules"]["hosts"].as_array()?.clone();
        let row = hosts
            .iter()
            .find(|host| host["address"] == dead.to_string())?;
        (row["state"] == "down").then_some(())
    };
    world.until("the dead host's row", down).await;
    load.next(50).await;
    let answers = load.since(killed);
    assert_all_ok(&answers);
    assert!(!visited(&answers), "answers of a dead host");
    let failed = load
        .since(0)
        .into_iter()
        .filter(|answer| answer.status != Some(200))
        .count();
    assert!(
        failed <= on_their_way,
        "{failed} failed, {on_their_way} were on their way"
    );
    // Nobody tries the dead one first any more.
    let retries = "envoy_cluster_upstream_rq_retry{envoy_cluster_name=\"rules\"}";
    let before = world.envoy_metric(retries).await;
    load.next(50).await;
    assert_eq!(world.envoy_metric(retries).await, before, "retries");

    world.start_worker(0);
    let back = load.sent();
    load.until("visits again", back, visited).await;
    let answers = load.finish().await;
    assert_all_ok(answers.iter().filter(|answer| answer.number >= killed));
}

/// The other shell tells Envoy the only host by a call, for which its cluster needs no policy.
#[tokio::test(flavor = "multi_thread")]
async fn where_one_host_is_named_envoy_goes_there_and_chooses_for_retries() {
    let one = json!({"clusters": {"rules": {"policy": {"ranked_hosts": 1}}}});
    let mut world = Plan::workers(3, &[]).with(one).start().await;
    let load = Load::start(world.egress, 50, keyed);
    let answers = load.until("100 answers", 0, |answers| answers.len() >= 100);
    assert_all_ok(&answers.await);
    let ignored = "weir_choices_ignored_total";
    assert_eq!(world.envoy_metric(ignored).await, Some(0.0));

    let answered = load.since(0).len();
    world.workers[0].kill();
    let killed = load.sent();
    load.next(50).await;
    let answers = load.finish().await;
    assert_all_ok(answers.iter().filter(|answer| answer.number >= killed));
    let failed = answers.iter().filter(|answer| answer.status != Some(200));
    let (failed, on_their_way) = (failed.count(), killed - answered);
    assert!(
        failed <= on_their_way,
        "{failed} failed, {on_their_way} were on their way"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_told_to_leave_gets_no_more_requests_while_it_finishes_its_jobs() {
    let world = Plan::workers(3, &["--drain-seconds", "3600"]).start().await;
    let leaving = &world.workers[0];
    // Its last job is longer than the test: it is there all the time.
    let last = Caller::new(leaving.address);
    let last = tokio::spawn(async move {
        let hour = vec![("x-emulate-run-us", "3600000000".to_owned())];
        last.send("/", &hour).await
    });
    let busy = async || {
        let (_, page) = http::get(leaving.address, "/metrics").await?;
        page.contains("weir_host_busy_cores 1").then_some(())
    };
    world.until("its last job", busy).await;
    let load = Load::start(world.egress, 50, keyed);
    leaving.terminate();
    let out = async || {
        let tables = world.tables().await?;
        let hosts = tables["clusters"]["rules"]["hosts"].as_array()?.clone();
        let row = hosts
            .iter()
            .find(|host| host["address"] == leaving.address.to_string())?;
        (row["state"] == "draining").then_some(())
    };
    world.until("the leaving host's row", out).await;
    let elsewhere = |answers: &[Answer]| {
        let mut last = answers.iter().rev().take(50);
        answers.len() >= 50 && last.all(|answer| answer.host != Some(leaving.address))
    };
    load.until("answers of the others", load.sent(), elsewhere)
        .await;
    assert_all_ok(&load.finish().await);
    assert!(!last.is_finished(), "its last job was dropped");
    last.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_notices_that_a_host_leaves_under_load() {
    let mut world = Plan::workers(3, &[]).start().await;
    let leaving = world.workers[0].address;
    let load = Load::start(world.egress, 50, keyed);
    let visited = |answers: &[Answer]| answers.iter().any(|answer| answer.host == Some(leaving));
    load.until("a visit", 0, visited).await;
    world.workers[0].terminate();
    // Each job is over at once: it is the notice that keeps the host until callers have heard.
    load.until_ended("the host", || world.workers[0].has_ended())
        .await;
    load.next(50).await;
    let answers = load.finish().await;
    assert_all_ok(&answers);
    let last = answers.iter().rev().take(50);
    assert!(last.clone().all(|answer| answer.host != Some(leaving)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_at_a_host_that_leaves_ends_well_and_new_ones_go_elsewhere() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let (first, second) = (Host::start().await, Host::start().await);
    let world = Plan::hosts(vec![first.row(), second.row()]).start().await;
    let caller = world.caller();
    let held = tokio::spawn(async move { caller.send("/held", &keyed(0)).await });
    let holds = async || (first.holds() || second.holds()).then_some(());
    world.until("a held request", holds).await;
    let (leaving, staying) = if first.holds() {
        (first, second)
    } else {
        (second, first)
    };

    let load = Load::start(world.egress, 50, keyed);
    world.set_hosts(&[staying.address]);
    let elsewhere = |answers: &[Answer]| {
        let last = answers.iter().rev().take(40);
        answers.len() >= 40
            && last
                .clone()
                .all(|answer| answer.host == Some(staying.address))
    };
    load.until("answers of the other host", 0, elsewhere).await;
    let gone = async || {
        let page = world.sidecar.page("/clusters").await?;
        (!page.contains(&format!("rules::{}::", leaving.address))).then_some(())
    };
    world.until("its end in Envoy", gone).await;
    assert_all_ok(&load.finish().await);

    assert!(!held.is_finished(), "answered by nobody");
    leaving.release();
    let answer = held.await.unwrap();
    assert_eq!(
        (answer.status, answer.host),
        (Some(200), Some(leaving.address))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_hosts_it_is_envoy_that_says_so_until_there_are_some() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let at_once = serde_json::json!({"clusters": {"rules": {"shrink_after": "0s"}}});
    let world = Plan::workers(2, &[]).with(at_once).start().await;
    let (caller, all) = (world.caller(), world.addresses());
    let load = Load::start(world.egress, 20, keyed);
    world.set_hosts(&[]);
    let refused = async || {
        let answer = caller.send("/", &keyed(0)).await;
        (answer.reason == "no_host" && answer.status == Some(503)).then_some(answer)
    };
    let answer = world.until("no_host", refused).await;
    assert!(answer.body.contains("no healthy upstream"), "{answer:#?}");
    world.set_hosts(&all);
    world.until_tables_decide().await;
    let back = load.sent();
    load.next(20).await;
    assert_all_ok(&load.since(back));
}

#[tokio::test(flavor = "multi_thread")]
async fn when_all_hosts_refuse_connections_weir_control_health_ignored_and_envoy_decides() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let mut world = Plan::workers(2, &[]).start().await;
    for worker in &mut world.workers {
        worker.kill();
    }
    world
        .until_control("weir_control_health_ignored", |suspects| suspects == 1.0)
        .await;
    let caller = world.caller();
    for number in 0..20 {
        let answer = caller.send("/", &keyed(number)).await;
        assert_eq!(answer.status, Some(503), "{answer:#?}");
        assert!(
            answer.body.contains("upstream connect error"),
            "not Envoy's word: {answer:#?}"
        );
        assert_ne!(answer.reason, "no_host", "{answer:#?}");
    }
    // One that is there is enough, whatever the table says of it.
    world.start_worker(1);
    let alive = world.workers[1].address;
    let answered = async || {
        let answer = caller.send("/", &keyed(0)).await;
        (answer.status == Some(200)).then_some(answer.host)
    };
    assert_eq!(world.until("an answer", answered).await, Some(alive));
    let answers = Load::start(world.egress, 50, keyed).next(50).await;
    assert_all_ok(&answers);
}
