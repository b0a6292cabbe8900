// SPDX-License-Identifier: Apache-2.0
//! Clusters to decide for, the same in every run.

use std::time::Duration;

use anyhow::Result;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use weir_policy::{
    CacheShard, Cluster, Host, HostId, HostState, KeyHash, Level, Load, Overload, Policy,
    Selection, Table,
};

pub(super) const NOW: Duration = Duration::from_secs(1000);
/// Every second one is cached at three hosts.
pub(super) const KEYS: u64 = 4096;

pub(super) fn key(number: u64) -> KeyHash {
    KeyHash::of(&number.to_le_bytes())
}

pub(super) fn cluster(hosts: usize, selection: Selection) -> Result<Cluster> {
    let mut cluster = Cluster::default();
    cluster.set_table(table(hosts, selection, Overload::Dagor)?, NOW, NOW);
    cluster.set_cache_shard(0, cache(hosts)?);
    Ok(cluster)
}

/// Hosts with load; one of eight admits nobody, the others have different levels.
pub(super) fn table(hosts: usize, selection: Selection, overload: Overload) -> Result<Table> {
    let mut rng = SmallRng::seed_from_u64(1);
    let host = |number| Host {
        address: address(number),
        state: HostState::Up,
        load: Some(Load {
            observed: NOW,
            in_progress: rng.next_u32() % 30,
            ..Load::default()
        }),
        level: match number % 8 {
            7 => Level::NONE,
            _ => Level::admitting(3000 + number as u16 % 1000),
        },
        capacity_millicores: 8000,
        speed_permille: 0,
        preempt_at: None,
        zone: 0,
    };
    let policy = Policy {
        overload,
        selection,
        ..Policy::default()
    };
    Ok(Table::new(policy, (0..hosts).map(host).collect(), 1)?)
}

fn cache(hosts: usize) -> Result<CacheShard> {
    let mut keys: Vec<u64> = (0..KEYS).step_by(2).map(|number| key(number).0).collect();
    keys.sort_unstable();
    let mut rng = SmallRng::seed_from_u64(2);
    let first = keys.iter().map(|_| rng.next_u32() % hosts as u32);
    let holders = first.flat_map(|host| (0..3).map(move |next| (host + next) % hosts as u32 * 2));
    let holders: Vec<u32> = holders.collect();
    let ends = (1..=keys.len() as u32).map(|key| key * 3).collect();
    let ids = (0..hosts).map(|host| HostId::of(&address(host)));
    Ok(CacheShard::new(0, 1, ids.collect(), keys, ends, holders)?)
}

fn address(host: usize) -> String {
    format!("10.{}.{}.1:9000", 100 + host / 100, 100 + host % 100)
}
