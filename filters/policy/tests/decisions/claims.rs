// SPDX-License-Identifier: Apache-2.0
//! What a host gains by what it says of itself, whatever that is. Every request takes the same time everywhere, so
//! an honest fleet shares evenly.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;
use weir_policy::{
    CacheShard, Cluster, Cost, Host, HostId, Keys, Load, Rank, Request, Selection, Table, Work,
};

use crate::fleet::{host, id, key, millis, named, rng, select};

const HOSTS: usize = 8;
const LIAR: usize = 0;
const REQUESTS: usize = 4_000;
/// Requests in flight all together: five a host.
const IN_FLIGHT: usize = 5 * HOSTS;
/// Requests between two tables; one comes each millisecond.
const BETWEEN_TABLES: usize = 10;
/// Keys that are asked for.
const KEYS: u64 = 200;
/// The classes that requests come with, in turn.
const CLASSES: [u8; 3] = [0, 16, 31];

/// What the liar says.
#[derive(Clone, Debug, Default)]
struct Claim {
    in_progress: u32,
    queued: u32,
    busy_cores: Option<u32>,
    work: Option<Vec<(u8, u64)>>,
    queuing_delay: Option<u64>,
    /// As weir-control learns it from what the host says its requests took.
    speed_permille: u32,
    /// It has the first so many of [`KEYS`], and says what each costs, in milliseconds.
    keys: u64,
    costs: (u32, u32),
}

/// How the fleet is asked.
#[derive(Clone, Copy, Debug)]
struct World {
    selection: Selection,
    callers: usize,
    /// 0 where nobody knows.
    capacity_millicores: u32,
    classes: usize,
    has_keys: bool,
}

impl World {
    fn row(self, number: usize, at: Duration, in_progress: u32, claim: Option<&Claim>) -> Host {
        let load = match claim {
            Some(claim) => Load {
                observed: at,
                in_progress: claim.in_progress,
                queued: claim.queued,
                busy_cores: claim.busy_cores,
                work: claim.work.as_ref().map(|claimed| {
                    let mut work = Work::default();
                    for (class, ms) in claimed {
                        work.add(*class, millis(*ms));
                    }
                    work
                }),
                queuing_delay: claim.queuing_delay.map(millis),
            },
            None => Load {
                observed: at,
                in_progress,
                queued: in_progress.saturating_sub(1),
                busy_cores: Some(in_progress.min(1)),
                ..Load::default()
            },
        };
        Host {
            capacity_millicores: self.capacity_millicores,
            speed_permille: claim.map_or(0, |claim| claim.speed_permille),
            load: Some(load),
            ..host(number)
        }
    }

    fn table(self, at: Duration, truth: &[u32], claim: &Claim) -> Table {
        let rows = (0..HOSTS).map(|number| {
            let claim = (number == LIAR).then_some(claim);
            self.row(number, at, truth[number], claim)
        });
        // What a request takes where each of the hosts has a core: one comes each millisecond.
        let cost = Cost {
            fetch: millis(HOSTS as u64),
            run: millis(HOSTS as u64),
        };
        let table = Table::new(select(self.selection), rows.collect(), 1).unwrap();
        table.with_mean_cost(cost).with_callers(1)
    }

    /// Requests that the liar got.
    fn play(self, claim: &Claim) -> usize {
        let mut rng = rng(7);
        let mut callers = vec![Cluster::default(); self.callers];
        let mut truth = [0u32; HOSTS];
        let mut flying: VecDeque<(usize, HostId, Duration)> = VecDeque::new();
        let mut got = 0;
        for number in 0..REQUESTS {
            let now = millis(1 + number as u64);
            if number % BETWEEN_TABLES == 0 {
                for caller in &mut callers {
                    caller.set_table(self.table(now, &truth, claim), now, now);
                    caller.set_cache_shard(0, claimed(claim));
                }
            }
            if flying.len() == IN_FLIGHT {
                let (caller, host, sent) = flying.pop_front().unwrap();
                callers[caller].finished(host, sent, now);
                truth[number_of(host)] -= 1;
            }
            let asked = self.has_keys.then(|| key(number as u64 * 7 % KEYS));
            let request = Request {
                keys: Keys::from(asked),
                rank: Rank::new(CLASSES[number % self.classes], 0),
            };
            let caller = number % self.callers;
            let decision = callers[caller].decide(&request, now, &mut rng);
            let host = named(&callers[caller], &decision)[0];
            callers[caller].assigned(host, &request, now);
            flying.push_back((caller, host, now));
            truth[number_of(host)] += 1;
            got += usize::from(host == id(LIAR));
        }
        got
    }

