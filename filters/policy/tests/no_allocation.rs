// SPDX-License-Identifier: Apache-2.0
//! A decision takes no memory from the heap, whatever it decides.

use std::time::Duration;

use allocation_counter::measure;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use weir_policy::{
    CacheShard, Cluster, Host, HostId, HostState, KeyHash, Keys, Level, Load, Outcome, Overload,
    Policy, Rank, Request, Selection, Table,
};

const NOW: Duration = Duration::from_secs(1000);

fn address(host: usize) -> String {
    format!("10.0.{}.{}:9000", 100 + host / 100, 100 + host % 100)
}

/// 1,000 hosts of which one of `open` admits; key 1 is cached at two of them.
fn cluster(selection: Selection, open: usize) -> Cluster {
    let host = |number| Host {
        address: address(number),
        state: HostState::Up,
        load: Some(Load {
            observed: NOW,
            in_progress: number as u32 % 7,
            ..Load::default()
        }),
        level: if number % open == 0 {
            Level::ALL
        } else {
            Level::NONE
        },
        capacity_millicores: 0,
        speed_permille: 0,
        preempt_at: None,
        zone: 0,
    };
    let policy = Policy {
        overload: Overload::Dagor,
        selection,
        ranked_hosts: 8,
        ..Policy::default()
    };
    let ids = vec![HostId::of(&address(0)), HostId::of(&address(10))];
    let shard = CacheShard::new(0, 1, ids, vec![1], vec![2], vec![0, 2]).unwrap();
    let mut cluster = Cluster::default();
    cluster.set_table(
        Table::new(policy, (0..1000).map(host).collect(), 1).unwrap(),
        NOW,
        NOW,
    );
    cluster.set_cache_shard(0, shard);
    let request = Request {
        keys: KeyHash(2).into(),
        rank: Rank::new(16, 64),
    };
    cluster.assigned(HostId::of(&address(20)), &request, NOW);
    cluster
}

#[test]
fn a_decision_takes_no_memory_from_the_heap() {
    let keys = [
        Keys::default(),
        KeyHash(1).into(),
        KeyHash(2).into(),
        KeyHash(3).into(),
        Keys::new([1, 2, 3].map(KeyHash)),
    ];
    // All open, most closed, all but one closed.
    for (selection, open) in Selection::ALL
        .into_iter()
        .flat_map(|s| [1, 10, 1000].map(|open| (s, open)))
    {
        let cluster = cluster(selection, open);
        for keys in &keys {
            let request = Request {
                keys: keys.clone(),
                rank: Rank::new(16, 64),
            };
            let mut rng = SmallRng::seed_from_u64(1);
            for age in [Duration::ZERO, Duration::from_secs(60)] {
                let mut decision = None;
                let took = measure(|| {
                    decision = Some(cluster.decide(&request, NOW + age, &mut rng));
                });
                assert_eq!(
                    took.count_total, 0,
                    "{selection:?}, one of {open} open, {keys:?}"
                );
                assert!(matches!(decision.unwrap().outcome, Outcome::Send(_)));
            }
        }
    }
    let took = measure(|| drop(std::hint::black_box(vec![0u8; 100])));
    assert_eq!(took.count_total, 1, "allocations are counted");
}
