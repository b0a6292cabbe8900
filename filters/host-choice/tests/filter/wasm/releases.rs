// SPDX-License-Identifier: Apache-2.0
//! Two releases of the filter in one Envoy, as while new code is taken: both have the same shared data.

use weir_harness::{
    A, Ads, B, Chosen, Proxy, RULES, SHARING, TICKS, VM_ID, ask, milliseconds, module_file,
    resource, table, up, with_layout,
};
use weir_tables::v1;
use weir_testkit::{Host, Module, Vm};

use crate::tables::with_new_field;

/// A release with another layout of shared data: the number in each key is its only difference.
fn other_layout() -> Module {
    let module = std::fs::read(module_file()).unwrap();
    Module::from_bytes(&with_layout(module, b"weir/2/")).unwrap()
}

fn vm_of(host: &Host, module: &Module) -> Vm {
    host.vm(module)
        .vm_id(VM_ID)
        .property(&["xds", "node", "id"], "sidecar-1")
        .property(&["xds", "cluster_name"], "rules")
        .property(&["source", "address"], "127.0.0.1:50000")
        .plugin_config(RULES)
        .start()
        .unwrap()
}

fn ads_of(vms: &[Vm]) -> Ads {
    let streams = vms.iter().flat_map(Vm::grpc_streams);
    let tables = |service: &str| service.ends_with("AggregatedDiscoveryService");
    let mut streams: Vec<_> = streams
        .filter(|stream| tables(&stream.request().service))
        .collect();
    assert_eq!(streams.len(), 1);
    Ads::new(streams.remove(0))
}

#[test]
fn a_release_with_another_layout_neither_reads_nor_changes_what_the_old_one_wrote() {
    let mut proxy = Proxy::with(RULES, &[table(7, up(&[A]))]);
    proxy.run(SHARING);
    let module = other_layout();
    let new: Vec<_> = (0..3).map(|_| vm_of(&proxy.host, &module)).collect();
    assert_eq!(ask(&new[2], "key").reason(), "no_table");
    proxy.run(TICKS);
    let ads = ads_of(&new);
    let known = ads.requests().remove(0).initial_resource_versions;
    assert!(known.is_empty(), "it resumes from nothing: {known:?}");
    ads.accepts(&[resource(&table(7, up(&[B])))]);
    proxy.run(SHARING);
    assert_eq!(ask(&new[2], "key").first(), B);
    assert_eq!(ask(proxy.worker(), "key").first(), A);
    assert_eq!(
        proxy.ads().requests().len(),
        0,
        "the old owner is the owner still"
    );
    assert_eq!(
        proxy.records().len(),
        3,
        "the new VMs have slots of their own"
    );
    let keys = proxy.host.shared_keys(VM_ID);
    let (old, other): (Vec<_>, Vec<_>) = keys.iter().partition(|key| key.starts_with("weir/1/"));
    assert!(
        other.iter().all(|key| key.starts_with("weir/2/")),
        "{keys:?}"
    );
    assert_eq!(old.len(), other.len(), "{keys:?}");

    // And back: the last VMs of the old release are gone, its data is not.
    proxy.vms.clear();
    proxy.run(milliseconds(5_000));
    let back = Proxy::on(proxy.host.clone(), 3, RULES);
    back.run(TICKS);
    let ads = back.ads();
    let known = ads.requests().remove(0).initial_resource_versions;
    assert_eq!(known["rules"], "1.7");
    ads.accepts(&[resource(&table(8, up(&[B])))]);
    back.run(TICKS);
    assert_eq!(ask(back.worker(), "key").first(), B);
}

#[test]
fn the_record_of_a_newer_vm_counts_by_what_is_known_of_it() {
    let mut proxy = Proxy::with(RULES, &[table(1, up(&[A, B]))]);
    let open = ask(proxy.worker(), "key");
    let host = open.first();
    proxy.run(SHARING);
    let records = proxy.records();
    let busy = records.iter().find(|record| {
        let hosts = record.clusters.iter().flat_map(|cluster| &cluster.hosts);
        hosts.map(|host| host.in_flight).sum::<u32>() == 1
    });
    let mut newer: v1::VmRecord = busy.unwrap().clone();
    let slot = newer.slot;
    // The VM is gone; this is what a newer one in its place writes.
    drop((open, proxy.vms.pop()));
    newer.clusters[0].hosts[0].in_flight = 5;
    let key = format!("weir/1/vm/{slot}");
    proxy
        .host
        .set_shared_data(VM_ID, &key, with_new_field(&newer));
    proxy.run(milliseconds(100));
    assert_eq!(proxy.in_flight(&host), 5);
    proxy.run(milliseconds(1_000));
    let reports = proxy.reports();
    let records = reports.iter().flat_map(|report| &report.records);
    let of_vm = records.filter(|record| record.slot == slot);
    let clusters = of_vm.flat_map(|record| &record.clusters);
    let hosts = clusters.flat_map(|cluster| &cluster.hosts);
    let newest = hosts.last().map(|host| host.in_flight);
    assert_eq!(newest, Some(5));
}
