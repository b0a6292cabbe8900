// SPDX-License-Identifier: Apache-2.0
//! Releases beside their neighbours: what an older one has written keeps its meaning, and of what a newer one
//! writes everything is read that is known here.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};
use weir_policy::{
    CacheIndex, Cost, Hedging, Holding, HostId, HostState, KeyHash, Level, Load, Overload, Policy,
    Selection, Serves, shard_of,
};
use weir_tables::{Meta, decode_cache_shard, decode_host_table, v1};

use crate::round_trip::host_tables;
use crate::samples::{self, CLUSTER, RECEIVED, SHARD};

/// Fields of a message that are messages themselves.
struct Shape(&'static [(u32, &'static Shape)]);

const FLAT: Shape = Shape(&[]);
const HOST: Shape = Shape(&[(3, &FLAT)]);
const POLICY: Shape = Shape(&[(12, &FLAT), (13, &FLAT)]);
const HOST_TABLE: Shape = Shape(&[(4, &POLICY), (5, &HOST), (7, &FLAT)]);
const HOST_RECORD: Shape = Shape(&[(8, &FLAT), (9, &FLAT)]);
const CLUSTER_RECORD: Shape = Shape(&[(2, &HOST_RECORD), (3, &FLAT), (5, &FLAT), (6, &FLAT)]);
const VM_RECORD: Shape = Shape(&[(4, &CLUSTER_RECORD)]);
const REPORT: Shape = Shape(&[(2, &VM_RECORD)]);

/// A field that a later release may bring, with its key.
fn unknown_fields() -> impl Strategy<Value = Vec<u8>> {
    // The highest number of today is 14; protobuf keeps 19,000 to 19,999 for itself.
    let number = prop_oneof![100u32..19_000, 20_000u32..(1 << 29)];
    let value = prop_oneof![
        any::<u64>().prop_map(|value| {
            let mut bytes = Vec::new();
            encode_varint(value, &mut bytes);
            (WireType::Varint, bytes)
        }),
        any::<[u8; 8]>().prop_map(|bytes| (WireType::SixtyFourBit, bytes.to_vec())),
        any::<[u8; 4]>().prop_map(|bytes| (WireType::ThirtyTwoBit, bytes.to_vec())),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|value| {
            let mut bytes = Vec::new();
            encode_varint(value.len() as u64, &mut bytes);
            bytes.extend(value);
            (WireType::LengthDelimited, bytes)
        }),
    ];
    (number, value).prop_map(|(number, (wire, value))| {
        let mut field = Vec::new();
        encode_key(number, wire, &mut field);
        field.extend(value);
        field
    })
}

/// The message with the next of `news` before each of its fields and at its end, and so in the messages in it.
fn grown(mut message: &[u8], shape: &Shape, news: &mut impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut grown = Vec::new();
    loop {
        grown.extend(news.next().unwrap_or_default());
        if message.is_empty() {
            return grown;
        }
        let (number, wire) = decode_key(&mut message).unwrap();
        encode_key(number, wire, &mut grown);
        let length = match wire {
            WireType::Varint => {
                encode_varint(decode_varint(&mut message).unwrap(), &mut grown);
                0
            }
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            _ => decode_varint(&mut message).unwrap() as usize,
        };
        let (value, rest) = message.split_at(length);
        message = rest;
        let inner = shape.0.iter().find(|(field, _)| *field == number);
        let inner = inner.map(|(_, shape)| self::grown(value, shape, news));
        let value = inner.as_deref().unwrap_or(value);
        if wire == WireType::LengthDelimited {
            encode_varint(value.len() as u64, &mut grown);
        }
        grown.extend(value);
    }
}

/// As often as a message has places for them.
fn news() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let sometimes = prop_oneof![Just(Vec::new()), unknown_fields()];
    prop::collection::vec(sometimes, 1..60)
}

fn reads_the_same<M: Message + Default + PartialEq + Debug>(
    message: &M,
    shape: &Shape,
    news: &[Vec<u8>],
) -> Vec<u8> {
    let bytes = message.encode_to_vec();
    let bytes = grown(&bytes, shape, &mut news.iter().cycle().cloned());
    assert_eq!(&M::decode(bytes.as_slice()).unwrap(), message);
    bytes
}

proptest! {
    #[test]
    fn a_table_of_a_newer_release_is_taken_and_means_the_same(table in host_tables(), news in news()) {
        let known = decode_host_table(CLUSTER, &table.encode_to_vec(), RECEIVED).unwrap();
        let grown = reads_the_same(&table, &HOST_TABLE, &news);
        let read = decode_host_table(CLUSTER, &grown, RECEIVED).unwrap();
        prop_assert_eq!(format!("{read:?}"), format!("{known:?}"));
    }

    #[test]
    fn what_else_a_newer_release_says_is_read_as_far_as_it_is_known(news in news()) {
        let shard = samples::cache_shard();
        let known = decode_cache_shard(SHARD, &shard.encode_to_vec()).unwrap();
        let grown = reads_the_same(&shard, &FLAT, &news);
        prop_assert_eq!(decode_cache_shard(SHARD, &grown).unwrap(), known);
        reads_the_same(&samples::report(), &REPORT, &news);
        reads_the_same(&samples::node_report(), &FLAT, &news);
        reads_the_same(&samples::host_row(), &FLAT, &news);
    }
}

