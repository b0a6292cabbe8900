// SPDX-License-Identifier: Apache-2.0
//! VMs that others interrupt, at every one of their calls into the proxy.

use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Duration;

use prost::Message;
use weir_harness::{Ads, CONTROL, Proxy, RULES, TICKS, ask, resource, table, up, vm};
use weir_tables::discovery::DeltaDiscoveryRequest;
use weir_testkit::{Host, Vm};

/// Another configuration of the same cluster.
const NEWER: &str = r#"{"clusters":{"rules":{}},"debug":true}"#;

fn address(version: u64) -> String {
    format!("10.0.0.{version}:80")
}

/// weir-control sends the table of this version through the VM's stream of tables, if it has one. Says whether.
fn receives(vm: &Vm, version: u64) -> bool {
    let mut streams = vm.grpc_streams().into_iter();
    let tables = streams.find(|stream| stream.request().service.ends_with("DiscoveryService"));
    let table = resource(&table(version, up(&[&address(version)])));
    tables
        .map(|stream| Ads::new(stream).push(&[table]))
        .is_some()
}

/// Time passes. One VM keeps the stream of tables, and all choose by the newest table, which weir-control sends only
/// where it does not know it to be. `received`: the VM that has received it.
fn settles(host: &Host, vms: Vec<Vm>, newest: u64, received: Option<usize>) {
    let proxy = Proxy {
        host: host.clone(),
        vms,
    };
    proxy.run(2 * TICKS);
    let ads = proxy.ads();
    let version = format!("1.{newest}");
    let tells = |sent: &DeltaDiscoveryRequest| {
        let told = sent.initial_resource_versions.get("rules");
        told == Some(&version)
    };
    let sent = ads.stream().take_sent();
    let mut sent = sent
        .iter()
        .map(|sent| DeltaDiscoveryRequest::decode(sent.as_slice()).unwrap());
    if proxy.owner() != received && !sent.any(|sent| tells(&sent)) {
        ads.accepts(&[resource(&table(newest, up(&[&address(newest)])))]);
    }
    proxy.run(TICKS);
    for vm in &proxy.vms {
        assert_eq!(weir_harness::Chosen::first(&ask(vm, "k")), address(newest));
    }
}

/// A proxy with no VM yet.
fn empty() -> Host {
    let host = Host::new();
    host.add_upstream(CONTROL);
    host
}

#[test]
fn a_vm_starts_while_another_starts_takes_the_lease_and_receives_a_table() {
    let is_interrupted = |calls: &usize| {
        let host = empty();
        let other = Rc::new(OnceCell::new());
        let (starts, started) = (host.clone(), Rc::clone(&other));
        host.interrupt_after(*calls, move || {
            let vm = vm(&starts, RULES).start().unwrap();
            vm.tick().unwrap();
            assert!(receives(&vm, 1));
            assert!(started.set(vm).is_ok());
        });
        let slow = vm(&host, RULES).start().unwrap();
        if host.take_interruption_back() {
            return false;
        }
        let other = other.get().cloned().expect("it has started");
        settles(&host, vec![slow, other], 1, Some(1));
        true
    };
    assert!((0..).take_while(is_interrupted).count() > 5);
}

#[test]
fn of_three_vms_each_starts_while_the_next_does() {
    /// Starts a VM, after so many of whose calls the next starts, and so on. None: it makes fewer calls.
    fn start(host: &Host, calls: &[usize]) -> Option<Vec<Vm>> {
        let others = Rc::new(OnceCell::new());
        if let Some((first, rest)) = calls.split_first() {
            let (host_of_it, started, rest) = (host.clone(), Rc::clone(&others), rest.to_vec());
            host.interrupt_after(*first, move || {
                let others = start(&host_of_it, &rest);
                assert!(started.set(others).is_ok());
            });
        }
        let this = vm(host, RULES).start().unwrap();
        this.tick().unwrap();
        if !calls.is_empty() && host.take_interruption_back() {
            return None;
        }
        let mut vms = match others.get() {
            Some(others) => others.clone()?,
            None => Vec::new(),
        };
        vms.push(this);
        Some(vms)
    }
    let starts = |calls: &[usize]| {
        let host = empty();
        let vms = start(&host, calls);
        let is_interrupted = vms.is_some();
        vms.into_iter().for_each(|vms| settles(&host, vms, 1, None));
        is_interrupted
    };
    let of_the_first = |first: usize| (0..).take_while(|second| starts(&[first, *second])).count();
    let orders: Vec<_> = (0..)
        .step_by(2)
        .map(of_the_first)
        .take_while(|seconds| *seconds > 0)
        .collect();
    assert!(orders.len() > 5, "{orders:?}");
}

#[test]
fn an_owner_receives_a_table_while_a_newer_configuration_takes_its_lease_and_receives_a_newer_one()
{
    let is_interrupted = |calls: &usize| {
        let host = empty();
        let vms = [(); 2].map(|()| vm(&host, RULES).start().unwrap());
        host.run_for(TICKS).unwrap();
        let [owner, other] = &vms;
        assert!(receives(owner, 1));
        host.clock().advance(Duration::from_millis(1));
        let (takes, clock) = (other.clone(), host.clock().clone());
        host.interrupt_after(*calls, move || {
            clock.advance(Duration::from_millis(1));
            takes.configure(NEWER).unwrap();
            takes.tick().unwrap();
            assert!(receives(&takes, 3));
        });
        assert!(receives(owner, 2));
        if host.take_interruption_back() {
            return false;
        }
        host.clock().advance(Duration::from_millis(1));
        settles(&host, vms.to_vec(), 3, Some(1));
        true
    };
    assert!((0..).take_while(is_interrupted).count() > 5);
}
