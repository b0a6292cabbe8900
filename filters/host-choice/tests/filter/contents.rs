// SPDX-License-Identifier: Apache-2.0
//! Cache contents that there is no room for.

use weir_policy::{Holder, HostId, KeyHash};
use weir_tables::{CACHE_SHARD_TYPE, Meta, ShardBuilder, discovery, v1};

use prost::Message;
use weir_harness::{A, B, Chosen, Proxy, TICKS, ask, of_type, table, up, vm_of};
use weir_testkit::Vm;

const TWO: &str = r#"{"clusters":{"rules":{},"search":{}},"cache_limit":"64KiB"}"#;
const LEFT_OUT: &str = "weir_cache_contents_left_out";

fn tables() -> [v1::HostTable; 2] {
    ["rules", "search"].map(|name| v1::HostTable {
        cluster: name.into(),
        cache_shards: 1,
        ..table(1, up(&[A, B]))
    })
}

/// So many keys at B, of which 16 bytes each are decoded.
fn shard(cluster: &str, version: u64, keys: usize) -> discovery::Resource {
    let mut builder = ShardBuilder::default();
    let host = HostId::of(B);
    for key in 0..keys {
        let key = KeyHash::of(format!("key-{key}").as_bytes());
        builder.add(
            key,
            Holder {
                host,
                assumed: false,
            },
        );
    }
    let message = builder.build(Meta { epoch: 1, version });
    of_type(
        CACHE_SHARD_TYPE,
        format!("{cluster}/1/0"),
        message.encode_to_vec(),
    )
}

fn known(vm: &Vm) -> bool {
    let request = ask(vm, "key-7");
    assert!(!request.first().is_empty(), "a host is chosen always");
    let reason = request.reason();
    request.answered_by(B);
    reason == "known_cached"
}

#[test]
fn a_vm_keeps_the_contents_that_its_requests_use_and_chooses_for_the_others_without() {
    let proxy = Proxy::with(TWO, &tables());
    let rules = proxy.worker();
    let search = vm_of(&proxy.host, TWO, "search", "127.0.0.1:50000");
    let search = search.start().unwrap();
    for vm in [rules, &search] {
        for _ in 0..5 {
            assert!(!known(vm));
        }
    }
    proxy.ads().accepts(&[shard("rules", 1, 3000)]);
    proxy.run(TICKS);
    assert!(known(rules));
    proxy.ads().accepts(&[shard("search", 1, 3000)]);
    proxy.run(TICKS);
    assert!(known(rules), "used here, and not there");
    assert!(known(&search), "used there, and not here");
    assert_eq!(proxy.host.metrics().gauge(LEFT_OUT), 1);
    let logs = rules.logs_at(weir_testkit::LogLevel::Warn);
    let said = "cache contents of search are left out";
    let lines = logs.iter().filter(|line| line.starts_with(said));
    assert_eq!(lines.count(), 1, "{logs:?}");
    // Tables are taken always.
    proxy
        .ads()
        .accepts(&[weir_harness::resource(&v1::HostTable {
            version: 2,
            ..tables()[1].clone()
        })]);
    // Room again: 80 % of it take both.
    proxy.ads().accepts(&[shard("rules", 2, 100)]);
    proxy.run(TICKS);
    assert!(known(rules) && known(&search));
    assert_eq!(proxy.host.metrics().gauge(LEFT_OUT), 0);
}

#[test]
fn contents_that_no_vm_has_room_for_are_refused_and_tables_are_not() {
    let proxy = Proxy::with(TWO, &tables());
    let reason = proxy.ads().refuses(&[shard("rules", 1, 20_000)]);
    assert!(reason.contains("more than is left of 262144"), "{reason}");
    proxy.ads().accepts(&[shard("rules", 2, 3000)]);
    proxy.run(TICKS);
    assert!(known(proxy.worker()));
}
