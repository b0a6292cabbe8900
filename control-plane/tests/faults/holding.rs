// SPDX-License-Identifier: Apache-2.0
//! Requests that wait in the sidecar for a host.

use serde_json::json;
use tokio::task::JoinHandle;

use crate::client::{Answer, keyed};
use crate::hosts::Host;
use crate::world::{Plan, World};

const HELD: &str = "weir_held_requests";

fn ended(how: &str) -> String {
    format!("weir_held_total{{reason=\"{how}\"}}")
}

/// Two hosts that let nobody in as soon as one job is queued; requests wait for a minute.
async fn start() -> (World, [Host; 2]) {
    let hosts = [Host::start().await, Host::start().await];
    let rules = json!({
        "policy": {
            "overload": "breaker", "breaker_queued_jobs": 0, "holding": {"for_eligible": "60s"},
            "stale_after": "30s",
        },
        "scrape": {"interval": "50ms"},
    });
    let plan = Plan::hosts(hosts.iter().map(Host::row).collect());
    let plan = plan.with(json!({"clusters": {"rules": rules}}));
    (plan.start().await, hosts)
}

/// Sends requests until one is held.
async fn one_is_held(world: &World, headers: &[(&'static str, String)]) -> JoinHandle<Answer> {
    let send = || {
        let (caller, headers) = (world.caller(), headers.to_vec());
        tokio::spawn(async move { caller.send("/", &headers).await })
    };
    let waiting = std::cell::RefCell::new(send());
    let held = async || {
        if world.envoy_metric(HELD).await == Some(1.0) {
            return Some(());
        }
        // It came before the table did.
        if waiting.borrow().is_finished() {
            waiting.replace(send());
        }
        None
    };
    world.until("a held request", held).await;
    waiting.into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_waits_while_all_hosts_are_over_their_level_and_goes_on_when_one_opens() {
    let (world, [first, second]) = start().await;
    first.says(2, 1);
    second.says(2, 1);
    let waiting = one_is_held(&world, &keyed(0)).await;
    assert!(!waiting.is_finished());
    second.says(1, 0);
    let answer = waiting.await.unwrap();
    assert_eq!(
        (answer.status, answer.host),
        (Some(200), Some(second.address))
    );
    assert!(!answer.reason.starts_with("held"), "{answer:#?}");
    world.until_envoy(HELD, |held| held == 0.0).await;
    world.until_envoy(&ended("sent"), |sent| sent == 1.0).await;
    world
        .until_control("weir_control_held_total", |held| held == 1.0)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_leaves_leaves_nothing_behind() {
    let (world, hosts) = start().await;
    hosts.iter().for_each(|host| host.says(2, 1));
    let waiting = one_is_held(&world, &keyed(0)).await;
    waiting.abort();
    world.until_envoy(&ended("gone"), |gone| gone == 1.0).await;
    world.until_envoy(HELD, |held| held == 0.0).await;
    hosts.iter().for_each(|host| host.says(1, 0));
    // The proxy serves others as before.
    world.until_tables_decide().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_shed_when_its_caller_waits_no_longer() {
    let (world, hosts) = start().await;
    hosts.iter().for_each(|host| host.says(2, 1));
    let mut hurried = keyed(0);
    hurried.push(("x-envoy-upstream-rq-timeout-ms", "2000".to_owned()));
    let answer = one_is_held(&world, &hurried).await.await.unwrap();
    assert_eq!((answer.status, &*answer.reason), (Some(429), "overloaded"));
    assert!(answer.retry_after.is_some_and(|seconds| seconds >= 1));
    world.until_envoy(&ended("shed"), |shed| shed == 1.0).await;
    world.until_envoy(HELD, |held| held == 0.0).await;
}
