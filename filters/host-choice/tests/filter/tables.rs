// SPDX-License-Identifier: Apache-2.0
//! How tables and shards are asked for, taken, shared and forgotten.

use std::collections::BTreeMap;

use prost::Message;
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE};

use weir_harness::{
    A, Ads, B, Chosen, Proxy, RULES, TICKS, ask, cached, milliseconds, of_type, resource, table,
    up, vm,
};

#[test]
fn the_first_request_of_each_type_names_what_is_wanted() {
    let proxy = Proxy::start(RULES);
    proxy.run(TICKS);
    let ads = proxy.ads();
    let requests = ads.requests();
    assert_eq!(requests.len(), 1, "no shard is known of yet");
    assert_eq!(requests[0].node.as_ref().unwrap().id, "sidecar-1");
    assert_eq!(requests[0].type_url, HOST_TABLE_TYPE);
    assert_eq!(requests[0].resource_names_subscribe, ["rules"]);
    assert!(requests[0].initial_resource_versions.is_empty());

    let mut with_shards = table(1, up(&[A]));
    with_shards.cache_shards = 2;
    ads.accepts(&[resource(&with_shards)]);
    proxy.run(TICKS);
    let requests = ads.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].type_url, CACHE_SHARD_TYPE);
    assert_eq!(
        requests[0].resource_names_subscribe,
        ["rules/2/0", "rules/2/1"]
    );
}

