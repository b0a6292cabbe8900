// SPDX-License-Identifier: Apache-2.0

use std::time::{Duration, SystemTime};

use weir_testkit::{Host, LogLevel, Status, Vm};

use crate::fixture::{SHARED, said};

fn vm(host: &Host, vm_id: &str, configuration: &str) -> Vm {
    host.vm(&SHARED)
        .vm_id(vm_id)
        .plugin_config(configuration)
        .start()
        .unwrap()
}

fn count(host: &Host, vm_id: &str) -> Option<u64> {
    host.shared_data(vm_id, "count")
        .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
}

#[test]
fn of_two_vms_that_read_the_same_value_the_second_to_write_is_refused() {
    let host = Host::new();
    host.set_shared_data("id", "count", 5u64.to_le_bytes());
    let (a, b) = (vm(&host, "id", "careful"), vm(&host, "id", "careful"));
    for vm in [&a, &b, &a, &b] {
        vm.tick().unwrap();
    }
    assert!(said(&a).contains(&"write: Ok(())".into()));
    assert!(said(&b).contains(&"write: Err(CasMismatch)".into()));
    assert_eq!(count(&host, "id"), Some(6));
}

#[test]
fn a_vm_that_is_interrupted_between_its_read_and_its_write_is_refused() {
    let read_by_both = |calls| {
        let host = Host::new();
        host.set_shared_data("id", "count", 5u64.to_le_bytes());
        let (a, b) = (vm(&host, "id", "careful"), vm(&host, "id", "careful"));
        host.interrupt_after(calls, move || {
            b.tick().unwrap();
            b.tick().unwrap();
        });
        a.tick().unwrap();
        a.tick().unwrap();
        let interrupted = !host.take_interruption_back();
        let refused = said(&a).contains(&"write: Err(CasMismatch)".into());
        interrupted.then_some((refused, count(&host, "id")))
    };
    let all: Vec<_> = (0..).map_while(read_by_both).collect();
    assert!(all.contains(&(true, Some(6))), "{all:?}");
    assert!(all.contains(&(false, Some(7))), "{all:?}");
}

#[test]
fn shared_data_belongs_to_a_vm_id_and_outlives_its_vms() {
    let host = Host::new();
    vm(&host, "one", "").tick().unwrap();
    vm(&host, "one", "").tick().unwrap();
    vm(&host, "two", "").tick().unwrap();
    assert_eq!(
        (count(&host, "one"), count(&host, "two")),
        (Some(2), Some(1))
    );
    assert_eq!(host.shared_keys("one"), ["count"]);
    assert_eq!(host.shared_data("three", "count"), None);
}

#[test]
fn a_queue_tells_the_vm_that_registered_it() {
    let host = Host::new();
    let (consumer, producer) = (vm(&host, "id", "consumer"), vm(&host, "id", "producer"));
    producer.tick().unwrap();
    assert_eq!(consumer.deliver_queues().unwrap(), 1);
    assert_eq!(consumer.deliver_queues().unwrap(), 0);
    assert_eq!(
        said(&consumer)[3..],
        ["got job", "then Ok(None)", "other Err(NotFound)"]
    );

    host.enqueue("id", "jobs", "from outside").unwrap();
    host.run_for(Duration::ZERO).unwrap();
    assert!(said(&consumer).contains(&"got from outside".into()));
    assert_eq!(host.enqueue("other", "jobs", ""), Err(Status::NotFound));
}

#[test]
fn timers_of_all_vms_fire_when_they_are_due() {
    let host = Host::new();
    let (fast, slow) = (vm(&host, "id", "fast"), vm(&host, "id", ""));
    assert_eq!(
        fast.tick_period(fast.roots()[0]),
        Some(Duration::from_millis(10))
    );
    host.run_for(Duration::from_millis(105)).unwrap();
    let ticks = |vm: &Vm| {
        said(vm)
            .iter()
            .filter(|line| line.starts_with("tick"))
            .count()
    };
    assert_eq!((ticks(&fast), ticks(&slow)), (10, 1));
    assert_eq!(count(&host, "id"), Some(11));
}

#[test]
fn both_clocks_move_with_the_test_and_the_wall_clock_can_jump() {
    let host = Host::new();
    let vm = vm(&host, "", "");
    host.clock().advance(Duration::from_secs(10));
    host.clock()
        .set_wall(SystemTime::UNIX_EPOCH + Duration::from_secs(77));
    vm.tick().unwrap();
    let tick = said(&vm)
        .into_iter()
        .find(|line| line.starts_with("tick"))
        .unwrap();
    assert!(tick.starts_with("tick at 77 "), "{tick}");
    assert!(
        tick.contains("3610"),
        "the monotonic clock starts at an hour: {tick}"
    );
}

#[test]
fn metrics_of_all_vms_add_up() {
    let host = Host::new();
    for _ in 0..2 {
        vm(&host, "", "").tick().unwrap();
    }
    let metrics = host.metrics();
    assert_eq!((metrics.counter("Counter"), metrics.gauge("Gauge")), (2, 7));
    assert_eq!(metrics.histogram("Histogram"), [9, 9]);
    assert_eq!(metrics.names(), ["Counter", "Gauge", "Histogram"]);
}

#[test]
fn configuration_environment_and_output_reach_the_module_and_back() {
    let builder = Host::new()
        .vm(&SHARED)
        .vm_config("for the VM")
        .env("COLOUR", "green");
    let vm = builder.start().unwrap();
    assert_eq!(said(&vm), ["vm: for the VM", "green"]);
    assert_eq!(vm.take_logs()[1].level, LogLevel::Info);
    assert!(vm.logs().is_empty());
}

#[test]
fn a_new_configuration_is_a_new_root_in_the_same_vm_and_the_old_one_ticks_until_it_is_retired() {
    let vm = vm(&Host::new(), "", "old");
    let old = vm.roots()[0];
    let new = vm.configure("new").unwrap();
    vm.take_logs();
    vm.tick().unwrap();
    let ticked = |name: &str| {
        said(&vm)
            .iter()
            .any(|line| line.starts_with("tick") && line.ends_with(name))
    };
    assert!(ticked("old") && ticked("new"));
    assert!(vm.retire(old).unwrap());
    assert_eq!(vm.roots(), [new]);
    assert_eq!(vm.configuration(new).as_deref(), Some(b"new".as_slice()));
}

#[test]
fn a_root_that_needs_time_to_finish_stays_until_it_is_done() {
    let vm = vm(&Host::new(), "", "slow");
    assert!(!vm.retire(vm.roots()[0]).unwrap());
    assert_eq!(vm.roots().len(), 1);
    vm.tick().unwrap();
    assert!(vm.roots().is_empty());
}
