// SPDX-License-Identifier: Apache-2.0
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use prost::Message;
use weir_policy::overload::dynamic_breaker;
use weir_policy::{
    CacheShard, Cost, Hedging, Holder, Holding, Host, HostId, HostState, KeyHash, Level, Load,
    Overload, Policy, Selection, Serves, Work,
};
use weir_tables::{
    Meta, ShardBuilder, cache_shard_name, decode_cache_shard, decode_host_table, encode_load,
    encode_policy, v1,
};

use crate::samples::{CLUSTER, RECEIVED};

fn overloads() -> impl Strategy<Value = Overload> {
    let params = any::<(u32, u32, u32)>();
    (prop::sample::select(&Overload::ALL), params).prop_map(|(overload, params)| {
        let (queued_jobs, wait_ms, least_queued_jobs) = params;
        match overload {
            Overload::Breaker { .. } => Overload::Breaker { queued_jobs },
            Overload::DynamicBreaker(_) => Overload::DynamicBreaker(dynamic_breaker::Params {
                queued_jobs,
                wait: Duration::from_millis(wait_ms.into()),
                least_queued_jobs,
            }),
            Overload::None | Overload::Dagor | Overload::Breakwater | Overload::Slots => overload,
        }
    })
}

fn selections() -> impl Strategy<Value = Selection> {
    let permille = prop_oneof![Just(0), Just(1000), 0u16..=1000];
    (prop::sample::select(&Selection::ALL), permille).prop_map(|(selection, permille)| {
        match selection {
            Selection::HotCold { .. } => Selection::HotCold { permille },
            other => other,
        }
    })
}

fn policies() -> impl Strategy<Value = Policy> {
    let duration = || any::<u32>().prop_map(|ms| Duration::from_millis(ms.into()));
    (
        overloads(),
        selections(),
        duration(),
        duration(),
        1usize..=8,
        duration(),
        (
            holdings(),
            hedgings(),
            0u32..=100,
            prop::option::of(any::<u64>().prop_map(KeyHash)),
            (
                0u32..=100,
                any::<u32>(),
                prop::option::of(selections()),
                prop::sample::select(&[Serves::Jobs, Serves::Prompts]),
                any::<u32>(),
            ),
        ),
    )
        .prop_map(
            |(
                overload,
                selection,
                assumed_cached,
                stale_after,
                ranked_hosts,
                retry_after,
                late,
            )| {
                let (holding, hedging, panic_threshold, salt_check, watched) = late;
                let (steer_percent, receipt_every, beside, serves, crossing_us) = watched;
                Policy {
                    overload,
                    selection,
                    serves,
                    assumed_cached,
                    stale_after,
                    ranked_hosts,
                    retry_after,
                    holding,
                    hedging,
                    panic_threshold,
                    salt_check,
                    steer_percent,
                    receipt_every,
                    // Both have one quantile.
                    beside: beside.map(|beside| match (selection, beside) {
                        (Selection::HotCold { .. }, Selection::HotCold { .. }) => selection,
                        _ => beside,
                    }),
                    crossing: Duration::from_micros(crossing_us.into()),
                }
            },
        )
}

/// When tables were built: 14 November 2023.
const BUILT_UNIX_MS: u64 = 1_700_000_000_000;
/// Off, or on with any parameters: those of what is off are not sent.
fn holdings() -> impl Strategy<Value = Holding> {
    let duration = || (1u64..=60_000).prop_map(Duration::from_millis);
    let on = (duration(), duration(), 1usize..=10_000).prop_map(
        |(for_eligible, for_cached, max_held)| Holding {
            for_eligible,
            for_cached,
            max_held,
        },
    );
    prop_oneof![Just(Holding::default()), on]
}

fn hedgings() -> impl Strategy<Value = Hedging> {
    let on = (any::<u32>(), 0u32..=100, 1u32..=32).prop_map(|(after, idle_percent, classes)| {
        let after = Duration::from_millis(u64::from(after).max(1));
        Hedging {
            after,
            idle_percent,
            classes,
        }
    });
    prop_oneof![Just(Hedging::default()), on]
}

