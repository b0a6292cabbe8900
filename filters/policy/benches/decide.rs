// SPDX-License-Identifier: Apache-2.0
//! What is done for each request: `cargo bench -p weir-policy`. README.md says what to look at.

use std::time::Duration;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use weir_policy::{
    CacheShard, Cluster, Host, HostId, HostState, KeyHash, Level, Load, Overload, Policy, Rank,
    Request, Selection, Table,
};

const HOSTS: [usize; 3] = [14, 1000, 10_000];
const KEYS: u64 = 4096;
/// Decisions in one sample, so that the clock's own cost and grain do not show.
const DECISIONS: usize = 256;
const NOW: Duration = Duration::from_secs(1000);

fn main() {
    divan::main();
}

fn address(host: usize) -> String {
    format!("10.{}.{}.1:9000", 100 + host / 100, 100 + host % 100)
}

/// Hosts with load; one of eight admits nobody, the others have different levels.
fn table(hosts: usize, selection: Selection) -> Table {
    let mut rng = SmallRng::seed_from_u64(1);
    let host = |number| Host {
        address: address(number),
        state: HostState::Up,
        load: Some(Load {
            observed: NOW,
            in_progress: rng.next_u32() % 30,
            queued: 0,
            queuing_delay: None,
        }),
        level: match number % 8 {
            7 => Level::NONE,
            _ => Level::admitting(3000 + number as u16 % 1000),
        },
        capacity_millicores: 8000,
        preempt_at_unix_ms: 0,
    };
    let policy = Policy {
        overload: Overload::Dagor,
        selection,
        ..Policy::default()
    };
    Table::new(policy, (0..hosts).map(host).collect(), 1).unwrap()
}

/// Every key with an even number is at three hosts.
fn cache(hosts: usize) -> CacheShard {
    let mut keys: Vec<u64> = (0..KEYS).step_by(2).map(|number| key(number).0).collect();
    keys.sort_unstable();
    let mut rng = SmallRng::seed_from_u64(2);
    let first = keys.iter().map(|_| rng.next_u32() % hosts as u32);
    let holders = first.flat_map(|host| (0..3).map(move |next| (host + next) % hosts as u32 * 2));
    let holders: Vec<u32> = holders.collect();
    let ends = (1..=keys.len() as u32).map(|key| key * 3).collect();
    let ids = (0..hosts).map(|host| HostId::of(&address(host))).collect();
    CacheShard::new(0, 1, ids, keys, ends, holders).unwrap()
}

fn key(number: u64) -> KeyHash {
    KeyHash::of(&number.to_le_bytes())
}

fn cluster(hosts: usize, selection: Selection) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.set_table(table(hosts, selection), NOW, NOW);
    cluster.set_cache_shard(0, cache(hosts));
    cluster
}

/// Decisions for keys `first`, `first + 2` and so on.
fn decide(bencher: Bencher<'_, '_>, hosts: usize, selection: Selection, first: u64) {
    let cluster = cluster(hosts, selection);
    let keys = (first..KEYS).step_by(2).map(|number| Some(key(number)));
    let requests = keys.map(|key| Request {
        key,
        rank: Rank::new(16, 64),
    });
    let mut requests = requests.collect::<Vec<_>>().into_iter().cycle();
    let mut rng = SmallRng::seed_from_u64(3);
    bencher.counter(ItemsCount::new(DECISIONS)).bench_local(|| {
        for request in requests.by_ref().take(DECISIONS) {
            black_box(cluster.decide(black_box(&request), NOW, &mut rng));
        }
    });
}

#[divan::bench(args = HOSTS)]
fn baseline(bencher: Bencher<'_, '_>, hosts: usize) {
    decide(bencher, hosts, Selection::Baseline, 1);
}

#[divan::bench(args = HOSTS)]
fn random(bencher: Bencher<'_, '_>, hosts: usize) {
    decide(bencher, hosts, Selection::Random, 1);
}

#[divan::bench(args = HOSTS)]
fn rendezvous(bencher: Bencher<'_, '_>, hosts: usize) {
    decide(bencher, hosts, Selection::Rendezvous, 1);
}

#[divan::bench(args = HOSTS)]
fn dynamic_cached(bencher: Bencher<'_, '_>, hosts: usize) {
    decide(bencher, hosts, Selection::Dynamic, 0);
}

#[divan::bench(args = HOSTS)]
fn dynamic_not_cached(bencher: Bencher<'_, '_>, hosts: usize) {
    decide(bencher, hosts, Selection::Dynamic, 1);
}

/// Once a second, not once a request: it grows with the fleet.
#[divan::bench(args = HOSTS)]
fn set_table(bencher: Bencher<'_, '_>, hosts: usize) {
    let mut cluster = cluster(hosts, Selection::Dynamic);
    bencher
        .with_inputs(|| table(hosts, Selection::Dynamic))
        .bench_local_values(|table| cluster.set_table(table, NOW, NOW));
}

/// An answer's load that closes or opens a breaker, so that a host changes its place.
#[divan::bench(args = HOSTS)]
fn observed(bencher: Bencher<'_, '_>, hosts: usize) {
    let mut cluster = cluster(hosts, Selection::Dynamic);
    let open = table(hosts, Selection::Dynamic);
    let policy = Policy {
        overload: Overload::Breaker { queued_jobs: 100 },
        ..Policy::default()
    };
    cluster.set_table(
        Table::new(policy, open.hosts().to_vec(), 1).unwrap(),
        NOW,
        NOW,
    );
    let ids: Vec<_> = open.hosts().iter().map(Host::id).collect();
    // Hosts close one after the other, then open one after the other.
    let queued = [200, 0]
        .into_iter()
        .flat_map(|queued| ids.iter().map(move |id| (id, queued)));
    let queued: Vec<_> = queued.collect();
    let mut answers = queued.iter().cycle();
    let mut at = NOW;
    bencher.counter(ItemsCount::new(DECISIONS)).bench_local(|| {
        for (id, queued) in answers.by_ref().take(DECISIONS) {
            at += Duration::from_nanos(1);
            let load = Load {
                observed: at,
                in_progress: 5,
                queued: *queued,
                queuing_delay: None,
            };
            cluster.observed(**id, load, at);
        }
    });
}
