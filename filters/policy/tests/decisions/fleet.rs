// SPDX-License-Identifier: Apache-2.0
//! Fleets to decide over.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use weir_policy::{
    CacheShard, Cluster, Decision, Host, HostId, HostState, KeyHash, Keys, Level, Load, Outcome,
    Policy, Rank, Request, Selection, Table,
};

/// When tables arrive in tests that do not care.
pub(crate) const NOW: Duration = Duration::from_secs(1000);

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn rng(seed: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed)
}

pub(crate) fn address(host: usize) -> String {
    format!("10.0.{}.{}:9000", host / 250, host % 250 + 1)
}

pub(crate) fn id(host: usize) -> HostId {
    HostId::of(&address(host))
}

pub(crate) fn key(number: u64) -> KeyHash {
    KeyHash::of(format!("project-{number}").as_bytes())
}

pub(crate) fn load(observed: Duration, in_progress: u32, queued: u32) -> Load {
    Load {
        observed,
        in_progress,
        queued,
        ..Load::default()
    }
}

/// A host that is up, admits everything and has not been heard of.
pub(crate) fn host(number: usize) -> Host {
    Host {
        address: address(number),
        state: HostState::Up,
        load: None,
        level: Level::ALL,
        capacity_millicores: 0,
        speed_permille: 0,
        preempt_at: None,
        zone: 0,
    }
}

pub(crate) fn select(selection: Selection) -> Policy {
    Policy {
        selection,
        ..Policy::default()
    }
}

pub(crate) fn table(policy: Policy, mut hosts: Vec<Host>) -> Table {
    hosts.sort_by(|a, b| a.address.cmp(&b.address));
    Table::new(policy, hosts, 1).unwrap()
}

pub(crate) fn cluster(policy: Policy, hosts: Vec<Host>) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.set_table(table(policy, hosts), NOW, NOW);
    cluster
}

/// The one shard of a cluster's cache contents: hosts (by number) that hold each key, assumed or not.
pub(crate) fn cache(mut contents: Vec<(KeyHash, Vec<(usize, bool)>)>) -> CacheShard {
    contents.sort_by_key(|(key, _)| *key);
    let mut hosts: Vec<usize> = contents
        .iter()
        .flat_map(|(_, held)| held)
        .map(|(host, _)| *host)
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    let (mut keys, mut ends, mut holders) = (Vec::new(), Vec::new(), Vec::new());
    for (key, held) in contents {
        keys.push(key.0);
        for (host, assumed) in held {
            let place = hosts.binary_search(&host).unwrap();
            holders.push(place as u32 * 2 + u32::from(assumed));
        }
        ends.push(holders.len() as u32);
    }
    let hosts = hosts.into_iter().map(id).collect();
    CacheShard::new(0, 1, hosts, keys, ends, holders).unwrap()
}

/// A request of middling importance.
pub(crate) fn request(keys: impl Into<Keys>) -> Request {
    Request {
        keys: keys.into(),
        rank: Rank::new(16, 64),
    }
}

/// The identities of the hosts that a decision names, best first; none where it names none.
pub(crate) fn named(cluster: &Cluster, decision: &Decision) -> Vec<HostId> {
    let Outcome::Send(ranked) = &decision.outcome else {
        return Vec::new();
    };
    let table = cluster.table().unwrap();
    ranked
        .as_slice()
        .iter()
        .map(|index| table.host(*index).unwrap().id())
        .collect()
}

/// The first host that a decision at [`NOW`] names.
pub(crate) fn chosen(cluster: &Cluster, keys: impl Into<Keys>, rng: &mut SmallRng) -> HostId {
    named(cluster, &cluster.decide(&request(keys), NOW, rng))[0]
}
