// SPDX-License-Identifier: Apache-2.0
//! Resources that are refused with a NACK, and what goes on serving meanwhile.

use weir_tables::discovery::Resource;
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE, v1};
use weir_testkit::LogLevel;

use weir_harness::{
    A, B, Chosen, Proxy, RULES, TICKS, ask, cached, host, of_type, resource, shard, table, up,
};

fn bad_tables() -> Vec<(Resource, &'static str)> {
    let bytes = |value: Vec<u8>| of_type(HOST_TABLE_TYPE, "rules".into(), value);
    let mut unknown_policy = table(9, up(&[B]));
    unknown_policy.policy.as_mut().unwrap().selection = 99;
    let mut wrong_cluster = resource(&table(9, up(&[B])));
    wrong_cluster.name = "others".into();
    let mut odd_shards = table(9, up(&[B]));
    odd_shards.cache_shards = 3;
    let unknown_state = v1::Host {
        state: 7,
        ..host(B, v1::HostState::Up)
    };
    vec![
        (bytes(vec![0xff; 9]), "not a weir.v1.HostTable"),
        (bytes(vec![]), "carries the table of \"\""),
        (
            resource(&table(9, up(&[A, A]))),
            "hosts[1].address: \"10.0.0.1:80\" is in the table twice",
        ),
        (resource(&table(9, up(&["worker-1:80"]))), "is not ip:port"),
        (
            resource(&table(9, up(&[B, A]))),
            "comes before its predecessor",
        ),
        (
            resource(&table(9, vec![unknown_state])),
            "hosts[0].state: 7",
        ),
        (
            resource(&unknown_policy),
            "policy.selection: 99 is not one that this version knows",
        ),
        (resource(&odd_shards), "cache_shards: 3"),
        (
            wrong_cluster,
            "the resource \"others\" carries the table of \"rules\"",
        ),
        (
            resource(&table(4, up(&[B]))),
            "version: 1.4 is older than 1.5, which is in use",
        ),
    ]
}

fn bad_shards() -> Vec<(Resource, &'static str)> {
    let columns = |keys: &[u64], ends: &[u32], holders: &[u32]| v1::CacheShard {
        epoch: 1,
        version: 9,
        host_ids: vec![1],
        keys: keys.to_vec(),
        holders_end: ends.to_vec(),
        holders: holders.to_vec(),
        ..Default::default()
    };
    let first = |message: v1::CacheShard| shard(2, 0, &message);
    let older = v1::CacheShard {
        version: 1,
        ..columns(&[], &[], &[])
    };
    vec![
        (
            of_type(CACHE_SHARD_TYPE, "rules/2/0".into(), vec![0xff; 9]),
            "not a weir.v1.CacheShard",
        ),
        (
            of_type(CACHE_SHARD_TYPE, "rules/3/0".into(), vec![]),
            "is not <cluster>/<shards>/<shard>",
        ),
        (
            first(columns(&[9, 5], &[1, 2], &[0, 0])),
            "keys[1]: not above its predecessor",
        ),
        (
            first(columns(&[u64::MAX], &[1], &[0])),
            "keys[0]: belongs to shard 1, not to 0 of 2",
        ),
        (first(columns(&[5], &[1], &[2])), "holders[0]: host 1 of 1"),
        (first(older), "version: 1.1 is older than 1.3"),
    ]
}

fn good() -> Proxy {
    let mut good = table(5, up(&[A, B]));
    good.cache_shards = 2;
    let proxy = Proxy::with(RULES, &[good]);
    proxy.ads().accepts(&cached(3, 2, &[("key", B)]));
    proxy.run(TICKS);
    proxy
}

#[test]
fn each_bad_resource_is_refused_with_the_reason_and_the_last_good_one_keeps_serving() {
    let proxy = good();
    let bad = bad_tables().into_iter().chain(bad_shards());
    for (refused, (resource, expected)) in bad.enumerate() {
        let reason = proxy.ads().refuses(&[resource]);
        assert!(reason.contains(expected), "{reason} / {expected}");
        proxy.run(TICKS);
        for vm in &proxy.vms {
            let request = ask(vm, "key");
            assert_eq!(
                (request.first().as_str(), request.reason().as_str()),
                (B, "known_cached")
            );
            request.answered_by(B);
        }
        let logged = proxy.vms[0].logs_at(LogLevel::Warn);
        assert!(logged.last().unwrap().contains(expected), "{logged:?}");
        let counted = proxy.host.metrics().counter("weir_resources_refused_total");
        assert_eq!(counted, refused as u64 + 1);
    }
}

#[test]
fn good_resources_beside_a_bad_one_are_taken() {
    let proxy = good();
    let mut shards = cached(4, 2, &[("key", A)]);
    shards.push(of_type(CACHE_SHARD_TYPE, "rules/2/7".into(), vec![]));
    let reason = proxy.ads().refuses(&shards);
    assert!(reason.starts_with("rules/2/7: name:"), "{reason}");
    proxy.run(TICKS);
    assert_eq!(ask(proxy.worker(), "key").first(), A);
}

#[test]
fn a_message_that_is_no_response_changes_nothing() {
    let proxy = good();
    let ads = proxy.ads();
    ads.requests();
    for message in [&b""[..], b"\xff\xff\xff", b"\x22\x02xx"] {
        ads.stream().send(message).unwrap();
    }
    assert!(ads.stream().is_open());
    assert_eq!(ask(proxy.worker(), "key").first(), B);
}