fn loads() -> impl Strategy<Value = Load> {
    let delay = prop::option::of(any::<u32>());
    let micros = |us: u32| Duration::from_micros(us.into());
    let work = prop::collection::vec(any::<u32>(), 0..=32);
    let work =
        prop::option::of(work.prop_map(move |us| Work::by_class(us.into_iter().map(micros))));
    let busy_cores = prop::option::of(any::<u32>());
    let jobs = (any::<u32>(), any::<u32>());
    (0u64..1_000_000, jobs, delay, busy_cores, work).prop_map(
        move |(age_ms, (in_progress, queued), delay, busy_cores, work)| Load {
            observed: RECEIVED - Duration::from_millis(age_ms),
            in_progress,
            queued,
            queuing_delay: delay.map(micros),
            busy_cores,
            work,
        },
    )
}

type Row = (
    String,
    (HostState, Option<Load>, Level, (u32, u32), Option<u64>, u32),
);

fn zones() -> Vec<String> {
    vec!["a".into(), "b".into(), "c".into()]
}

fn hosts() -> impl Strategy<Value = Vec<Host>> {
    let address = prop_oneof![
        any::<std::net::SocketAddrV4>().prop_map(|address| address.to_string()),
        (any::<std::net::Ipv6Addr>(), any::<u16>())
            .prop_map(|(ip, port)| std::net::SocketAddr::new(ip.into(), port).to_string()),
    ];
    let state = prop::sample::select(vec![HostState::Up, HostState::Draining, HostState::Down]);
    let level = (0u16..=4096).prop_map(Level::admitting);
    let row = (
        state,
        prop::option::of(loads()),
        level,
        any::<(u32, u32)>(),
        prop::option::of(0u64..1 << 40),
        0u32..=3,
    );
    prop::collection::btree_map(address, row, 0..20).prop_map(|rows| {
        let host = |(
            address,
            (state, load, level, (capacity_millicores, speed_permille), left, zone),
        ): Row| {
            Host {
                address,
                state,
                load,
                level,
                capacity_millicores,
                speed_permille,
                preempt_at: left.map(|left: u64| RECEIVED + Duration::from_millis(left)),
                zone,
            }
        };
        rows.into_iter().map(host).collect()
    })
}

fn encode_host(host: &Host) -> v1::Host {
    let state = match host.state {
        HostState::Up => v1::HostState::Up,
        HostState::Draining => v1::HostState::Draining,
        HostState::Down => v1::HostState::Down,
    };
    v1::Host {
        address: host.address.clone(),
        state: state.into(),
        load: host.load.as_ref().map(|load| encode_load(load, RECEIVED)),
        admission_level: Some(host.level.ranks().into()),
        capacity_millicores: host.capacity_millicores,
        preempt_at_unix_ms: host
            .preempt_at
            .map_or(0, |at| BUILT_UNIX_MS + (at - RECEIVED).as_millis() as u64),
        speed_permille: host.speed_permille,
        zone: host.zone,
    }
}

/// Any table that is sound.
pub(crate) fn host_tables() -> impl Strategy<Value = v1::HostTable> {
    let meta = any::<(u64, u64)>();
    let rest = (0u32..=11, any::<(u32, u32, u32, u32)>());
    (policies(), hosts(), meta, rest).prop_map(|(policy, hosts, (epoch, version), rest)| {
        let (shards, (fetch_us, run_us, sidecars, refetched_permille)) = rest;
        v1::HostTable {
            cluster: CLUSTER.into(),
            epoch,
            version,
            policy: Some(encode_policy(&policy)),
            hosts: hosts.iter().map(encode_host).collect(),
            cache_shards: 1 << shards >> 1,
            mean_cost: Some(v1::Cost { fetch_us, run_us }),
            built_unix_ms: BUILT_UNIX_MS,
            sidecars,
            zones: zones(),
            refetched_permille,
            withdrawn_percent: None,
        }
    })
}

