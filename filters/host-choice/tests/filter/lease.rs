// SPDX-License-Identifier: Apache-2.0
//! Which VM keeps the streams.

use std::collections::BTreeSet;

use weir_testkit::Host;

use weir_harness::{
    A, CONTROL, Proxy, RULES, SHARING, TICKS, keeper, milliseconds, resource, stream_call, table,
    up, vm,
};

const ABORTED: u32 = 10;
const UNAVAILABLE: u32 = 14;

fn opened(proxy: &Proxy) -> u64 {
    let metrics = proxy.host.metrics();
    metrics.counter("weir_filter_streams_opened_total")
}

fn connected(proxy: &Proxy) -> u64 {
    proxy.host.metrics().gauge("weir_filter_connected")
}

#[test]
fn one_vm_of_three_opens_one_stream_of_each_kind() {
    let proxy = Proxy::start(RULES);
    proxy.run(milliseconds(5_000));
    assert_eq!(proxy.owner(), Some(0), "the first to tick");
    let ads = proxy.ads();
    assert_eq!(ads.stream().request().cluster, CONTROL);
    assert_eq!(ads.stream().request().method, "DeltaAggregatedResources");
    ads.accepts(&[resource(&table(1, up(&[A])))]);
    proxy.run(milliseconds(5_000));
    assert_eq!(proxy.streams("weir.v1.Reports").len(), 1);
    assert_eq!(opened(&proxy), 1, "and it stays open");
}

#[test]
fn a_newer_configuration_takes_the_lease_at_once() {
    let proxy = Proxy::start(RULES);
    proxy.run(milliseconds(200));
    let newer = r#"{"clusters":{"rules":{}},"debug":true}"#;
    proxy.vms[2].configure(newer).unwrap();
    proxy.run(TICKS);
    assert_eq!(proxy.owner(), Some(keeper(2)));
    proxy.ads();
    proxy.run(milliseconds(5_000));
    assert_eq!(proxy.owner(), Some(keeper(2)));
    assert_eq!(opened(&proxy), 2);
}

#[test]
fn going_back_to_an_older_configuration_makes_it_the_newest() {
    let old = r#"{"control_cluster":"old","clusters":{"rules":{}}}"#;
    let new = r#"{"control_cluster":"new","clusters":{"rules":{}}}"#;
    let host = Host::new();
    host.add_upstream("old");
    host.add_upstream("new");
    let proxy = Proxy::on(host, 3, old);
    for (configuration, cluster) in [(new, "new"), (old, "old"), (new, "new")] {
        for vm in &proxy.vms {
            // Old roots drain: none is retired.
            vm.configure(configuration).unwrap();
        }
        proxy.run(TICKS);
        assert_eq!(proxy.ads().stream().request().cluster, cluster);
    }
}

#[test]
fn the_same_configuration_once_more_has_streams_within_two_ticks() {
    let proxy = Proxy::start(RULES);
    proxy.run(milliseconds(200));
    proxy.vms[0].configure(RULES).unwrap();
    proxy.run(TICKS);
    proxy.ads();
    assert_eq!(opened(&proxy), 2, "the newer root's");
}

#[test]
fn the_end_of_a_root_leaves_the_lease_of_another_alone() {
    let host = Host::new();
    let proxy = Proxy::on(host.clone(), 1, RULES);
    proxy.run(TICKS);
    host.clock().advance(milliseconds(2_000));
    let winner = vm(&host, RULES).start().unwrap();
    winner.tick().unwrap();
    let lease = proxy.shared("owner");
    // It has not ticked since it lost the lease.
    let root = proxy.vms[0].roots()[0];
    proxy.vms[0].retire(root).unwrap();
    assert_eq!(proxy.shared("owner"), lease);
}

