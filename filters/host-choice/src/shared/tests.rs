// SPDX-License-Identifier: Apache-2.0
use weir_tables::v1;

use super::*;
use crate::fake::FakeHost;
use crate::lease::Holder;

fn ready() -> FakeHost {
    let host = FakeHost::default();
    create(&host);
    host
}

fn lease_of(vm: u64) -> Lease {
    let (root, generation) = (1, 1);
    Lease {
        holder: Holder {
            vm,
            root,
            generation,
        },
        deadline: Duration::from_secs(1),
    }
}

/// The record of a VM that is dead after a second.
fn record_of(vm: u64) -> VmRecord {
    VmRecord {
        epoch: vm,
        deadline_ns: 1_000_000_000,
        ..Default::default()
    }
}

const ALIVE: Duration = Duration::from_millis(500);
const DEAD: Duration = Duration::from_millis(1_500);

#[test]
fn keys_are_created_once_and_a_process_keeps_its_name() {
    let host = ready();
    let drawn = process(&host);
    assert_eq!(drawn.len(), 16);
    let (_, cas) = lease(&host).unwrap();
    assert!(set_lease(&host, Some(lease_of(7)), cas));
    create(&host);
    assert_eq!(process(&host), drawn);
    assert_eq!(lease(&host).unwrap().0, Some(lease_of(7)));
    assert!(host.keys().iter().all(|key| key.starts_with("weir/1/")));
    let another = FakeHost::default();
    another.random();
    create(&another);
    assert_ne!(process(&another), drawn);
}

#[test]
fn a_vm_that_starts_late_does_not_undo_what_another_has_written() {
    let host = FakeHost::default();
    host.race("weir/1/owner", &lease_of(8).encode());
    create(&host);
    assert_eq!(lease(&host).unwrap().0, Some(lease_of(8)));
    let mut others = Index::default();
    let (meta, says) = Default::default();
    others.insert(Kind::Table, "a", meta, says, ALIVE);
    update_index(&host, |index| *index = others.clone());
    create(&host);
    assert_eq!(index(&host, None).unwrap().0, others);
}

#[test]
fn without_its_key_there_is_no_lease_and_no_slot() {
    let host = FakeHost::default();
    assert_eq!(lease(&host), None);
    assert_eq!(claim_slot(&host, 7, ALIVE), None);
    assert_eq!(generation(&host, 1, false), 1);
    assert_eq!(host.keys(), Vec::<String>::new());
}

#[test]
fn a_lease_that_another_has_just_written_is_not_overwritten() {
    let host = ready();
    let (before, cas) = lease(&host).unwrap();
    assert_eq!(before, None);
    host.race("weir/1/owner", &lease_of(8).encode());
    assert!(!set_lease(&host, Some(lease_of(7)), cas));
    assert_eq!(lease(&host).unwrap().0, Some(lease_of(8)));
}