#[test]
fn the_configured_name_stands_for_the_proxy() {
    let proxy = Proxy::start(r#"{"proxy":"gateway","clusters":{"rules":{}}}"#);
    proxy.run(TICKS);
    let node = proxy.ads().requests().remove(0).node;
    assert_eq!(node.unwrap().id, "gateway");
}

pub(crate) fn with_shards(shards: u32) -> Proxy {
    let mut good = table(7, up(&[A, B]));
    good.cache_shards = shards;
    let proxy = Proxy::with(RULES, &[good]);
    proxy
        .ads()
        .accepts(&cached(3, shards, &[("key-a", A), ("key-b", B)]));
    proxy.run(TICKS);
    proxy
}

#[test]
fn a_new_stream_tells_what_is_known_already() {
    let proxy = with_shards(2);
    proxy.ads().stream().close(14, "gone").unwrap();
    proxy.run(milliseconds(250));
    let requests = proxy.ads().requests();
    let versions = |version: &str, names: &[&str]| -> BTreeMap<String, String> {
        let pair = |name: &&str| ((*name).to_owned(), version.to_owned());
        names.iter().map(pair).collect()
    };
    let known: Vec<_> = requests
        .into_iter()
        .map(|request| request.initial_resource_versions)
        .collect();
    let shards = versions("1.3", &["rules/2/0", "rules/2/1"]);
    assert_eq!(known, [versions("1.7", &["rules"]), shards]);
}

#[test]
fn a_vm_that_starts_late_has_the_tables_before_its_first_tick() {
    let proxy = with_shards(2);
    let late = vm(&proxy.host, RULES).start().unwrap();
    let request = ask(&late, "key-b");
    assert_eq!(
        (request.first().as_str(), request.reason().as_str()),
        (B, "known_cached")
    );
}

#[test]
fn a_table_of_another_epoch_is_taken_whatever_its_version() {
    let proxy = Proxy::with(RULES, &[table(9, up(&[A]))]);
    let mut restarted = table(1, up(&[B]));
    restarted.epoch = 2;
    proxy.ads().accepts(&[resource(&restarted)]);
    proxy.run(TICKS);
    assert_eq!(ask(proxy.worker(), "key").first(), B);
}

#[test]
fn a_table_may_come_again_in_the_same_version() {
    let proxy = Proxy::with(RULES, &[table(9, up(&[A]))]);
    proxy.ads().accepts(&[resource(&table(9, up(&[A])))]);
}

#[test]
fn a_removed_table_leaves_the_choice_to_envoy_until_it_comes_back() {
    let proxy = with_shards(2);
    proxy.ads().remove(HOST_TABLE_TYPE, &["rules", "unknown"]);
    proxy.run(TICKS);
    for vm in &proxy.vms {
        let request = ask(vm, "key-a");
        assert_eq!(request.destination(), Vec::<String>::new());
        assert_eq!(request.reason(), "no_table");
    }
    proxy.run(TICKS);
    let mut good = table(8, up(&[A, B]));
    good.cache_shards = 2;
    proxy.ads().accepts(&[resource(&good)]);
    proxy.run(TICKS);
    let asked = proxy.ads().requests();
    assert_eq!(
        asked[0].resource_names_subscribe,
        ["rules/2/0", "rules/2/1"]
    );
    proxy.ads().accepts(&cached(4, 2, &[("key-b", B)]));
    proxy.run(TICKS);
    assert_eq!(ask(proxy.worker(), "key-b").reason(), "known_cached");
}

#[test]
fn a_removed_shard_is_forgotten_and_the_others_are_not() {
    let proxy = with_shards(1);
    assert_eq!(ask(proxy.worker(), "key-a").reason(), "known_cached");
    proxy.ads().remove(CACHE_SHARD_TYPE, &["rules/1/0"]);
    proxy.run(TICKS);
    assert_eq!(ask(proxy.worker(), "key-b").reason(), "not_cached");
    proxy.ads().accepts(&cached(4, 1, &[("key-c", B)]));
    proxy.run(TICKS);
    assert_eq!(ask(proxy.worker(), "key-c").reason(), "known_cached");
}

#[test]
fn a_changed_number_of_shards_is_followed_and_nothing_of_the_old_ones_stays() {
    let proxy = with_shards(4);
    let old = proxy.shared("shard/rules/4/0").unwrap();
    assert!(old.len() > 8 || proxy.shared("shard/rules/4/3").unwrap().len() > 8);
    let mut fewer = table(8, up(&[A, B]));
    fewer.cache_shards = 2;
    let ads = proxy.ads();
    ads.accepts(&[resource(&fewer)]);
    proxy.run(TICKS);
    let request = ads.requests().remove(0);
    assert_eq!(request.resource_names_subscribe, ["rules/2/0", "rules/2/1"]);
    assert_eq!(
        request.resource_names_unsubscribe,
        ["rules/4/0", "rules/4/1", "rules/4/2", "rules/4/3"]
    );
    assert_eq!(ask(proxy.worker(), "key-a").reason(), "not_cached");
    for shard in 0..4 {
        let value = proxy.shared(&format!("shard/rules/4/{shard}")).unwrap();
        assert_eq!(value.len(), 8, "the time alone");
    }
    ads.accepts(&cached(1, 2, &[("key-b", B)]));
    proxy.run(TICKS);
    assert_eq!(ask(proxy.worker(), "key-b").reason(), "known_cached");
}

#[test]
fn a_shard_that_comes_before_its_table_is_not_lost() {
    let proxy = with_shards(1);
    let ads = proxy.ads();
    let mut more = table(8, up(&[A, B]));
    more.cache_shards = 2;
    // In one turn of the owner, before the other VMs look.
    ads.accepts(&[resource(&more)]);
    proxy.vms[0].tick().unwrap();
    ads.accepts(&cached(1, 2, &[("key-b", B)]));
    proxy.run(TICKS);
    assert_eq!(ask(proxy.worker(), "key-b").reason(), "known_cached");
}

#[test]
fn what_was_not_asked_for_is_not_kept() {
    let proxy = Proxy::start(RULES);
    proxy.run(TICKS);
    let mut foreign = table(1, up(&[A]));
    foreign.cluster = "others".into();
    let ads: Ads = proxy.ads();
    ads.accepts(&[resource(&foreign), resource(&table(1, up(&[A])))]);
    assert_eq!(proxy.shared("table/others"), None);
    assert!(proxy.shared("table/rules").is_some());
}

/// A field that no release has yet: number 2047, a varint.
const NEW_FIELD: [u8; 3] = [0xf8, 0x7f, 0x01];

pub(crate) fn with_new_field(message: &impl Message) -> Vec<u8> {
    let mut bytes = message.encode_to_vec();
    bytes.extend(NEW_FIELD);
    bytes
}

#[test]
fn a_table_of_a_newer_weir_control_is_taken_and_reaches_every_vm() {
    let proxy = Proxy::start(RULES);
    proxy.run(TICKS);
    let newer = with_new_field(&table(1, up(&[A])));
    let ads = proxy.ads();
    ads.accepts(&[of_type(HOST_TABLE_TYPE, "rules".into(), newer.clone())]);
    proxy.run(TICKS);
    assert_eq!(ask(proxy.worker(), "key").first(), A);
    let kept = proxy.shared("table/rules").unwrap();
    assert!(
        kept.ends_with(&newer),
        "as it came: a newer VM reads all of it"
    );
}

#[test]
fn a_policy_that_only_a_newer_filter_knows_is_refused_and_the_last_good_table_stays() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let mut newer = table(2, up(&[B]));
    newer.policy.as_mut().unwrap().selection = 99;
    let refusal = proxy.ads().refuses(&[resource(&newer)]);
    assert!(refusal.contains("policy.selection: 99"), "{refusal}");
    proxy.run(TICKS);
    assert_eq!(ask(proxy.worker(), "key").first(), A);
}
