// SPDX-License-Identifier: Apache-2.0
//! The leader goes, in every way that there is.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::agent::{Agent, program};
use crate::filter::Filter;
use crate::group::{Replica, group, index};
use crate::metered::Wire;
use crate::process::free_address;

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_ends_hands_over_before_its_streams_end() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, json!({})).await;
    let mut replicas = group(&agent.url(), &["a", "b", "c"]).await;
    let third = Filter::at(replicas[2].xds);
    third.has_table_of(1).await;
    replicas[0].signal("TERM");
    replicas[0].ends().await;
    assert!(replicas[0].log().contains("gives up what it leads"));
    third.has_table_of(2).await;
    let leads = |page: &Value| page["replica"]["role"] == "leading";
    let mut leaders = 0;
    for replica in &replicas[1..] {
        let page = replica
            .until("the new leader", |page| index(page) == 2)
            .await;
        leaders += u32::from(leads(&page));
        replica.ready().await;
    }
    assert_eq!(leaders, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_leader_is_put_down_because_it_refuses_connections() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, json!({})).await;
    let mut replicas = group(&agent.url(), &["a", "b"]).await;
    let filter = Filter::at(replicas[1].xds);
    filter.has_table_of(1).await;
    replicas[0].is_grown().await;
    drop(replicas.remove(0));
    assert_eq!(replicas[0].leads().await, 2);
    filter.has_table_of(2).await;
    let log = replicas[0].log();
    assert!(log.contains("the leader refuses connections"), "{log}");
    assert!(filter.seen.lock().unwrap().refused.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_leader_that_is_started_again_takes_its_own_lock_back_at_once() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, json!({})).await;
    let xds = free_address();
    let at = json!({ "xds": { "listen": xds }, "replicas": { "address": xds } });
    let first = Replica::start(Some(&agent.url()), "a", at.clone());
    assert_eq!(first.leads().await, 1);
    drop(first);
    let again = Replica::start(Some(&agent.url()), "a", at);
    assert_eq!(again.leads().await, 2);
    let page = again.until("its age", |_| true).await;
    assert!(page["replica"]["complaint"].is_null(), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_frozen_follows_and_what_it_had_built_is_not_taken() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, json!({})).await;
    let replicas = group(&agent.url(), &["a", "b"]).await;
    let (a, b) = (&replicas[0], &replicas[1]);
    let mut filter = Filter::at(a.xds);
    filter.has_table_of(1).await;
    a.signal("STOP");
    // What the follower mirrored is served on, and in the end Consul frees the lock.
    filter.moves(b.xds);
    assert_eq!(b.leads().await, 2);
    filter.has_table_of(2).await;
    // Back at once, while it still believes that it leads.
    filter.moves(a.xds);
    a.signal("CONT");
    a.follows(b).await;
    filter.gets_more().await;
    let seen = filter.seen.lock().unwrap();
    let indices: Vec<u64> = seen.taken.iter().filter_map(|it| it.0.fence()).collect();
    assert!(indices.is_sorted(), "{indices:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_cut_off_from_a_leader_that_keeps_its_lock_serves_nobody() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, json!({})).await;
    let xds = free_address();
    let wire = Wire::to(xds).await;
    // Its tables are built anew each twenty minutes: when the wire is mended it has nothing new to say.
    let seldom = json!({ "rules": { "policy": { "stale_after": "1h" } } });
    let reached = json!({
        "xds": { "listen": xds }, "replicas": { "address": wire.address }, "clusters": seldom,
    });
    let a = Replica::start(Some(&agent.url()), "a", reached);
    a.leads().await;
    let b = Replica::start(Some(&agent.url()), "b", json!({ "clusters": seldom }));
    b.follows(&a).await;
    let filter = Filter::at(b.xds);
    filter.has_table_of(1).await;
    wire.cut();
    b.unready("not reached from here").await;
    // Why the filter's stream has ended.
    b.says("this weir-control is cut off from its leader").await;
    wire.mend();
    b.ready().await;
    let another = Filter::at(b.xds);
    another.has_table_of(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_consul_the_leader_goes_on_and_all_serve() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, json!({})).await;
    let replicas = group(&agent.url(), &["a", "b"]).await;
    let filters: Vec<Filter> = replicas.iter().map(|it| Filter::at(it.xds)).collect();
    let ports = agent.ports;
    drop(agent);
    let complains = |page: &Value| page["replica"]["complaint"].is_string();
    for (replica, role) in replicas.iter().zip(["leading", "following"]) {
        let page = replica.until("a complaint", complains).await;
        assert_eq!(page["replica"]["role"], role);
    }
    for filter in &filters {
        filter.gets_more().await;
        filter.gets_more().await;
    }
    // A Consul that knows nothing any more: the lock counts from one again.
    let _agent = Agent::start_at(&program, ports, json!({})).await;
    let settled = |page: &Value| page["replica"]["complaint"].is_null();
    let mut roles = Vec::new();
    for replica in &replicas {
        let page = replica.until("no complaint", settled).await;
        roles.push(page["replica"]["role"].as_str().unwrap().to_owned());
    }
    for filter in &filters {
        filter.gets_more().await;
    }
    assert!(roles.contains(&"leading".to_owned()), "{roles:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_cut_off_from_consul_goes_on_is_fenced_and_follows_when_it_hears_again() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, json!({})).await;
    let wire = Wire::to(SocketAddr::from(([127, 0, 0, 1], agent.ports.http))).await;
    let a = Replica::start(Some(&wire.url()), "a", json!({}));
    a.leads().await;
    let b = Replica::start(Some(&agent.url()), "b", json!({}));
    b.follows(&a).await;
    let mut filter = Filter::at(a.xds);
    filter.has_table_of(1).await;
    wire.cut();
    assert_eq!(b.leads().await, 2);
    // Those who are with the old leader get its tables, as before.
    filter.gets_more().await;
    filter.moves(b.xds);
    filter.has_table_of(2).await;
    // Those who come to it from the new one do not take them, as long as theirs are fresh.
    filter.moves(a.xds);
    let fenced = |seen: &crate::filter::Seen| {
        let refused = seen.refused.iter();
        refused
            .clone()
            .any(|why| why.contains("is of an older leader than"))
    };
    filter.until("a refusal", fenced).await;
    let page = a.until("its role", |_| true).await;
    assert_eq!(
        page["replica"]["role"], "leading",
        "it has not heard of the other"
    );
    wire.mend();
    a.follows(&b).await;
    filter.has_table_of(2).await;
}
