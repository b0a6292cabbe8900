// SPDX-License-Identifier: Apache-2.0
//! VMs that die, fall silent or come back, and others in their place. In the other shell they live as long as the
//! process, and its main thread alone keeps the streams.

use std::collections::BTreeSet;

use prost::Message;
use weir_filter::report::MAX_BYTES;
use weir_harness::{
    A, B, Chosen, Proxy, RULES, SHARING, TICKS, VM_ID, ask, milliseconds, request, resource, table,
    up, vm, vm_of,
};
use weir_tables::v1;
use weir_testkit::{GrpcStream, Host};

use crate::reports::{INTERVAL, rows, told};
use crate::tables::with_shards;

fn process_of(proxy: &Proxy) -> String {
    let streams = proxy.vms.iter().flat_map(weir_testkit::Vm::grpc_streams);
    let told = streams.map(|stream| {
        let metadata = &stream.request().initial_metadata;
        metadata.get("x-weir-process").expect("told")
    });
    let told: BTreeSet<_> = told.collect();
    assert_eq!(told.len(), 1, "{told:?}");
    told.into_iter().next().unwrap()
}

#[test]
fn an_owner_that_comes_back_after_its_lease_gives_up_its_streams() {
    let host = Host::new();
    let proxy = Proxy::on(host.clone(), 1, RULES);
    proxy.run(TICKS);
    assert!(proxy.has_ads());
    // The clock goes on without its ticks; then another VM ticks first.
    host.clock().advance(milliseconds(2_000));
    let late = vm(&host, RULES).start().unwrap();
    late.tick().unwrap();
    assert_eq!(late.grpc_streams().len(), 1);
    proxy.vms[0].tick().unwrap();
    assert!(!proxy.has_ads());
}

#[test]
fn another_vm_takes_over_when_the_owner_falls_silent_for_a_lease() {
    let mut proxy = Proxy::start(RULES);
    proxy.run(milliseconds(200));
    proxy.vms.remove(0);
    proxy.run(milliseconds(400));
    assert_eq!(proxy.owner(), None, "the lease still holds");
    proxy.run(milliseconds(700));
    assert!(proxy.owner().is_some());
    proxy.ads();
}

#[test]
fn every_stream_tells_the_process_that_it_is_of() {
    let mut proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    assert_eq!(proxy.streams("weir.v1.Reports").len(), 1);
    let process = process_of(&proxy);
    proxy.vms.remove(0);
    proxy.run(milliseconds(1_200));
    assert_eq!(process_of(&proxy), process, "another owner in one process");
    let other = Proxy::on(Host::with_seed(7), 1, RULES);
    other.run(TICKS);
    assert_ne!(process_of(&other), process);
}

#[test]
fn the_end_of_the_owners_root_frees_the_lease_at_once() {
    let proxy = Proxy::start(RULES);
    proxy.run(milliseconds(200));
    let root = proxy.vms[0].roots()[0];
    proxy.vms[0].retire(root).unwrap();
    assert!(!proxy.has_ads(), "its streams are closed");
    proxy.run(milliseconds(50));
    assert!(proxy.owner().is_some());
}

#[test]
fn the_next_owner_goes_on_where_the_last_one_ended() {
    let mut proxy = with_shards(2);
    proxy.vms.remove(0);
    proxy.run(milliseconds(1_200));
    let first = proxy.ads().requests().remove(0);
    assert_eq!(first.initial_resource_versions["rules"], "1.7");
    assert_eq!(ask(proxy.worker(), "key-b").first(), B);
}

#[test]
fn every_vm_decides_by_a_new_table_one_tick_after_it_came() {
    let proxy = Proxy::start(RULES);
    proxy.run(TICKS);
    proxy.ads().accepts(&[resource(&table(1, up(&[A])))]);
    assert_eq!(ask(&proxy.vms[0], "key").first(), A, "the owner at once");
    assert_eq!(ask(&proxy.vms[2], "key").reason(), "no_table");
    proxy.run(milliseconds(50));
    assert_eq!(ask(&proxy.vms[1], "key").first(), A);
    assert_eq!(ask(&proxy.vms[2], "key").first(), A);
}

