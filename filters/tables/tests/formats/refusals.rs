// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeSet;

use prost::Message;
use weir_policy::{MAX_HOSTS, Overload, Policy, Selection};
use weir_tables::{Meta, Refusal, decode_cache_shard, decode_host_table, encode_policy, v1};

use crate::samples::{CLUSTER, RECEIVED, SHARD, cache_shard, host_table};

fn refused_table(change: impl FnOnce(&mut v1::HostTable)) -> String {
    let mut table = host_table();
    change(&mut table);
    let refusal = decode_host_table(CLUSTER, &table.encode_to_vec(), RECEIVED).unwrap_err();
    refusal.to_string()
}

fn refused_shard(name: &str, change: impl FnOnce(&mut v1::CacheShard)) -> String {
    let mut shard = cache_shard();
    change(&mut shard);
    decode_cache_shard(name, &shard.encode_to_vec())
        .unwrap_err()
        .to_string()
}

#[test]
fn bytes_of_something_else_are_refused() {
    let refusal = decode_host_table(CLUSTER, &[0x0a, 0xff], RECEIVED)
        .unwrap_err()
        .to_string();
    assert!(
        refusal.starts_with("not a weir.v1.HostTable: "),
        "{refusal}"
    );
    let refusal = decode_cache_shard(SHARD, &[0x0a, 0xff])
        .unwrap_err()
        .to_string();
    assert!(
        refusal.starts_with("not a weir.v1.CacheShard: "),
        "{refusal}"
    );
}

#[test]
fn the_table_of_another_cluster_is_refused() {
    assert_eq!(
        refused_table(|table| table.cluster = "other".into()),
        r#"cluster: the resource "rules" carries the table of "other""#
    );
}

#[test]
fn unknown_policies_are_refused_with_those_that_are_known() {
    assert_eq!(
        refused_table(|table| table.policy.as_mut().unwrap().overload = 9),
        "policy.overload: 9 is not one that this version knows; known are none (1), breaker (2), dagor (3), dynamic_breaker (4), breakwater (5), slots (6)"
    );
    assert_eq!(
        refused_table(|table| table.policy.as_mut().unwrap().selection = -1),
        "policy.selection: -1 is not one that this version knows; known are baseline (1), random (2), rendezvous (3), dynamic (4), estimate (5), hot_cold (6), caching_plan (7)"
    );
}

/// The policies that a refusal lists.
fn listed(refusal: &str) -> BTreeSet<String> {
    let (_, known) = refusal.split_once("known are ").unwrap();
    known.split(", ").map(str::to_owned).collect()
}

#[test]
fn a_refusal_lists_every_policy_with_its_number() {
    let overload = |overload: Overload| {
        let policy = encode_policy(&Policy {
            overload,
            ..Policy::default()
        });
        format!("{} ({})", overload.as_str(), policy.overload)
    };
    let refused = refused_table(|table| table.policy.as_mut().unwrap().overload = 99);
    assert_eq!(listed(&refused), Overload::ALL.map(overload).into());
    let selection = |selection: Selection| {
        let policy = encode_policy(&Policy {
            selection,
            ..Policy::default()
        });
        format!("{} ({})", selection.as_str(), policy.selection)
    };
    let refused = refused_table(|table| table.policy.as_mut().unwrap().selection = 99);
    assert_eq!(listed(&refused), Selection::ALL.map(selection).into());
}

#[test]
fn a_host_is_in_a_zone_that_has_a_name() {
    let refusal = refused_table(|table| table.zones.clear());
    assert_eq!(
        refusal,
        "hosts[0].zone: 2 is not in 0..=0, the number of zones"
    );
    let many = |table: &mut v1::HostTable| table.zones = vec![String::new(); 257];
    assert_eq!(
        refused_table(many),
        "zones: 257 are more than the limit of 256"
    );
}

#[test]
fn what_hosts_do_is_something_that_is_known() {
    let refusal = refused_table(|table| table.policy.as_mut().unwrap().serves = 3);
    assert_eq!(
        refusal,
        "policy.serves: 3 is not one that this version knows; known are jobs (1), prompts (2)"
    );
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (count, expected) in [
        (0, "policy.ranked_hosts: 0 is not in 1..=8"),
        (9, "policy.ranked_hosts: 9 is not in 1..=8"),
    ] {
        let refusal =
            refused_table(|table| table.policy.as_mut().unwrap().ranked_hosts = Some(count));
        assert_eq!(refusal, expected);
    }
    for (holding, expected) in [
        (
            v1::Holding {
                for_eligible_ms: Some(60_001),
                ..Default::default()
            },
            "policy.holding.for_eligible: 60.001s is over 60s",
        ),
        (
            v1::Holding {
                max_held: Some(0),
                ..Default::default()
            },
            "policy.holding.max_held: 0 is not in 1..=10000",
        ),
    ] {
        let refusal = refused_table(|table| table.policy.as_mut().unwrap().holding = Some(holding));
        assert_eq!(refusal, expected);
    }
    let hedging = v1::Hedging {
        idle_percent: Some(101),
        ..Default::default()
    };
    assert_eq!(
        refused_table(|table| table.policy.as_mut().unwrap().hedging = Some(hedging)),
        "policy.hedging.idle_percent: 101 is not in 0..=100"
    );
    let refusal = refused_table(|table| {
        let policy = table.policy.as_mut().unwrap();
        policy.set_selection(v1::Selection::HotCold);
        policy.hot_cold_permille = Some(1001);
    });
    assert_eq!(refusal, "policy.hot_cold_permille: 1001 is not in 0..=1000");
    assert_eq!(
        refused_table(|table| table.policy.as_mut().unwrap().panic_percent = Some(101)),
        "policy.panic_percent: 101 is not in 0..=100"
    );
    for count in [3, 2048] {
        assert_eq!(
            refused_table(|table| table.cache_shards = count),
            format!("cache_shards: {count} is not 0 or a power of two up to 1024")
        );
    }
}