#[test]
fn every_message_in_a_message_gets_new_fields() {
    let new = vec![0xf8, 0x7f, 0x01];
    let places = |message: Vec<u8>, shape| {
        let grown = grown(&message, shape, &mut std::iter::repeat(new.clone()));
        grown.windows(3).filter(|bytes| *bytes == new).count()
    };
    // A place before each field and one at each end; most fields are those of hosts and of the policy.
    let table = places(samples::host_table().encode_to_vec(), &HOST_TABLE);
    let flat = places(samples::host_table().encode_to_vec(), &FLAT);
    assert!(table > 2 * flat, "{table} in all, {flat} outside");
    let report = places(samples::report().encode_to_vec(), &REPORT);
    assert!(report > 30, "{report}");
}

fn previous(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/previous");
    std::fs::read(folder.join(format!("{name}.bin"))).unwrap()
}

const META: Meta = Meta {
    epoch: 0x0123_4567_89ab_cdef,
    version: 42,
};

#[test]
fn a_table_of_the_previous_release_keeps_its_meaning() {
    let (meta, table) = decode_host_table(CLUSTER, &previous("host_table"), RECEIVED).unwrap();
    assert_eq!(meta, META);
    let policy = Policy {
        overload: Overload::Breaker { queued_jobs: 80 },
        selection: Selection::Dynamic,
        serves: Serves::Jobs,
        assumed_cached: Duration::from_secs(12),
        stale_after: Duration::from_secs(4),
        ranked_hosts: 2,
        retry_after: Duration::from_millis(1500),
        holding: Holding::default(),
        hedging: Hedging::default(),
        panic_threshold: 50,
        salt_check: None,
        steer_percent: 100,
        receipt_every: 1_000,
        beside: None,
        crossing: Duration::ZERO,
    };
    assert_eq!(table.policy(), &policy);
    assert_eq!((table.cache_shards(), table.hosts().len()), (4, 3));
    assert_eq!((table.mean_cost(), table.callers()), (Cost::default(), 0));
    let [up, draining, down] = [0, 1, 2].map(|index| table.host(index).unwrap());
    let load = Load {
        observed: RECEIVED - Duration::from_millis(250),
        in_progress: 12,
        queued: 8,
        queuing_delay: Some(Duration::from_micros(1500)),
        busy_cores: None,
        work: None,
    };
    assert_eq!((&*up.address, up.state), ("10.0.0.1:9000", HostState::Up));
    assert_eq!(up.load.as_ref(), Some(&load));
    assert_eq!(up.level, Level::admitting(2112));
    assert_eq!((up.capacity_millicores, up.speed_permille), (8000, 0));
    // It did not say when it was built: the host goes away in its own time, not at once.
    let years = Duration::from_secs(365 * 24 * 3600);
    assert!(up.preempt_at.is_some_and(|at| at > RECEIVED + years));
    for (host, address, state) in [
        (draining, "10.0.0.2:9000", HostState::Draining),
        (down, "[2001:db8::1]:9000", HostState::Down),
    ] {
        assert_eq!((&*host.address, host.state), (address, state));
        assert_eq!((&host.load, host.level), (&None, Level::ALL));
    }
}

#[test]
fn a_shard_of_the_previous_release_keeps_its_meaning() {
    let (meta, shard) = decode_cache_shard(SHARD, &previous("cache_shard")).unwrap();
    assert_eq!((meta, shard.len()), (META, 3));
    let (_, today) = decode_cache_shard(SHARD, &samples::cache_shard().encode_to_vec()).unwrap();
    let [index, known] = [shard, today].map(|shard| {
        let mut index = CacheIndex::default();
        index.resize(4);
        index.set(2, shard);
        index
    });
    let names = (0..).map(|number| KeyHash::of(format!("project-{number}").as_bytes()));
    let keys = names.filter(|key| shard_of(*key, 4) == 2).take(3);
    for key in keys {
        for host in ["10.0.0.1:9000", "10.0.0.2:9000", "[2001:db8::1]:9000"].map(HostId::of) {
            assert_eq!(index.holder(key, host), known.holder(key, host));
        }
    }
}

#[test]
fn a_report_of_the_previous_release_keeps_its_meaning() {
    let report = v1::Report::decode(previous("report").as_slice()).unwrap();
    let mut expected = samples::report();
    let cluster = &mut expected.records[0].clusters[0];
    (cluster.spent, cluster.held, cluster.hosts[0].unconnected) = (Vec::new(), 0, 0);
    (cluster.receipts, cluster.steered) = (Vec::new(), None);
    // What was shed it told without ranks, which nobody reads any more.
    cluster.shed = Vec::new();
    cluster.hosts[0].reading_us = 0;
    // Each report was whole.
    (
        cluster.whole,
        cluster.hosts[0].whole,
        cluster.hosts[0].since_ms,
    ) = (false, false, 0);
    expected.changes = false;
    assert_eq!(report, expected);
}