#[test]
fn a_vm_whose_slot_went_to_another_takes_a_new_one() {
    let host = weir_testkit::Host::new();
    let proxy = Proxy::on(host.clone(), 1, RULES);
    proxy.run(SHARING);
    // Silent for longer than a record lives, as behind a long computation of its thread.
    host.clock().advance(milliseconds(5_000));
    let late = weir_harness::vm(&host, RULES).start().unwrap();
    late.tick().unwrap();
    proxy.run(SHARING);
    let epochs: BTreeSet<_> = proxy.records().iter().map(|record| record.epoch).collect();
    assert_eq!(epochs.len(), 2);
}

#[test]
fn what_a_dead_vm_wrote_is_not_told_and_its_slot_is_used_again() {
    let mut proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let open = ask(proxy.worker(), "key");
    proxy.run(INTERVAL);
    assert_eq!(proxy.report().records.len(), 3);
    drop((open, proxy.vms.pop()));
    proxy.run(milliseconds(4_500));
    assert_eq!(proxy.report().records.len(), 2);
    // Nor do its requests count here: the one that is left in the record would be A's for ever.
    let late = weir_harness::vm(&proxy.host, RULES).start().unwrap();
    proxy.vms.push(late);
    proxy.run(INTERVAL);
    assert_eq!(proxy.report().records.len(), 3);
    assert_eq!(proxy.records().len(), 3, "slots");
    assert_eq!(proxy.in_flight(A), 0);
}

fn answer(stream: &GrpcStream, taken: usize) {
    let answer = v1::ReportAnswer {
        taken: taken as u64,
        pause_ms: 0,
    };
    stream.send(answer.encode_to_vec()).unwrap();
}

#[test]
fn a_large_report_comes_in_parts_that_each_wait_for_the_answer_to_the_last() {
    const HOSTS: usize = 600;
    const RANKS: usize = 512;
    let mut proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    proxy.run(SHARING);
    let stream = proxy.streams("Reports").remove(0);
    let mut sent = told(&stream).len();
    answer(&stream, sent);
    // What a VM has written that is gone since.
    proxy.vms.pop();
    let mut record = proxy.records().pop().unwrap();
    let ranks = 0..RANKS as u32;
    let counts: Vec<_> = ranks
        .map(|rank| v1::RankCount { rank, count: 300 })
        .collect();
    let host = |host| v1::HostRecord {
        address: format!("10.0.{}.{}:80", host / 250, host % 250),
        admitted: counts.clone(),
        ..Default::default()
    };
    record.clusters[0].hosts = (0..HOSTS).map(host).collect();
    record.deadline_ns = u64::MAX;
    let key = format!("weir/1/vm/{}", record.slot);
    proxy
        .host
        .set_shared_data(VM_ID, &key, record.encode_to_vec());
    proxy.run(INTERVAL);
    let (mut all, mut parts) = (0, 0);
    loop {
        let reports = told(&stream);
        assert_eq!(reports.len(), 1, "one at a time, however long it takes");
        assert!(reports[0].encoded_len() <= MAX_BYTES);
        (sent, all, parts) = (sent + 1, all + rows(&reports[0]), parts + 1);
        if all == HOSTS * RANKS {
            break;
        }
        if parts == 1 {
            proxy.run(milliseconds(3_000));
            assert!(told(&stream).is_empty(), "weir-control is slow");
        }
        answer(&stream, sent);
        proxy.run(TICKS);
    }
    assert!(parts >= 2, "{parts}");
}

#[test]
fn of_a_stranger_whose_headers_cannot_be_read_they_are_removed_all_the_same() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A, B]))]);
    for (caller, is_left) in [("203.0.113.9:1", false), ("127.0.0.1:1", true)] {
        let vm = vm_of(&proxy.host, RULES, "rules", caller).start().unwrap();
        vm.refuse("proxy_get_header_map_pairs");
        let request = request(&vm, &[("x-weir-key", "k"), ("x-weir-user", "u")]);
        assert_eq!(request.reason(), "no_key", "{caller}");
        for name in ["x-weir-key", "x-weir-user"] {
            assert_eq!(
                request.request_header(name).is_some(),
                is_left,
                "{caller}: {name}"
            );
        }
    }
}
