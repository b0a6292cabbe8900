// SPDX-License-Identifier: Apache-2.0
//! One sound message of each kind: those of the golden files.

use std::time::Duration;

use prost::Message;
use weir_policy::{Cost, Holder, HostId, KeyHash, shard_of};
use weir_tables::{Meta, ShardBuilder, v1};

pub(crate) const RECEIVED: Duration = Duration::from_secs(1000);
pub(crate) const CLUSTER: &str = "rules";
/// Resource name of [`cache_shard`].
pub(crate) const SHARD: &str = "rules/4/2";
const META: Meta = Meta {
    epoch: 0x0123_4567_89ab_cdef,
    version: 42,
};

pub(crate) fn host_table() -> v1::HostTable {
    let load = v1::Load {
        age_ms: 250,
        in_progress: 12,
        queued: vec![3, 0, 5],
        queuing_delay_us: Some(1500),
        busy_cores: Some(8),
        tells_work: true,
        work_us: vec![40_000, 0, 90_000],
    };
    let up = v1::Host {
        address: "10.0.0.1:9000".into(),
        state: v1::HostState::Up.into(),
        load: Some(load),
        admission_level: Some(2112),
        capacity_millicores: 8000,
        preempt_at_unix_ms: 1_700_000_000_000,
        speed_permille: 333,
        zone: 2,
    };
    let draining = v1::Host {
        address: "10.0.0.2:9000".into(),
        state: v1::HostState::Draining.into(),
        ..Default::default()
    };
    let down = v1::Host {
        address: "[2001:db8::1]:9000".into(),
        state: v1::HostState::Down.into(),
        ..Default::default()
    };
    v1::HostTable {
        cluster: CLUSTER.into(),
        epoch: META.epoch,
        version: META.version,
        policy: Some(v1::Policy {
            overload: v1::Overload::Breaker.into(),
            selection: v1::Selection::Dynamic.into(),
            breaker_queued_jobs: Some(80),
            assumed_cached_ms: Some(12_000),
            stale_after_ms: Some(4000),
            ranked_hosts: Some(2),
            retry_after_ms: Some(1500),
            crossing_us: 2500,
            ..Default::default()
        }),
        hosts: vec![up, draining, down],
        cache_shards: 4,
        mean_cost: Some(v1::Cost {
            fetch_us: 5000,
            run_us: 20_000,
        }),
        built_unix_ms: 1_699_999_990_000,
        sidecars: 8,
        zones: vec!["eu-1a".into(), "eu-1b".into()],
        refetched_permille: 250,
        withdrawn_percent: None,
    }
}

/// Key 2 of 3 is held by two hosts, one of which is only assumed to have it.
pub(crate) fn cache_shard() -> v1::CacheShard {
    let keys = (0..).map(|number| KeyHash::of(format!("project-{number}").as_bytes()));
    let keys: Vec<_> = keys.filter(|key| shard_of(*key, 4) == 2).take(3).collect();
    let holder = |address, assumed| Holder {
        host: HostId::of(address),
        assumed,
    };
    let mut shard = ShardBuilder::default();
    shard.add(keys[0], holder("10.0.0.1:9000", false));
    shard.add(keys[1], holder("10.0.0.1:9000", false));
    shard.add(keys[1], holder("[2001:db8::1]:9000", true));
    shard.add(keys[2], holder("10.0.0.2:9000", false));
    let known = keys[1];
    shard.build_with(META, |key| {
        (key == known).then_some(Cost {
            fetch: Duration::from_millis(30),
            run: Duration::from_millis(120),
        })
    })
}