    /// What `dynamic` gives a liar at most: each caller has at most one more in flight there than every honest host
    /// has in all, h, as far as the caller knows. Of all that is in flight the liar has the first part of
    /// callers × (h + 1) + (hosts - 1) × h. What other callers sent since the table is not known: it is that much
    /// less at the honest hosts than it seems, or more.
    fn bound(self) -> usize {
        let (callers, hosts) = (self.callers as f64, HOSTS as f64);
        let unknown = BETWEEN_TABLES as f64 * (1.0 - 1.0 / callers) / (hosts - 1.0);
        let more = 1.0 + unknown;
        let honest = (IN_FLIGHT as f64 - callers * more) / (callers + hosts - 1.0);
        let share = callers * (honest + more) / IN_FLIGHT as f64;
        // What is in flight at the end has been got as well.
        (REQUESTS as f64 * share) as usize + IN_FLIGHT
    }

    /// The same where it claims keys as well: of those `dynamic` gives it every request, and of the others the share
    /// above.
    fn bound_with_keys(self, claim: &Claim) -> usize {
        let keys = if self.has_keys { claim.keys } else { 0 };
        let claimed = keys as f64 / KEYS as f64;
        (REQUESTS as f64 * claimed + self.bound() as f64 * (1.0 - claimed)) as usize
    }
}

fn number_of(host: HostId) -> usize {
    (0..HOSTS).find(|number| id(*number) == host).unwrap()
}

/// Which keys the liar says it has, and what they cost.
fn claimed(claim: &Claim) -> CacheShard {
    let mut keys: Vec<u64> = (0..claim.keys).map(|name| key(name).0).collect();
    keys.sort_unstable();
    let ends = (1..=keys.len() as u32).collect();
    let (holders, count) = (vec![0; keys.len()], keys.len());
    let shard = CacheShard::new(0, 1, vec![id(LIAR)], keys, ends, holders).unwrap();
    let (fetch, run) = claim.costs;
    let micros = |ms: u32| vec![ms.saturating_mul(1000); count];
    shard.with_costs(&micros(fetch), &micros(run)).unwrap()
}

fn figure() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 0u32..12, 2 => Just(1_000), 1 => any::<u32>()]
}

fn claim() -> impl Strategy<Value = Claim> {
    let work = prop::collection::vec(
        (
            0u8..32,
            prop_oneof![0u64..100, any::<u32>().prop_map(u64::from)],
        ),
        0..4,
    );
    (
        (figure(), figure(), prop::option::of(figure())),
        prop::option::of(work),
        prop::option::of(0u64..1_000),
        prop_oneof![Just(0u32), 1u32..100_000],
        (0..=KEYS / 4, (0u32..100, 0u32..100)),
    )
        .prop_map(
            |(jobs, work, queuing_delay, speed_permille, (keys, costs))| Claim {
                in_progress: jobs.0,
                queued: jobs.1,
                busy_cores: jobs.2,
                work,
                queuing_delay,
                speed_permille,
                keys,
                costs,
            },
        )
}

fn world() -> impl Strategy<Value = World> {
    let callers = prop::sample::select(vec![1, 2, 4]);
    let capacity = prop::sample::select(vec![0u32, 1000]);
    (callers, capacity, 1..=CLASSES.len(), any::<bool>()).prop_map(
        |(callers, capacity_millicores, classes, has_keys)| World {
            selection: Selection::Estimate,
            callers,
            capacity_millicores,
            classes,
            has_keys,
        },
    )
}

fn alone(capacity_millicores: u32) -> World {
    World {
        selection: Selection::Estimate,
        callers: 1,
        capacity_millicores,
        classes: 1,
        has_keys: false,
    }
}

#[test]
fn a_host_that_says_that_its_queue_is_no_work_gets_no_more_than_by_dynamic() {
    for queued in [1, 5, 1_000] {
        let claim = Claim {
            in_progress: queued,
            queued,
            work: Some(Vec::new()),
            ..Claim::default()
        };
        for world in [alone(1000), alone(0)] {
            let got = world.play(&claim);
            assert!(got <= world.bound(), "{queued} queued: {got}");
        }
    }
}

#[test]
fn a_host_of_unknown_capacity_is_not_believed_to_have_a_thousand_cores() {
    for (in_progress, queued) in [(1_000, 0), (0, 0), (1_001, 1), (5, 0)] {
        let claim = Claim {
            in_progress,
            queued,
            busy_cores: Some(1_000),
            ..Claim::default()
        };
        let world = alone(0);
        let got = world.play(&claim);
        assert!(got <= world.bound(), "{in_progress}, {queued}: {got}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn whatever_a_host_claims_it_gains_no_more_by_estimate_than_by_dynamic(
        world in world(), claim in claim(),
    ) {
        let got = world.play(&claim);
        let by_dynamic = World { selection: Selection::Dynamic, ..world }.play(&claim);
        let most = world.bound_with_keys(&claim).max(by_dynamic + IN_FLIGHT);
        prop_assert!(got <= most, "{got} of {REQUESTS}, by dynamic {by_dynamic}, at most {most}");
    }
}
