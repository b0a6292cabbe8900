// SPDX-License-Identifier: Apache-2.0
use weir_harness::{A, cached};
use weir_tables::v1;

use super::*;
use crate::disposition::Action;
use crate::fake::{CONTROL, FakeHost, FakeRequest, RULES, Worker, holding};

const LEASE: u64 = 1_000;
/// As hosts tell it.
const LOAD: &str = "TEXT named_metrics.weir.in_progress=9,named_metrics.weir.queued.0=5";

fn lease(host: &FakeHost) -> Option<lease::Lease> {
    shared::lease(host).expect("the key is there").0
}

/// Streams of tables that are open.
fn open_streams(host: &FakeHost) -> usize {
    let streams = host.streams();
    let open = |stream: &&crate::fake::FakeStream| {
        stream.method == "DeltaAggregatedResources" && !stream.is_cancelled
    };
    streams.iter().filter(open).count()
}

#[test]
fn a_bad_configuration_is_refused_with_the_reason_and_leaves_nothing_behind() {
    let host = FakeHost::default();
    let mut root = Root::new(1);
    let vm = || panic!("no VM is needed");
    let tick = root.on_configure(&host, br#"{"tick":"1h"}"#, vm, String::new);
    assert_eq!(tick, None);
    let log = host.take_log();
    assert!(log[0].contains("tick"), "{log:?}");
    assert_eq!(host.keys(), Vec::<String>::new());
    assert!(!root.on_tick(|_| None::<FakeRequest>));
    let request = FakeRequest::new(&[]);
    let action = root
        .exchange(7)
        .on_request(&request, true)
        .carry_out(&request);
    assert_eq!((action, host.streams().len()), (Action::Continue, 0));
}

#[test]
fn the_first_root_to_tick_takes_the_lease_and_opens_a_stream() {
    let host = FakeHost::default();
    let mut worker = Worker::of(&host, RULES);
    assert_eq!((lease(&host), open_streams(&host)), (None, 0), "not before");
    worker.tick(50);
    let id = worker.vm.enter(|vm| vm.id);
    let taken = lease(&host).unwrap();
    assert_eq!(Some(taken.holder.vm), id);
    assert_eq!(taken.deadline, Duration::from_millis(50 + LEASE));
    let streams = host.streams();
    assert_eq!((streams.len(), streams[0].cluster.as_str()), (1, CONTROL));
    worker.tick(50);
    assert_eq!(host.streams().len(), 1);
}

#[test]
fn another_vm_waits_while_the_lease_is_kept_and_takes_it_when_it_has_run_out() {
    let host = FakeHost::default();
    let [mut first, mut other] = [RULES; 2].map(|json| Worker::of(&host, json));
    for _ in 0..40 {
        first.tick(50);
        other.tick(0);
    }
    assert_eq!(host.streams().len(), 1, "two seconds are two leases");
    other.tick(LEASE);
    assert_eq!(
        Some(lease(&host).unwrap().holder.vm),
        other.vm.enter(|vm| vm.id)
    );
    assert_eq!(open_streams(&host), 2, "the first does not know yet");
    first.tick(50);
    assert_eq!(open_streams(&host), 1, "it gives its stream up");
    assert!(host.streams()[0].is_cancelled);
}

#[test]
fn a_root_that_ends_frees_the_lease_and_its_streams_at_once() {
    let host = FakeHost::default();
    let [mut first, mut other] = [RULES; 2].map(|json| Worker::of(&host, json));
    first.tick(50);
    first.root.on_done();
    assert_eq!((lease(&host), open_streams(&host)), (None, 0));
    first.root.on_done();
    first.tick(50);
    assert_eq!(
        (lease(&host), host.streams().len()),
        (None, 1),
        "it is over"
    );
    other.tick(0);
    assert_eq!(open_streams(&host), 1);
}

#[test]
fn a_root_that_ends_leaves_the_lease_of_another_alone() {
    let host = FakeHost::default();
    let [mut first, mut other] = [RULES; 2].map(|json| Worker::of(&host, json));
    first.tick(50);
    other.tick(LEASE);
    let taken = lease(&host);
    first.root.on_done();
    assert_eq!(lease(&host), taken);
    assert!(host.streams()[0].is_cancelled && !host.streams()[1].is_cancelled);
}

#[test]
fn a_root_without_a_control_cluster_leaves_the_lease_to_others() {
    let host = FakeHost::default();
    let json = r#"{"control_cluster":null,"clusters":{"rules":{}}}"#;
    let mut alone = Worker::of(&host, json);
    alone.tick(50);
    assert_eq!((lease(&host), host.streams().len()), (None, 0));
    Worker::of(&host, RULES).tick(50);
    assert_eq!(open_streams(&host), 1);
}

#[test]
fn a_vm_that_can_open_no_streams_leaves_the_lease_to_others() {
    let host = FakeHost::default();
    host.set_opens_streams(false);
    let mut silent = Worker::of(&host, RULES);
    silent.tick(50);
    assert_eq!((lease(&host), host.streams().len()), (None, 0));
    host.set_opens_streams(true);
    Worker::of(&host, RULES).tick(50);
    assert_eq!(open_streams(&host), 1);
}

#[test]
fn a_vm_without_ticks_shows_at_once_that_it_is_idle_and_stays_known_while_it_is_renewed() {
    let table = holding(1, 4096);
    let mut worker = Worker::with(&table);
    let mut other = Worker::of(&worker.host, RULES);
    let request = FakeRequest::new(&[]);
    let (mut exchange, action) = worker.ask(7, &request);
    assert_eq!(action, Action::Continue);
    worker.tick(100);
    other.tick(100);
    request.answer(A, &[(":status", "200"), ("endpoint-load-metrics", LOAD)]);
    exchange.on_response(&request);
    // Too soon for a tick's record.
    exchange.on_end(&request);
    let record = worker.root.on_idle().expect("it has a slot");
    let in_flight = |record: &str| {
        let (bytes, _) = worker.host.shared(record).unwrap();
        let record = <v1::VmRecord as prost::Message>::decode(bytes.as_slice()).unwrap();
        let hosts = record.clusters.iter().flat_map(|cluster| &cluster.hosts);
        (hosts.map(|host| host.in_flight).sum::<u32>(), record)
    };
    let (left, before) = in_flight(&record);
    assert_eq!(left, 0);
    // Longer than a record lives.
    for _ in 0..10 {
        worker.host.pass(Duration::from_secs(1));
        renew(&other.vm, &record);
    }
    let (left, mut after) = in_flight(&record);
    assert_eq!(left, 0);
    // Reports tell what is new by when it was.
    for assignment in &mut after.clusters[0].assignments {
        assert!(assignment.age_ms >= 10_000, "{}", assignment.age_ms);
        assignment.age_ms -= 10_000;
    }
    let load = after.clusters[0].hosts[0].load.as_mut().expect("it told");
    assert!(load.age_ms >= 10_000, "{}", load.age_ms);
    load.age_ms -= 10_000;
    assert_eq!(after.clusters, before.clusters);
    assert!(!shared::expired(after.deadline_ns, worker.host.now()));
    assert!(shared::expired(before.deadline_ns, worker.host.now()));
    // What its VM writes in between stays.
    worker.host.race(&record, b"newer");
    renew(&other.vm, &record);
    assert_eq!(worker.host.shared(&record).unwrap().0, b"newer");
}

#[test]
fn a_vm_that_sleeps_tells_the_level_in_force_and_keeps_no_cluster_that_is_dropped() {
    let mut main = Worker::with(&holding(1, 4096));
    let mut worker = Worker::of(&main.host, RULES);
    main.tick(100);
    worker.tick(0);
    let request = FakeRequest::new(&[]);
    let (mut exchange, _) = worker.ask(7, &request);
    exchange.on_end(&request);
    let record = worker.root.on_idle().expect("it has a slot");
    main.push(&holding(2, 100));
    main.tick(100);
    let renewed = || {
        renew(&main.vm, &record);
        let (bytes, _) = main.host.shared(&record).unwrap();
        <v1::VmRecord as prost::Message>::decode(bytes.as_slice()).unwrap()
    };
    let level = renewed().clusters[0].hosts[0].admission_level;
    assert_eq!(level, Some(100));
    let mut newer = Root::new(2);
    let json = br#"{"clusters":{"search":{}}}"#;
    let tick = newer.on_configure(&main.host, json, || main.vm.clone(), String::new);
    assert!(tick.is_some());
    main.root.on_done();
    assert_eq!(renewed().clusters, []);
    main.host.pass(Duration::from_millis(100));
    newer.on_tick(|_| None::<FakeRequest>);
    let wanted = main.vm.enter(|vm| vm.wanted(main.host.now())).unwrap();
    assert_eq!(wanted.into_iter().collect::<Vec<_>>(), ["search"]);
}

#[test]
fn contents_that_vms_share_are_kept_once_and_not_in_shared_data() {
    let (host, mut owner, mut other) = two_that_share(&[("a key", A), ("another", A)]);
    let kept = || host.contents().unwrap().get("rules/1/0");
    assert_eq!((known(&owner), known(&other)), (Some(2), Some(2)));
    let (value, _) = host.shared("weir/1/shard/rules/1/0").unwrap();
    let shard = <v1::CacheShard as prost::Message>::decode(&value[8..]).unwrap();
    assert_eq!((shard.epoch, shard.version, shard.keys), (1, 1, vec![]));
    // An older build comes by another way: it replaces neither.
    let older = cached(0, 1, &[("a key", A)]);
    let refused = owner.send(&older).error_detail.expect("it is older");
    assert!(refused.message.contains("older"), "{}", refused.message);
    assert_eq!(kept().map(|shard| shard.len()), Some(2));
    // Asked for no more.
    owner.tick(50);
    owner.push(&weir_harness::table(2, weir_harness::up(&[A])));
    owner.tick(50);
    other.tick(50);
    assert_eq!((known(&owner), known(&other)), (Some(0), Some(0)));
    assert_eq!(kept(), None);
}

#[test]
fn a_vm_that_sleeps_keeps_no_contents_alive_that_others_have_replaced() {
    let (_, mut owner, mut other) = two_that_share(&[("a key", A)]);
    other.root.on_idle();
    assert_eq!(known(&other), Some(0));
    // Nothing has come: it has what it had.
    other.root.on_wake();
    assert_eq!(known(&other), Some(1));
    other.root.on_idle();
    other.root.on_idle();
    owner.send(&cached(2, 1, &[("a key", A), ("another", A)]));
    // Before any tick, as its first request is to be decided by it.
    other.root.on_wake();
    assert_eq!(known(&other), Some(2));
    other.root.on_idle();
    other.tick(50);
    assert_eq!(known(&other), Some(2));
}

/// A proxy whose VMs share cache contents, of one shard; the VM that has the streams and another one.
fn two_that_share(holders: &[(&str, &str)]) -> (FakeHost, Worker, Worker) {
    let host = FakeHost::sharing();
    let [mut owner, mut other] = [RULES; 2].map(|json| Worker::of(&host, json));
    owner.tick(50);
    owner.push(&v1::HostTable {
        cache_shards: 1,
        ..weir_harness::table(1, weir_harness::up(&[A]))
    });
    owner.tick(50);
    owner.send(&cached(1, 1, holders));
    other.tick(50);
    (host, owner, other)
}

/// Keys whose holders it knows.
fn known(worker: &Worker) -> Option<usize> {
    let of = |cluster: &weir_policy::Cluster| cluster.cache().len();
    worker.vm.enter(|vm| vm.cluster("rules").map_or(0, of))
}

#[test]
fn a_newer_configuration_in_the_same_vm_takes_the_stream_over() {
    let host = FakeHost::default();
    let mut worker = Worker::of(&host, RULES);
    worker.tick(50);
    let mut newer = Root::new(2);
    let json = br#"{"clusters":{"rules":{}},"debug":true}"#;
    let tick = newer.on_configure(&host, json, || worker.vm.clone(), String::new);
    assert!(tick.is_some());
    newer.on_tick(|_| None::<FakeRequest>);
    worker.tick(50);
    assert_eq!(lease(&host).unwrap().holder.root, 2);
    let streams = host.streams();
    assert!(streams[0].is_cancelled && !streams[1].is_cancelled);
}

#[test]
fn a_root_that_is_told_of_its_successor_closes_its_streams_at_once() {
    let host = FakeHost::default();
    let mut worker = Worker::of(&host, RULES);
    worker.tick(50);
    worker.root.on_successor();
    assert_eq!(open_streams(&host), 1, "there is none");
    let mut newer = Root::new(2);
    let json = br#"{"clusters":{"rules":{}},"debug":true}"#;
    let tick = newer.on_configure(&host, json, || worker.vm.clone(), String::new);
    assert!(tick.is_some());
    newer.on_successor();
    worker.root.on_successor();
    assert_eq!((lease(&host), open_streams(&host)), (None, 0));
}

#[test]
fn a_newer_configuration_with_another_zone_goes_for_the_table_that_is_there() {
    let mut table = weir_harness::table(1, weir_harness::up(&[A]));
    table.zones = vec!["near".into(), "far".into()];
    table.hosts[0].zone = 1;
    let mut worker = Worker::of(&FakeHost::default(), &in_zone("near"));
    worker.tick(50);
    worker.push(&table);
    let crossings = |worker: &mut Worker, context| {
        worker.ask(context, &FakeRequest::new(&[]));
        worker.host.metric("weir_crossings_total")
    };
    assert_eq!(crossings(&mut worker, 7), 0);
    let mut newer = Root::new(2);
    let json = in_zone("far");
    let vm = || worker.vm.clone();
    let tick = newer.on_configure(&worker.host, json.as_bytes(), vm, String::new);
    assert!(tick.is_some());
    assert_eq!(crossings(&mut worker, 8), 1);
}

fn in_zone(zone: &str) -> String {
    format!(r#"{{"zone":"{zone}","clusters":{{"rules":{{}}}}}}"#)
}

#[test]
fn one_root_of_a_vm_lets_held_requests_go_on_until_it_is_silent() {
    let mut worker = Worker::with(&holding(1, 0));
    let request = FakeRequest::new(&[]);
    let (_exchange, action) = worker.ask(7, &request);
    assert_eq!(action, Action::Pause);
    let mut other = Root::new(2);
    let json = br#"{"control_cluster":null,"clusters":{"rules":{}}}"#;
    let tick = other.on_configure(&worker.host, json, || worker.vm.clone(), String::new);
    assert!(tick.is_some());
    worker.tick(50);
    let select = |_| Some(request.clone());
    assert!(!other.on_tick(select), "the first has just looked");
    worker.push(&holding(2, 4096));
    worker.host.pass(Duration::from_millis(100));
    assert!(other.on_tick(select), "it looked for requests");
    assert_eq!(request.resumed(), 1);
}

#[test]
fn the_configured_name_or_the_nodes_stands_for_the_proxy() {
    for (json, name) in [
        (RULES, "sidecar-1"),
        (r#"{"proxy":"mine","clusters":{"rules":{}}}"#, "mine"),
    ] {
        let mut worker = Worker::of(&FakeHost::default(), json);
        worker.tick(50);
        let stream = worker.tables().unwrap();
        let sent = worker.host.take_sent(stream);
        let first: &weir_tables::discovery::DeltaDiscoveryRequest = &sent[0];
        assert_eq!(first.node.as_ref().unwrap().id, name);
    }
}

#[test]
fn a_vm_that_is_idle_soon_after_its_record_tells_the_keys_of_before_and_since() {
    let mut worker = Worker::with(&holding(1, 4096));
    let mut other = Worker::of(&worker.host, RULES);
    let asked = |worker: &mut Worker, context, key| {
        let request = FakeRequest::new(&[("x-weir-key", key)]);
        let (mut exchange, action) = worker.ask(context, &request);
        assert_eq!(action, Action::Continue);
        request.answer(A, &[(":status", "200")]);
        exchange.on_response(&request);
        exchange.on_end(&request);
    };
    asked(&mut worker, 7, "before");
    worker.tick(100);
    worker.host.pass(Duration::from_millis(10));
    asked(&mut worker, 8, "since");
    worker.root.on_idle().expect("it has a slot");
    // It has read nothing of this VM yet.
    other.tick(20);
    let now = other.host.now();
    for key in ["before", "since"] {
        let keys = weir_policy::Keys::new([weir_policy::KeyHash::of(key.as_bytes())]);
        let lacks = |cluster: &weir_policy::Cluster| cluster.lacks(0, &keys, now);
        let lacks = other.vm.enter(|vm| vm.cluster("rules").map(lacks));
        assert_eq!(lacks, Some(Some(0)), "{key}");
    }
}