#[test]
fn host_fields_out_of_range_are_refused_with_the_host() {
    for state in [0, 4, -1] {
        assert_eq!(
            refused_table(|table| table.hosts[1].state = state),
            format!("hosts[1].state: {state} is not in 1..=3")
        );
    }
    assert_eq!(
        refused_table(|table| table.hosts[0].admission_level = Some(4097)),
        "hosts[0].admission_level: 4097 is not in 0..=4096"
    );
    assert_eq!(
        refused_table(|table| table.hosts[0].load.as_mut().unwrap().queued = vec![0; 33]),
        "hosts[0].load.queued: 33 is not in 0..=32 classes"
    );
}

#[test]
fn addresses_that_are_wrong_double_or_out_of_order_are_refused() {
    for address in [
        "",
        "host:80",
        "10.0.0.2",
        "10.0.0.2:",
        "10.0.0.2:080",
        "10.0.0.02:80",
        "[2001:DB8::1]:80",
        "10.0.0.2:70000",
        " 10.0.0.2:80",
    ] {
        assert_eq!(
            refused_table(|table| table.hosts[1].address = address.into()),
            format!("hosts[1].address: {address:?} is not ip:port in its canonical form")
        );
    }
    assert_eq!(
        refused_table(|table| table.hosts[1].address = "10.0.0.1:9000".into()),
        r#"hosts[1].address: "10.0.0.1:9000" is in the table twice"#
    );
    assert_eq!(
        refused_table(|table| table.hosts.swap(0, 1)),
        r#"hosts[1].address: "10.0.0.1:9000" comes before its predecessor in the order of bytes"#
    );
}

#[test]
fn more_hosts_than_the_limit_are_refused() {
    let refusal = refused_table(|table| {
        let host = table.hosts[1].clone();
        table.hosts.resize(MAX_HOSTS + 1, host);
    });
    assert_eq!(refusal, "hosts: 40001 are more than the limit of 40000");
}

#[test]
fn a_shard_under_another_name_is_refused() {
    assert_eq!(
        refused_shard("rules/4", |_| {}),
        r#"name: "rules/4" is not <cluster>/<shards>/<shard>"#
    );
    let refusal = refused_shard("rules/4/1", |_| {});
    assert_eq!(refusal, "keys[0]: belongs to shard 2, not to 1 of 4");
}

#[test]
fn a_malformed_shard_is_refused_with_the_place() {
    assert_eq!(
        refused_shard(SHARD, |shard| shard.keys.swap(0, 1)),
        "keys[1]: not above its predecessor"
    );
    assert_eq!(
        refused_shard(SHARD, |shard| shard.holders_end.truncate(2)),
        "holders_end: 2 entries for 3 keys"
    );
    assert_eq!(
        refused_shard(SHARD, |shard| shard.holders_end[2] = 9),
        "holders_end[2]: below its predecessor or beyond the 4 holders"
    );
    assert_eq!(
        refused_shard(SHARD, |shard| shard.holders.push(0)),
        "holders: 1 entries belong to no key"
    );
    assert_eq!(
        refused_shard(SHARD, |shard| shard.host_ids.truncate(1)),
        "holders[0]: host 1 of 1"
    );
}

#[test]
fn an_older_version_is_refused_with_both() {
    let meta = |version| Meta {
        epoch: 0xabc,
        version,
    };
    let refusal = Refusal::Older {
        offered: meta(3),
        current: meta(4),
    };
    assert_eq!(
        refusal.to_string(),
        "version: abc.3 is older than abc.4, which is in use"
    );
}

#[test]
fn a_refusal_is_one_short_line_whatever_it_repeats() {
    let long = "\n\u{1f980}".repeat(1 << 16);
    let refusals = [
        refused_table(|table| table.cluster = long.clone()),
        refused_table(|table| table.hosts[0].address = long.clone()),
        refused_shard(&long, |_| {}),
    ];
    for refusal in refusals {
        assert!(refusal.len() < 1024 && !refusal.contains('\n'), "{refusal}");
    }
}