pub(crate) fn report() -> v1::Report {
    let host = v1::HostRecord {
        address: "10.0.0.1:9000".into(),
        in_flight: 2,
        assigned: 100,
        ok: 90,
        client_error: 3,
        server_error: 4,
        no_answer: 1,
        load: Some(v1::Load {
            age_ms: 10,
            in_progress: 12,
            queued: vec![8],
            queuing_delay_us: None,
            ..Default::default()
        }),
        admitted: vec![v1::RankCount {
            rank: 64,
            count: 100,
        }],
        unconnected: 1,
        reading_us: 2_500_000,
        admission_level: None,
        since_ms: 850,
        whole: true,
    };
    let cluster = v1::ClusterRecord {
        cluster: CLUSTER.into(),
        hosts: vec![host],
        offered: vec![
            v1::RankCount {
                rank: 64,
                count: 100,
            },
            v1::RankCount {
                rank: 2112,
                count: 7,
            },
        ],
        shed: vec![v1::RankCount {
            rank: 2112,
            count: 7,
        }],
        assignments: vec![v1::Assignment {
            key: KeyHash::of(b"project-1").0,
            host_id: HostId::of("10.0.0.1:9000").0,
            age_ms: 20,
        }],
        spent: vec![v1::Spent {
            key: KeyHash::of(b"project-1").0,
            host_id: HostId::of("10.0.0.1:9000").0,
            age_ms: 5,
            fetch_us: Some(4000),
            run_us: 19_000,
        }],
        held: 3,
        choices_ignored: false,
        whole: true,
        receipts: vec![v1::Stub {
            age_ms: 15,
            receipt: receipt().encode_to_vec(),
        }],
        steered: Some(v1::Share {
            ended: 10,
            failed: 1,
            duration_us: 90_000,
            shed: 2,
        }),
        unsteered: None,
    };
    v1::Report {
        proxy: "caller-1".into(),
        records: vec![v1::VmRecord {
            slot: 1,
            epoch: 0xfeed_f00d_0000_0001,
            deadline_ns: 1_000_000_000,
            clusters: vec![cluster],
            published_ns: 900_000_000,
        }],
        changes: true,
    }
}

/// Of a request for one key, which the second of two hosts lacks.
pub(crate) fn receipt() -> v1::Receipt {
    let look = |index: u32, address: &str, has: v1::LookHas, lacks: u32, fetch_ns: f64| v1::Look {
        index,
        address: address.into(),
        has: has.into(),
        lacks,
        wait_ns: 1_500_000.5,
        fetch_ns,
        run_ns: 2e7,
        speed: 1.25,
        fullness: 0.75,
        avoided: lacks > 0,
        load_age_ms: Some(250),
        crossing_ns: 2.5e6,
    };
    let (first, second) = ("10.0.0.1:9000", "10.0.0.2:9000");
    v1::Receipt {
        id: 0xfeed_0000_0000_0002,
        table_epoch: META.epoch,
        table_version: META.version,
        table_age_ms: 40,
        rank: 2112,
        keys: vec![KeyHash::of(b"project-1").0],
        key_count: 1,
        selection: v1::Selection::Estimate.into(),
        reason: "known_cached".into(),
        outcome: v1::ReceiptOutcome::Send.into(),
        chosen: vec![first.into(), second.into()],
        steered: true,
        salt: 0xfeed_0000_0000_0003,
        limit: 2,
        panics: false,
        looks: vec![
            look(0, first, v1::LookHas::Known, 0, 0.0),
            look(1, second, v1::LookHas::Lacks, 1, 4e7),
        ],
        suspects: vec![1],
        instead: None,
        host: first.into(),
        status: 200,
        duration_us: 21_000,
        beside: Some(v1::Beside {
            selection: v1::Selection::Dynamic.into(),
            reason: "not_cached".into(),
            chosen: vec![second.into()],
            first: Some(look(1, second, v1::LookHas::Lacks, 1, 4e7)),
            made: Some(look(0, first, v1::LookHas::Known, 0, 0.0)),
        }),
    }
}

pub(crate) fn node_report() -> v1::NodeReport {
    v1::NodeReport {
        cluster: CLUSTER.into(),
        host: "10.0.0.1:9000".into(),
        capacity_millicores: 1500,
    }
}

/// Of a host that did not wait, which is not one that says nothing of it.
pub(crate) fn host_row() -> v1::HostRow {
    v1::HostRow {
        admission_level: 2112,
        queuing_delay_us: Some(0),
        age_ms: Some(300),
    }
}