#[test]
fn a_superseded_owner_waits_for_at_least_a_lease() {
    let proxy = Proxy::start(r#"{"clusters":{"rules":{}},"lease":"2s"}"#);
    proxy.run(milliseconds(200));
    proxy.ads().stream().close(ABORTED, "superseded").unwrap();
    proxy.run(milliseconds(1_950));
    assert!(!proxy.has_ads());
    proxy.run(milliseconds(100));
    proxy.ads();
}

/// Milliseconds from each of the first closes to the stream that follows.
fn pauses(seed: u64) -> Vec<u64> {
    let configuration = r#"{"clusters":{"rules":{}},"tick":"10ms"}"#;
    let proxy = Proxy::on(Host::with_seed(seed), 1, configuration);
    proxy.run(TICKS);
    let pause = |_| {
        proxy.ads().stream().close(UNAVAILABLE, "gone").unwrap();
        let mut waited = 0;
        while !proxy.has_ads() {
            proxy.run(milliseconds(10));
            waited += 10;
        }
        waited
    };
    (0..7).map(pause).collect()
}

#[test]
fn pauses_between_attempts_double_up_to_a_limit_and_are_jittered() {
    let longest = [100, 200, 400, 800, 1_600, 3_200, 3_200];
    let mut seen = BTreeSet::new();
    for seed in 0..4 {
        let pauses = pauses(seed);
        for (pause, longest) in pauses.iter().zip(longest) {
            let range = longest / 2..=longest + 10;
            assert!(range.contains(pause), "{pauses:?}");
        }
        seen.insert(pauses);
    }
    assert_eq!(seen.len(), 4, "sidecars do not come back together");
}

#[test]
fn a_server_that_sends_something_ends_the_pauses() {
    let proxy = Proxy::start(RULES);
    for _ in 0..6 {
        proxy.run(milliseconds(3_500));
        proxy.ads().stream().close(UNAVAILABLE, "gone").unwrap();
    }
    proxy.run(milliseconds(3_500));
    let ads = proxy.ads();
    assert_eq!(connected(&proxy), 0);
    ads.remove(weir_tables::HOST_TABLE_TYPE, &["rules"]);
    proxy.run(TICKS);
    assert_eq!(connected(&proxy), 1);
    ads.stream().close(UNAVAILABLE, "gone").unwrap();
    proxy.run(milliseconds(50));
    assert_eq!(connected(&proxy), 0);
    proxy.run(milliseconds(150));
    proxy.ads();
}

/// Envoy takes the endpoints of a cluster in turns. With a dead one of two, a second stream at each attempt
/// would leave the same one to the first for ever.
#[test]
fn reports_wait_for_a_table_stream_that_works() {
    let proxy = Proxy::start(RULES);
    for _ in 0..3 {
        proxy.run(milliseconds(3_500));
        assert!(proxy.streams("weir.v1.Reports").is_empty());
        proxy.ads().stream().close(UNAVAILABLE, "gone").unwrap();
    }
    proxy.run(milliseconds(3_500));
    proxy.ads().accepts(&[resource(&table(1, up(&[A])))]);
    proxy.run(TICKS);
    assert_eq!(proxy.streams("weir.v1.Reports").len(), 1);
    proxy.ads().stream().close(UNAVAILABLE, "gone").unwrap();
    proxy.run(milliseconds(500));
    proxy.ads();
    assert!(proxy.streams("weir.v1.Reports").is_empty());
}

#[test]
fn a_missing_control_cluster_is_tried_again_until_it_is_there() {
    let host = Host::new();
    let vms: Vec<_> = (0..2).map(|_| vm(&host, RULES).start().unwrap()).collect();
    let proxy = Proxy { host, vms };
    proxy.run(milliseconds(10_000));
    assert!(!proxy.has_ads());
    proxy.host.add_upstream(CONTROL);
    // However long it was away: the longest pause while there is no table, and a tick.
    proxy.run(milliseconds(450));
    let ads = proxy.ads();
    // Nor does the first failure of a server that is there count for the last of many.
    ads.stream().close(UNAVAILABLE, "gone").unwrap();
    assert!(!proxy.has_ads());
    proxy.run(milliseconds(450));
    proxy.ads();
}

#[test]
fn with_tables_to_choose_by_a_missing_control_cluster_is_tried_again_less_and_less() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let stream = proxy.ads();
    proxy.host.remove_upstream(CONTROL);
    stream.stream().close(UNAVAILABLE, "gone").unwrap();
    let attempts = |milliseconds_of_it: u64| {
        let tick = || {
            proxy.run(milliseconds(50));
            let calls = proxy.vms.iter().map(|vm| vm.host_calls_of("proxy_on_tick"));
            calls
                .filter_map(|calls| calls.get(stream_call()).copied())
                .sum::<u64>()
        };
        (0..milliseconds_of_it / 50).map(|_| tick()).sum::<u64>()
    };
    attempts(10_000);
    assert!((3..=7).contains(&attempts(10_000)), "1.6 s to 3.2 s apart");
}

#[test]
fn two_configurations_in_every_vm_make_one_stream() {
    let other = r#"{"clusters":{"others":{}}}"#;
    let host = Host::new();
    host.add_upstream(CONTROL);
    let start = |_| {
        let vm = vm(&host, RULES).start().unwrap();
        vm.configure(other).unwrap();
        vm
    };
    let proxy = Proxy {
        vms: (0..3).map(start).collect(),
        host: host.clone(),
    };
    proxy.run(milliseconds(5_000));
    proxy.ads().accepts(&[resource(&table(1, up(&[A])))]);
    proxy.run(TICKS);
    assert_eq!(proxy.streams("weir.v1.Reports").len(), 1);
    let so_far = opened(&proxy);
    assert_eq!(
        so_far, 1,
        "the VMs agree which configuration is the newer one"
    );

    // A worker that was reloaded configures both again, the older one first.
    let late = vm(&host, RULES).start().unwrap();
    late.configure(other).unwrap();
    proxy.run(milliseconds(5_000));
    assert!(late.grpc_streams().is_empty());
    assert_eq!(opened(&proxy), so_far);
}

fn asked(proxy: &Proxy) -> BTreeSet<String> {
    let requests = proxy.ads().requests().into_iter();
    requests
        .flat_map(|request| request.resource_names_subscribe)
        .collect()
}

#[test]
fn the_owner_subscribes_to_what_any_vm_wants_and_not_to_what_none_wants_any_more() {
    let mut proxy = Proxy::of(1, RULES);
    let other = vm(&proxy.host, r#"{"clusters":{"others":{}}}"#)
        .start()
        .unwrap();
    proxy.vms.push(other.clone());
    proxy.run(SHARING);
    assert_eq!(
        asked(&proxy),
        BTreeSet::from(["others".into(), "rules".into()])
    );
    let old = other.roots()[0];
    other.configure(r#"{"clusters":{"third":{}}}"#).unwrap();
    other.retire(old).unwrap();
    proxy.run(SHARING);
    assert_eq!(
        asked(&proxy),
        BTreeSet::from(["rules".into(), "third".into()])
    );
}

#[test]
fn without_a_control_cluster_nothing_is_opened_and_envoy_chooses() {
    let proxy = Proxy::start(r#"{"control_cluster":null,"clusters":{"rules":{}}}"#);
    proxy.run(milliseconds(2_000));
    assert!(!proxy.has_ads());
    let with = proxy.vms[1].configure(RULES).unwrap();
    proxy.run(milliseconds(200));
    assert_eq!(
        proxy.owner(),
        Some(keeper(1)),
        "it does not keep others from it"
    );
    proxy.vms[1].retire(with).unwrap();
}
