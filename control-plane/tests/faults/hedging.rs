// SPDX-License-Identifier: Apache-2.0
//! Requests that a second host gets too, while the first takes its time.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::{Answer, Caller};
use crate::hosts::Host;
use crate::world::{Plan, World};

/// So long a request may take before it counts as one that nobody else has got: many times the wait before
/// the second try.
const PATIENCE: Duration = Duration::from_secs(1);

/// Of 64 cores each; the second has so many more jobs that the first gets the requests and holds those for `/held`.
/// The caller keeps its connection, and so the thread of the proxy that knows the jobs.
async fn start(first_jobs: u32, second_jobs: u32) -> (World, [Host; 2], Caller) {
    let hosts = [Host::start().await, Host::start().await];
    hosts[0].says(first_jobs, 0);
    hosts[1].says(second_jobs, 0);
    hosts[1].release();
    let rules = json!({
        "policy": {"selection": "dynamic", "hedging": {"after": "50ms"}, "stale_after": "30s"},
        "scrape": {"interval": "50ms"},
    });
    let row = |host: &Host| {
        let mut row = host.row();
        row["capacity_millicores"] = Value::from(64_000);
        row
    };
    let plan = Plan::hosts(hosts.iter().map(row).collect());
    let plan = plan.with(json!({"clusters": {"rules": rules}}));
    let world = plan.start().await;
    // Jobs are known once all requests go to the host with fewer.
    let caller = world.caller();
    let settled = async || {
        for _ in 0..8 {
            let answer = caller.send("/", &Vec::new()).await;
            (answer.host == Some(hosts[0].address)).then_some(())?;
        }
        Some(())
    };
    world.until("jobs in tables", settled).await;
    (world, hosts, caller)
}

async fn ask(caller: &Caller) -> Option<Answer> {
    timeout(PATIENCE, caller.send("/held", &Vec::new()))
        .await
        .ok()
}

async fn retries(world: &World) -> Option<f64> {
    let retries = "envoy_cluster_upstream_rq_retry{envoy_cluster_name=\"rules\"}";
    world.envoy_metric(retries).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_hosts_request_goes_to_an_idle_one_too_and_the_slow_one_is_not_taken_for_dead() {
    let (world, [slow, idle], caller) = start(0, 20).await;
    let hedged = async || ask(&caller).await;
    let answer = world.until("an answer of the second host", hedged).await;
    assert_eq!(
        (answer.status, answer.host),
        (Some(200), Some(idle.address))
    );
    assert!(slow.holds(), "the first host never got it");
    // The slow one still comes first, though on a slow machine the other may get this too and answer sooner.
    let before = slow.served();
    caller.send("/", &Vec::new()).await;
    let reached = async || (slow.served() > before).then_some(());
    world
        .until("the next request at the slow host", reached)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_second_host_gets_a_request_while_all_are_busy() {
    let (world, [slow, _], caller) = start(64, 90).await;
    let before = retries(&world).await;
    for _ in 0..2 {
        assert!(ask(&caller).await.is_none(), "the second host answered");
    }
    assert!(slow.holds());
    assert_eq!(retries(&world).await, before);
}