proptest! {
    #[test]
    fn a_host_table_is_read_as_it_was_written(
        policy in policies(), hosts in hosts(), shards in 0u32..=11, epoch: u64, version: u64,
        fetch_us: u32, run_us: u32, sidecars: u32, refetched_permille: u32,
    ) {
        let cache_shards = 1 << shards >> 1;
        let message = v1::HostTable {
            cluster: CLUSTER.into(),
            epoch,
            version,
            policy: Some(encode_policy(&policy)),
            hosts: hosts.iter().map(encode_host).collect(),
            cache_shards,
            mean_cost: Some(v1::Cost { fetch_us, run_us }),
            built_unix_ms: BUILT_UNIX_MS,
            sidecars,
            zones: zones(),
            refetched_permille,
            withdrawn_percent: None,
        };
        let (meta, table) = decode_host_table(CLUSTER, &message.encode_to_vec(), RECEIVED).unwrap();
        prop_assert_eq!(meta, Meta { epoch, version });
        prop_assert_eq!(table.policy(), &policy);
        prop_assert_eq!(table.hosts(), hosts.as_slice());
        prop_assert_eq!((table.cache_shards(), table.zones()), (cache_shards, &*zones()));
        let micros = |us: u32| Duration::from_micros(us.into());
        let mean = Cost { fetch: micros(fetch_us), run: micros(run_us) };
        prop_assert_eq!((table.mean_cost(), table.callers()), (mean, sidecars));
        prop_assert_eq!(table.refetched(), f64::from(refetched_permille.min(1000)) / 1000.0);
    }

    #[test]
    fn a_cache_shard_is_read_as_it_was_written(
        bits in 0u32..=10,
        which: prop::sample::Index,
        held in prop::collection::btree_map(any::<u64>(), prop::collection::btree_map(0u64..9, any::<bool>(), 1..6), 0..30),
        epoch: u64,
        version: u64,
    ) {
        let shards = 1u32 << bits;
        let shard = which.index(shards as usize) as u32;
        // Every key is moved to the shard by its top bits.
        let top = u64::from(shard).checked_shl(64 - bits).unwrap_or(0);
        let moved = |key: u64| top | key.checked_shr(bits).unwrap_or(key);
        let held: BTreeMap<u64, _> = held.into_iter().map(|(key, held)| (moved(key), held)).collect();
        let mut builder = ShardBuilder::default();
        for (key, held) in &held {
            for (host, assumed) in held {
                builder.add(KeyHash(*key), Holder { host: HostId(*host), assumed: *assumed });
            }
        }
        let bytes = builder.build(Meta { epoch, version }).encode_to_vec();
        let name = cache_shard_name(CLUSTER, shards, shard);
        let (meta, found) = decode_cache_shard(&name, &bytes).unwrap();
        prop_assert_eq!(meta, Meta { epoch, version });

        let hosts: BTreeSet<u64> = held.values().flat_map(BTreeMap::keys).copied().collect();
        let hosts: Vec<u64> = hosts.into_iter().collect();
        let (mut ends, mut holders) = (Vec::new(), Vec::new());
        for held in held.values() {
            for (host, assumed) in held {
                let place = hosts.binary_search(host).unwrap() as u32;
                holders.push(place * 2 + u32::from(*assumed));
            }
            ends.push(holders.len() as u32);
        }
        let hosts = hosts.into_iter().map(HostId).collect();
        let keys = held.into_keys().collect();
        prop_assert_eq!(found, CacheShard::new(shard, shards, hosts, keys, ends, holders).unwrap());
    }
}

#[test]
fn what_a_table_leaves_out_takes_the_default_of_the_readme() {
    let host = v1::Host {
        address: "10.0.0.1:9000".into(),
        state: v1::HostState::Up.into(),
        ..Default::default()
    };
    let message = v1::HostTable {
        cluster: CLUSTER.into(),
        hosts: vec![host],
        ..Default::default()
    };
    let (meta, table) = decode_host_table(CLUSTER, &message.encode_to_vec(), RECEIVED).unwrap();
    assert_eq!(meta, Meta::default());
    let expected = Policy {
        overload: Overload::None,
        selection: Selection::Estimate,
        serves: Serves::Jobs,
        assumed_cached: Duration::from_secs(10),
        stale_after: Duration::from_secs(5),
        ranked_hosts: 3,
        retry_after: Duration::from_secs(1),
        holding: Holding::default(),
        hedging: Hedging::default(),
        panic_threshold: 50,
        salt_check: None,
        steer_percent: 100,
        receipt_every: 1_000,
        beside: None,
        crossing: Duration::ZERO,
    };
    assert_eq!(table.policy(), &expected);
    assert_eq!(table.cache_shards(), 0);
    let host = table.host(0).unwrap();
    assert_eq!((host.level, &host.load), (Level::ALL, &None));
    let breaker = v1::Policy {
        overload: v1::Overload::Breaker.into(),
        ..Default::default()
    };
    let message = v1::HostTable {
        policy: Some(breaker),
        ..message
    };
    let (_, table) = decode_host_table(CLUSTER, &message.encode_to_vec(), RECEIVED).unwrap();
    assert_eq!(
        table.policy().overload,
        Overload::Breaker { queued_jobs: 100 }
    );
}
