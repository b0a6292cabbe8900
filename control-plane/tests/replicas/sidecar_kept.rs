// SPDX-License-Identifier: Apache-2.0
//! A real Envoy with two replicas as endpoints, under a steady load.

use serde_json::json;

use crate::agent::{Agent, program};
use crate::client::Answer;
use crate::config::select;
use crate::group::GROWN_MS;
use crate::process;
use crate::steady::Steady;
use crate::world::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn when_the_leader_is_killed_no_request_fails_and_tables_go_on_deciding() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, json!({})).await;
    let replicas = json!({
        "replicas": { "consul": { "address": agent.url() }, "address": "127.0.0.1:0" },
        "clusters": { "rules": { "policy": { "stale_after": "5s" } } },
    });
    let mut world = Plan::workers(3, &[]).with(replicas).start().await;
    let second = process::free_address();
    let _next = world.start_second_control(second);
    let sidecar = world.start_sidecar_of_both(second).await;
    let egress = sidecar.listener("egress").await;
    let load = Steady::start(egress).await;
    let grown = async || {
        let since = world.tables().await?["replica"]["since_ms"].as_u64()?;
        (since >= GROWN_MS).then_some(())
    };
    world.until("a leader of some age", grown).await;
    load.next(20).await;
    world.control = None;
    load.next(20).await;
    // A change that only the one that is left knows of, and pushes only when it leads.
    world.configure_second(second, select("baseline"));
    load.until("the new policy", |answer: &Answer| {
        answer.reason == "baseline"
    })
    .await;
    load.assert_informed().await;
}
