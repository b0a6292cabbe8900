// SPDX-License-Identifier: Apache-2.0
//! Another policy, other hosts, other shards in weir-control.yaml.

use serde_json::{Value, json};
use weir_policy::{Overload, Selection};

use crate::client::Answer;
use crate::steady::Steady;
use crate::world::{Plan, World};

fn rules(change: Value) -> Value {
    json!({"clusters": {"rules": change}})
}

/// Waits until the sidecar has as many shards of cache contents as are configured.
async fn until_shards(world: &World, shards: usize) {
    let accepted = async || {
        let tables = world.tables().await?;
        let filter = tables["proxies"]
            .as_array()?
            .iter()
            .find(|proxy| proxy["kind"] == "weir")?;
        let kinds = filter["accepted"].as_object()?;
        let shards_of = kinds
            .iter()
            .find(|(kind, _)| kind.ends_with("weir.v1.CacheShard"))?;
        let names = shards_of.1.as_object()?.keys();
        let newest = format!("rules/{shards}/");
        (names.filter(|name| name.starts_with(&newest)).count() == shards).then_some(())
    };
    world.until(&format!("{shards} shards"), accepted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_follow_each_other() {
    let mut world = Plan::workers(3, &[]).start().await;
    let load = Steady::start(world.egress).await;
    let policies = [
        (
            json!({"selection": "baseline", "overload": "dagor"}),
            "baseline",
        ),
        (
            json!({"selection": "rendezvous", "overload": "breaker"}),
            "rendezvous",
        ),
        (
            json!({"selection": "random", "overload": "breakwater", "ranked_hosts": 1}),
            "random",
        ),
        (
            json!({"selection": "hot_cold", "overload": "dynamic_breaker"}),
            "cold",
        ),
        (
            json!({"selection": "estimate", "overload": "none"}),
            "known_cached",
        ),
        (
            json!({"selection": "baseline", "ranked_hosts": 3}),
            "baseline",
        ),
        (
            json!({"selection": "dynamic", "overload": "slots", "holding": {"for_eligible": "1s", "for_cached": "100ms"}}),
            "known_cached",
        ),
    ];
    // A plan is of the cluster and not of its policy.
    let all = Selection::ALL.map(Selection::as_str);
    for selection in all.iter().filter(|name| **name != "caching_plan") {
        let is_of = |(policy, _): &(Value, _)| policy["selection"] == *selection;
        assert!(policies.iter().any(is_of), "{selection}");
    }
    let all = Overload::ALL.map(Overload::as_str);
    for overload in all {
        let is_of = |(policy, _): &(Value, _)| policy["overload"] == overload;
        assert!(policies.iter().any(is_of), "{overload}");
    }
    for (policy, reason) in policies {
        world.configure(rules(json!({ "policy": policy })));
        load.until(reason, |answer| answer.reason == reason).await;
    }
    load.assert_informed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn levels_move_by_another_rule() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let dagor = json!({"overload": "dagor"});
    let mut world = Plan::workers(3, &[])
        .with(rules(json!({ "policy": dagor })))
        .start()
        .await;
    let load = Steady::start(world.egress).await;
    for (control, target) in [("paper", "1s"), ("stalled_jobs", "3s"), ("steady", "500ms")] {
        let loads = "weir_control_config_loads_total{result=\"ok\"}";
        let before = world.control_metric(loads).await.unwrap_or(0.0);
        world.configure(rules(
            json!({"dagor": {"control": control, "target": target}}),
        ));
        world.until_control(loads, |now| now > before).await;
        load.next(30).await;
    }
    load.assert_informed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cache_contents_move_to_other_shards() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let mut world = Plan::workers(3, &[]).start().await;
    let load = Steady::start(world.egress).await;
    for shards in [16, 1, 8] {
        world.configure(rules(json!({"cache_shards": shards})));
        until_shards(&world, shards).await;
        load.until("a known key", |answer| answer.reason == "known_cached")
            .await;
    }
    world.configure(rules(json!({"cache_shards": 0})));
    load.until("no known key", |answer| answer.reason == "assumed_cached")
        .await;
    load.next(20).await;
    world.configure(rules(json!({"cache_shards": 4})));
    until_shards(&world, 4).await;
    load.until("a known key", |answer| answer.reason == "known_cached")
        .await;
    load.assert_informed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_leave_the_file_and_come_back() {
    // Two of three go at once, and are meant to.
    let at_once = rules(json!({"shrink_after": "0s"}));
    let world = Plan::workers(3, &[]).with(at_once).start().await;
    let load = Steady::start(world.egress).await;
    let all = world.addresses();
    for _ in 0..3 {
        world.set_hosts(&all[..1]);
        let others = |host: &Value| host["address"] != all[0].to_string();
        let gone = async || {
            let tables = world.tables().await?;
            let hosts = tables["clusters"]["rules"]["hosts"].as_array()?;
            (!hosts.iter().any(others)).then_some(())
        };
        world.until("one host", gone).await;
        // A burst at one host: none of it goes to hosts that have left once the table is there.
        load.next(50).await;
        let last = load.next(10).await;
        for answer in &last[last.len() - 5..] {
            assert_eq!(answer.host, Some(all[0]), "{answer:#?}");
        }
        world.set_hosts(&all);
        load.until("a host that came back", |answer| {
            answer.host.is_some_and(|host| host != all[0])
        })
        .await;
    }
    load.assert_informed().await;
}

/// weir-control's salt is in this file, and the filter's configuration has this one.
fn salted(file: &str, filter: &str) -> Value {
    let filter = json!({"clusters": {"rules": {"table": "rules", "key_salt": filter}}});
    json!({
        // What is assumed would hide what tables say.
        "clusters": {"rules": {"keys": {"salt_file": file}, "policy": {"assumed_cached": "0s"}}},
        "standalone": {"filter": {"config": filter}},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_known_by_salted_keys_and_a_wrong_salt_is_said() {
    const ONE: &str = "000102030405060708090a0b0c0d0e0f";
    const OTHER: &str = "00112233445566778899aabbccddeeff";
    let mut world = Plan::workers(3, &[]).start().await;
    world.replace("one", ONE);
    world.replace("other", OTHER);
    let load = Steady::start(world.egress).await;
    let known = |answer: &Answer| answer.reason == "known_cached";
    load.until("a known key", known).await;
    for (file, right, wrong) in [("one", ONE, OTHER), ("other", OTHER, ONE)] {
        world.configure(salted(file, wrong));
        let mut looks = 0;
        while load.next(40).await.iter().any(known) {
            looks += 1;
            assert!(looks < 30, "keys are known by another salt");
        }
        world.configure(salted(file, right));
        load.until("a known key", known).await;
    }
    let said = "as key_salt is not what weir-control has in keys.salt_file, of rules";
    assert!(world.sidecar.log().contains(said));
    load.assert_informed().await;
}
