// SPDX-License-Identifier: Apache-2.0
//! Who gets the lock.

use serde_json::{Value, json};

use crate::agent::{Agent, Ports, program};
use crate::filter::Filter;
use crate::group::{Replica, group, index};

/// `/ready` says no, and why.
async fn unready(replica: &Replica, why: &str) {
    let says = |page: &Value| {
        let complaint = page["replica"]["complaint"].as_str();
        complaint.is_some_and(|complaint| complaint.contains(why))
    };
    let page = replica.until(why, says).await;
    assert_eq!(page["replica"]["role"], "waiting");
    let (status, text) = replica.page("/ready").await.unwrap();
    assert_eq!(status, 503);
    assert!(
        text.contains("no leader is known yet") && text.contains(why),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_leads_and_the_others_serve_its_tables_byte_for_byte() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, json!({})).await;
    let replicas = group(&agent.url(), &["a", "b", "c"]).await;
    let filters: Vec<Filter> = replicas.iter().map(|it| Filter::at(it.xds)).collect();
    for filter in &filters {
        filter.gets_more().await;
        filter.gets_more().await;
    }
    let first = filters[0].seen.lock().unwrap().tables();
    for filter in &filters[1..] {
        let theirs = filter.seen.lock().unwrap().tables();
        let common: Vec<&String> = theirs.keys().filter(|it| first.contains_key(*it)).collect();
        assert!(common.len() >= 2, "{:?} {:?}", first.keys(), theirs.keys());
        for version in common {
            assert_eq!(first[version], theirs[version], "{version}");
        }
    }
    for (replica, leads) in replicas.iter().zip([1.0, 0.0, 0.0]) {
        assert_eq!(replica.metric("weir_control_leader ").await, Some(leads));
        assert_eq!(replica.metric("weir_control_lock_index ").await, Some(1.0));
        assert_eq!(
            replica.metric("weir_control_leader_changes_total ").await,
            Some(1.0)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_one_asks_nobody_and_says_nothing_of_replicas() {
    let single = Replica::start(None, "single", json!({}));
    let filter = Filter::at(single.xds);
    filter.gets_more().await;
    assert!(
        filter.seen.lock().unwrap().last().is_none(),
        "no lock, no index"
    );
    single.ready().await;
    let page = single.until("a page", |_| true).await;
    assert!(page["replica"].is_null(), "{page}");
    assert_eq!(single.metric("weir_control_leader").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_consul_from_the_start_it_acts_alone_until_consul_answers() {
    let Some(program) = program() else { return };
    let ports = Ports::free();
    let url = format!("http://127.0.0.1:{}", ports.http);
    let replica = Replica::start(Some(&url), "a", json!({}));
    let filter = Filter::at(replica.xds);
    filter.gets_more().await;
    let page = replica
        .until("the lead", |page| page["replica"]["role"] == "leading")
        .await;
    assert_eq!(index(&page), 0);
    assert!(page["replica"]["complaint"].is_string(), "{page}");
    let _agent = Agent::start_at(&program, ports, json!({})).await;
    assert_eq!(replica.leads().await, 1);
    filter.has_table_of(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_somebody_else_is_left_alone_and_complained_of() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, json!({})).await;
    let session = agent.put("/v1/session/create", json!({}), "").await;
    let session: Value = serde_json::from_str(&session).unwrap();
    let session = session["ID"].as_str().unwrap();
    let theirs = json!("a deployment of theirs");
    let acquire = format!("/v1/kv/weir/leader?acquire={session}");
    agent.put(&acquire, theirs.clone(), "").await;
    let replica = Replica::start(Some(&agent.url()), "a", json!({}));
    unready(&replica, "is held by session").await;
    agent
        .put(&format!("/v1/session/destroy/{session}"), json!({}), "")
        .await;
    unready(&replica, "has a value that no replica wrote").await;
    let raw = agent.ask("GET", "/v1/kv/weir/leader?raw", None, "").await;
    assert_eq!(raw.as_deref(), Some(theirs.to_string().as_str()));
    agent.ask("DELETE", "/v1/kv/weir/leader", None, "").await;
    replica.leads().await;
    let page = replica
        .until("no complaint", |page| {
            page["replica"]["complaint"].is_null()
        })
        .await;
    assert_eq!(page["replica"]["role"], "leading");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_the_right_is_named_and_the_documented_rights_are_enough() {
    const ROOT: &str = "aaaaaaaa-0000-0000-0000-000000000001";
    let Some(program) = program() else { return };
    let acl = json!({ "acl": {
        "enabled": true, "default_policy": "deny", "tokens": { "initial_management": ROOT, "agent": ROOT },
    } });
    let agent = Agent::start(&program, acl).await;
    let rules =
        "key \"weir/leader\" { policy = \"write\" } session_prefix \"\" { policy = \"write\" }";
    let policy = json!({ "Name": "replica", "Rules": rules });
    agent.put("/v1/acl/policy", policy, ROOT).await;
    let token = json!({ "Policies": [ { "Name": "replica" } ] });
    let token: Value =
        serde_json::from_str(&agent.put("/v1/acl/token", token, ROOT).await).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, token["SecretID"].as_str().unwrap()).unwrap();
    let with = json!({ "replicas": { "consul": { "token_file": file } } });
    let url = agent.url();
    let good = Replica::start(Some(&url), "good", with);
    good.leads().await;
    drop(good);
    let denied = Replica::start(Some(&url), "denied", json!({}));
    unready(
        &denied,
        "must name a token with key:write of \"weir/leader\"",
    )
    .await;
}