#[test]
fn a_change_of_the_index_is_made_to_what_another_has_written_meanwhile() {
    let host = ready();
    let mut others = Index::default();
    others.insert(
        Kind::Table,
        "a",
        Default::default(),
        Default::default(),
        ALIVE,
    );
    host.race("weir/1/index", &others.encode_to_vec());
    update_index(&host, |index| {
        index.insert(
            Kind::Table,
            "b",
            Default::default(),
            Default::default(),
            ALIVE,
        );
    });
    let (now, cas) = index(&host, None).unwrap();
    let names: Vec<_> = now
        .entries
        .iter()
        .map(|entry| entry.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(index(&host, Some(cas)), None, "nothing new");
}

#[test]
fn a_change_that_always_loses_its_race_is_given_up() {
    let host = ready();
    for _ in 0..ATTEMPTS {
        host.race("weir/1/slots", &[]);
    }
    assert_eq!(claim_slot(&host, 7, ALIVE), None);
    assert_eq!(claim_slot(&host, 7, ALIVE), Some(0), "the next time");
}

#[test]
fn a_vm_keeps_its_slot_and_gets_that_of_a_dead_one() {
    let host = ready();
    assert_eq!(claim_slot(&host, 7, ALIVE), Some(0));
    assert_eq!(claim_slot(&host, 8, ALIVE), Some(1));
    assert_eq!(claim_slot(&host, 7, ALIVE), Some(0), "its own");
    set_record(&host, 0, &record_of(7), &[]);
    assert_eq!(claim_slot(&host, 9, ALIVE), Some(2), "nobody is dead");
    assert_eq!(claim_slot(&host, 10, DEAD), Some(0), "7 is");
    assert_eq!(slots(&host), [10, 8, 9]);
    assert_eq!(
        claim_slot(&host, 11, DEAD),
        Some(3),
        "the record in 0 is not 10's"
    );
}

#[test]
fn slots_are_bounded() {
    let host = ready();
    let claimed = (1..=200).filter_map(|vm| claim_slot(&host, vm, ALIVE));
    assert_eq!(claimed.count(), MAX_SLOTS);
    assert_eq!(slots(&host).len(), MAX_SLOTS);
}

#[test]
fn a_record_is_decoded_when_it_has_changed() {
    let host = ready();
    assert_eq!(record::<VmRecord>(&host, 0, None), None);
    set_record(&host, 0, &record_of(7), &[]);
    let (read, cas) = record(&host, 0, None).unwrap();
    assert_eq!(read, Some(record_of(7)));
    assert_eq!(record::<VmRecord>(&host, 0, Some(cas)), Some((None, cas)));
    set_record(&host, 0, &record_of(8), &[]);
    let (read, newer) = record(&host, 0, Some(cas)).unwrap();
    assert_eq!((read, newer != cas), (Some(record_of(8)), true));
    assert!(!expired(record_of(7).deadline_ns, ALIVE) && expired(record_of(7).deadline_ns, DEAD));
}

#[test]
fn what_a_renewed_record_tells_never_looks_newer_than_it_is() {
    let host = ready();
    let load = v1::Load::default();
    let told = v1::ClusterRecord {
        hosts: vec![v1::HostRecord {
            load: Some(load),
            ..Default::default()
        }],
        assignments: vec![v1::Assignment::default()],
        spent: vec![v1::Spent::default()],
        receipts: vec![v1::Stub::default()],
        ..Default::default()
    };
    let before = VmRecord {
        clusters: vec![told],
        ..record_of(7)
    };
    set_record(&host, 0, &before, &[]);
    for _ in 0..10 {
        host.pass(Duration::from_micros(1_000_300));
        renew_record(&host, &record_key(0), |_| true);
    }
    let after = whole_record(&host, 0).unwrap();
    assert_eq!(after.published_ns, 10_003_000_000);
    let cluster = &after.clusters[0];
    let ages = [
        cluster.hosts[0].load.as_ref().unwrap().age_ms,
        cluster.assignments[0].age_ms,
        cluster.spent[0].age_ms,
        cluster.receipts[0].age_ms,
    ];
    assert!(
        ages.iter().all(|age| (10_003..=10_010).contains(age)),
        "{ages:?}"
    );
}

fn read(host: &FakeHost, kind: Kind) -> Option<(Duration, Vec<u8>)> {
    resource(host, kind, "rules", |received, body| {
        (received, body.to_vec())
    })
}

#[test]
fn a_resource_is_read_with_the_time_at_which_it_came() {
    let host = ready();
    for kind in Kind::ALL {
        assert_eq!(read(&host, kind), None);
        assert!(set_resource(&host, kind, "rules", ALIVE, b"bytes", |_| {
            true
        }));
        assert_eq!(read(&host, kind), Some((ALIVE, b"bytes".to_vec())));
    }
    assert!(set_resource(&host, Kind::Table, "rules", DEAD, &[], |_| {
        true
    }));
    assert_eq!(read(&host, Kind::Table), Some((DEAD, vec![])));
    let shard = read(&host, Kind::Shard);
    assert_eq!(
        shard,
        Some((ALIVE, b"bytes".to_vec())),
        "the other kind's stays"
    );
}

#[test]
fn a_newer_build_that_another_vm_has_just_written_stays() {
    let host = ready();
    let table = |version| weir_harness::table(version, vec![]).encode_to_vec();
    let received = |version| [&[0; 8][..], &table(version)].concat();
    let older = |than: u64| move |there: Meta| there.version < than;
    host.race("weir/1/table/rules", &received(3));
    let body = table(2);
    let replaced = set_resource(&host, Kind::Table, "rules", ALIVE, &body, older(2));
    assert!(!replaced);
    let kept = read(&host, Kind::Table).unwrap();
    assert_eq!(kept, (Duration::ZERO, table(3)));
    host.race("weir/1/table/rules", &received(4));
    let body = table(5);
    let replaced = set_resource(&host, Kind::Table, "rules", ALIVE, &body, older(5));
    assert!(replaced, "an older one that came in between does not");
    let kept = read(&host, Kind::Table).unwrap();
    assert_eq!(kept, (ALIVE, table(5)));
}

#[test]
fn a_generation_is_given_once_to_a_configuration() {
    let host = ready();
    assert_eq!(generation(&host, 5, false), 1);
    assert_eq!(generation(&host, 6, false), 2);
    assert_eq!(generation(&host, 5, false), 1, "another VM has it too");
    assert_eq!(generation(&host, 5, true), 3, "somebody went back to it");
}
