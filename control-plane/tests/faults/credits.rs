// SPDX-License-Identifier: Apache-2.0
//! A host that limits its callers by credits: behind an Envoy of its own, which counts what the host has.

use serde_json::json;

use crate::bounces::{Guarded, metric};
use crate::client::{Answer, Headers};
use crate::hosts::WORKS;
use crate::load::Load;
use crate::world::{Plan, World};

/// The host's core does 50 such requests a second.
fn work(_: usize) -> Headers {
    vec![(WORKS, "1".to_owned())]
}

/// One host, and a caller's sidecar whose policy is that of credits. The host's Envoy has seen how long requests take.
async fn stage() -> (World, Guarded) {
    let host = Guarded::start("\"cores\": 1, \"target_delay\": \"100ms\"").await;
    let row = json!({"address": host.address, "capacity_millicores": 1000});
    let plan = Plan::hosts(vec![row]);
    let policy = json!({"overload": "breakwater", "holding": {"for_eligible": "100ms"}});
    let rules = json!({"policy": policy});
    let world = plan
        .with(json!({"clusters": {"rules": rules}}))
        .start()
        .await;
    idle(&world).await;
    (world, host)
}

/// One request after the other: none is refused.
async fn idle(world: &World) {
    let caller = world.caller();
    for number in 0..40 {
        let answer = caller.send("/", &work(number)).await;
        assert_eq!(answer.status, Some(200), "{answer:#?}");
    }
}

fn refused(answer: &&Answer) -> bool {
    answer.status == Some(429)
}

/// Of which the caller's own sidecar refused it.
fn held_back(answer: &&Answer) -> bool {
    answer.reason == "overloaded"
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overloaded_hosts_callers_keep_to_its_credits_and_an_idle_one_refuses_nothing() {
    let (world, host) = stage().await;
    let before = host.application.served();
    // Three times what the host can do.
    let load = Load::start(world.egress, 150, work);
    let enough = |answers: &[Answer]| answers.iter().filter(refused).count() >= 300;
    load.until("refused requests", 0, enough).await;
    let answers = load.finish().await;
    let done = host.application.served() - before;
    let well = answers
        .iter()
        .filter(|answer| answer.status == Some(200))
        .count();
    let refused: Vec<_> = answers.iter().filter(refused).collect();
    assert_eq!(
        well + refused.len(),
        answers.len(),
        "nothing else becomes of any"
    );
    assert_eq!(well, done, "nothing is done in vain");
    // A third is what can be done.
    assert!(6 * well >= answers.len(), "{well} of {}", answers.len());
    let by_caller = refused.iter().copied().filter(held_back).count();
    let by_host = metric(&host.envoy, "weir_inbound_refused_total").await as usize;
    assert_eq!(by_caller + by_host, refused.len());
    assert!(
        by_caller > by_host,
        "{by_caller} at the caller, {by_host} at the host"
    );
    for answer in refused {
        assert!(
            answer.retry_after.is_some_and(|seconds| seconds >= 1),
            "{answer:#?}"
        );
    }
    idle(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_caller_says_of_its_own_demand_reaches_no_host_and_credits_reach_no_caller() {
    let (world, _host) = stage().await;
    let own = vec![("x-weir-demand", "31337;id=00000000feedbeef".to_owned())];
    let answer = world.caller().send("/", &own).await;
    assert_eq!(answer.status, Some(200));
    // The application answers with what has reached it.
    for part in ["x-weir-demand", "31337", "feedbeef", "x-weir-credits"] {
        assert!(!answer.body.contains(part), "{}", answer.body);
    }
}
