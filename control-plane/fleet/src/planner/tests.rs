// SPDX-License-Identifier: Apache-2.0

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn host(number: u64) -> HostId {
    HostId::of(&format!("127.0.0.1:{number}"))
}

fn key(number: u64) -> KeyHash {
    KeyHash::of(&number.to_le_bytes())
}

fn places(numbers: impl IntoIterator<Item = u64>) -> Vec<Place> {
    let place = |number| Place {
        host: host(number),
        capacity: 2.0,
    };
    numbers.into_iter().map(place).collect()
}

fn spent(of: u64, at: u64, run_ms: u64, fetched: bool) -> Spent {
    Spent {
        key: key(of),
        host: host(at),
        fetch: fetched.then_some(Duration::from_millis(5)),
        run: Duration::from_millis(run_ms),
    }
}

/// A planner, what was pushed of it, and a clock.
#[derive(Default)]
struct World {
    planner: Planner,
    planning: Planning,
    pushed: BTreeMap<KeyHash, BTreeSet<HostId>>,
    now: Duration,
}

impl World {
    fn learn(&mut self, of: u64, at: u64, run_ms: u64) {
        self.learned(&spent(of, at, run_ms, false));
    }

    fn learned(&mut self, spent: &Spent) {
        let moved = self.planner.learn(spent, &self.planning, self.now);
        self.push(moved);
    }

    /// After so long.
    fn plan(&mut self, after: Duration, hosts: impl IntoIterator<Item = u64>) -> Vec<Move> {
        self.now += after;
        let places = places(hosts);
        let moves = self.planner.plan(&places, &self.planning, self.now);
        self.push(moves.clone());
        moves
    }

    fn push(&mut self, moves: impl IntoIterator<Item = Move>) {
        for Move { key, from, to } in moves {
            let holders = self.pushed.entry(key).or_default();
            if let Some(host) = from {
                assert!(holders.remove(&host), "it was not there");
            }
            if let Some(host) = to {
                assert!(holders.insert(host), "it was there");
            }
            if holders.is_empty() {
                self.pushed.remove(&key);
            }
        }
    }

    fn holders(&self, of: u64) -> Vec<HostId> {
        let holders = self.pushed.get(&key(of));
        holders.into_iter().flatten().copied().collect()
    }

    /// Of the most loaded host to the mean.
    fn unevenness(&self, hosts: u64) -> f64 {
        let all = Hosts::new(&places(0..hosts), self.planner.keys.values());
        let most = (0..all.rows.len()).map(|at| all.load(at));
        most.fold(0.0, f64::max) / all.mean()
    }
}

#[test]
fn a_key_is_where_it_was_answered_first() {
    let mut world = World::default();
    world.learn(1, 0, 10);
    world.learn(1, 1, 10);
    world.learn(2, 1, 10);
    world.plan(SECOND, 0..2);
    assert_eq!(world.holders(1), [host(0)]);
    assert_eq!(world.holders(2), [host(1)]);
}

#[test]
fn what_is_fetched_again_was_evicted() {
    let mut world = World::default();
    for (at, fetched) in [(0, false), (0, true), (1, true), (0, false)] {
        world.learned(&spent(1, at, 10, fetched));
    }
    assert_eq!(world.planner.counts().evicted, 0, "told in no order");
    world.now += 3 * SECOND;
    for (at, fetched) in [(0, true), (0, false), (1, true)] {
        world.learned(&spent(1, at, 10, fetched));
    }
    assert_eq!(world.planner.counts().evicted, 1, "of the planned host");
}

#[test]
fn keys_of_a_host_that_is_gone_go_to_whom_has_the_least_at_once() {
    let mut world = World::default();
    for (of, at, run_ms) in [(1, 0, 30), (2, 0, 20), (3, 0, 25), (4, 1, 10), (5, 2, 10)] {
        world.learn(of, at, run_ms);
    }
    world.planning.moved_per_minute = 0.0;
    world.planning.every = Duration::ZERO;
    world.plan(SECOND, 0..3);
    world.plan(SECOND, 1..3);
    let of = |of| world.holders(of);
    assert_eq!((of(4), of(5)), (vec![host(1)], vec![host(2)]));
    let load = |at: u64| {
        let keys = [(1, 30), (2, 20), (3, 25), (4, 10), (5, 10)];
        let here = keys.iter().filter(|(key, _)| of(*key) == [host(at)]);
        here.map(|(_, ms)| ms).sum::<u64>()
    };
    let mut loads = [load(1), load(2)];
    loads.sort_unstable();
    assert_eq!(loads, [40, 55], "30 to one, then 25 and 20 to the other");
    assert_eq!(world.planner.counts().rehoused, 3);
}

#[test]
fn one_host_with_everything_is_relieved_by_a_share_of_the_keys_a_minute() {
    let mut world = World::default();
    for of in 0..200 {
        world.learn(of, 0, 100);
    }
    world.plan(Duration::ZERO, 0..4);
    let minute: Vec<_> = (0..6)
        .map(|_| world.plan(10 * SECOND, 0..4).len())
        .collect();
    let moved: usize = minute.iter().sum();
    assert!((9..=10).contains(&moved), "a twentieth: {minute:?}");
    for _ in 0..200 {
        // They are asked for still.
        (0..200).for_each(|of| {
            let at = world.holders(of)[0];
            let at = (0..4).find(|number| host(*number) == at).unwrap();
            world.learn(of, at, 100);
        });
        world.plan(10 * SECOND, 0..4);
    }
    let uneven = world.unevenness(4);
    assert!(uneven <= 1.0 + TOLERANCE, "{uneven}");
    let moved = world.planner.counts().balanced;
    assert!((135..=160).contains(&moved), "no more than needed: {moved}");
    assert!(world.plan(10 * SECOND, 0..4).is_empty());
}

#[test]
fn a_popular_key_has_more_hosts_while_it_is() {
    let mut world = World::default();
    world.planning.moved_per_minute = 10.0;
    (0..30).for_each(|of| world.learn(of, of % 4, 10));
    world.learn(99, 0, 600);
    world.plan(Duration::ZERO, 0..4);
    for _ in 0..10 {
        world.plan(10 * SECOND, 0..4);
    }
    assert_eq!(world.holders(99).len(), 4, "two thirds of all work");
    // The others go on.
    for _ in 0..30 {
        (0..30).for_each(|of| world.learn(of, of % 4, 100));
        world.plan(60 * SECOND, 0..4);
    }
    assert_eq!(world.holders(99).len(), 1);
}

#[test]
fn a_plan_is_not_made_before_its_time_and_forgets_what_nobody_asks_for() {
    let mut world = World::default();
    world.learn(1, 0, 10);
    world.plan(SECOND, 0..1);
    assert!(world.plan(SECOND, 1..2).is_empty(), "9 s too soon");
    assert_eq!(world.plan(9 * SECOND, 1..2).len(), 1);
    // 10 ms are 10 µs after ten memories.
    assert_eq!(world.plan(9 * 300 * SECOND, 1..2), []);
    assert_eq!(world.plan(300 * SECOND, 1..2).len(), 1);
    assert_eq!((world.planner.keys.len(), world.pushed.len()), (0, 0));
}

#[test]
fn no_more_keys_are_planned_than_there_may_be_and_those_that_are_least_work_go() {
    let mut world = World::default();
    for of in 0..=MOST_KEYS as u64 {
        world.learn(of, 0, 2 + of % 8);
    }
    assert_eq!(world.planner.keys.len(), MOST_KEYS);
    let moves = world.plan(Duration::ZERO, 0..1);
    assert_eq!(moves.len(), MOST_KEYS / 4);
    assert!(world.holders(0).is_empty() && !world.holders(7).is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Learn(u64, u64, u64, bool),
    Plan(u64, BTreeSet<u64>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u64..60, 0u64..5, 1u64..500, any::<bool>())
            .prop_map(|(of, at, ms, fetched)| Step::Learn(of, at, ms, fetched)),
        1 => (1u64..90, prop::collection::btree_set(0u64..5, 0..5))
            .prop_map(|(after, hosts)| Step::Plan(after, hosts)),
    ]
}

proptest! {
    /// Moves say all: what they add up to is what is planned, every key has a host that is there, and no more keys move
    /// of their own in a minute than may, or one.
    #[test]
    fn what_is_pushed_is_what_is_planned(steps in prop::collection::vec(step(), 1..200)) {
        let mut world = World::default();
        let mut balanced = Vec::new();
        for step in steps {
            match step {
                Step::Learn(of, at, ms, fetched) => world.learned(&spent(of, at, ms, fetched)),
                Step::Plan(after, hosts) => {
                    let before = world.planner.counts();
                    world.plan(Duration::from_secs(after), hosts.iter().copied());
                    let of_it = world.planner.counts().balanced - before.balanced;
                    balanced.push((world.now, of_it));
                    let made = world.planner.made == Some(world.now);
                    if made && !hosts.is_empty() {
                        let there: BTreeSet<_> = hosts.into_iter().map(host).collect();
                        for holders in world.pushed.values() {
                            prop_assert!(holders.is_subset(&there));
                        }
                    }
                }
            }
            let planned = world.planner.keys.iter().map(|(key, planned)| {
                let hosts: BTreeSet<_> = planned.hosts.iter().map(|home| home.host).collect();
                assert_eq!(hosts.len(), planned.hosts.len());
                (*key, hosts)
            });
            prop_assert_eq!(planned.collect::<BTreeMap<_, _>>(), world.pushed.clone());
        }
        for (end, _) in &balanced {
            let minute = balanced.iter().filter(|(at, _)| at <= end && *at + MINUTE > *end);
            // What was left of the minute before, and this one's.
            prop_assert!(minute.map(|(_, of_it)| of_it).sum::<u64>() <= 2 * 3);
        }
    }
}

#[test]
fn hosts_have_work_by_their_capacity() {
    let mut planner = Planner::default();
    let planning = Planning {
        moved_per_minute: 1.0,
        ..Planning::default()
    };
    for of in 0..100 {
        planner.learn(&spent(of, 0, 100, false), &planning, Duration::ZERO);
    }
    let place = |(number, capacity)| Place {
        host: host(number),
        capacity,
    };
    let places = [(0, 1.0), (1, 4.0)].map(place);
    for minute in 0..10 {
        planner.plan(&places, &planning, minute * MINUTE);
    }
    let hosts = Hosts::new(&places, planner.keys.values());
    let [a, b] = [0, 1].map(|at| hosts.load(at) / hosts.mean());
    assert!((a - b).abs() < 2.0 * TOLERANCE, "{a}, {b} of the mean");
    assert!(planner.counts().balanced <= 80, "none came back");
}

/// `cargo test --release -p weir-fleet --lib how_long -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn how_long_plans_take_of_as_many_keys_and_hosts_as_there_may_be() {
    // One more, and a quarter of them would be forgotten.
    let (hosts, keys) = (1000, MOST_KEYS as u64 - 1);
    let mut world = World::default();
    let timed = |what: &str, work: &mut dyn FnMut() -> usize| {
        let begun = std::time::Instant::now();
        let moves = work();
        let took = begun.elapsed();
        println!("{keys} keys, {hosts} hosts: {what} {took:?}, {moves} moves");
    };
    timed("learned in", &mut || {
        // A tenth of the hosts has twice the work.
        let learn = |key: u64| {
            world.learn(
                key,
                key % hosts,
                100 + 100 * u64::from(key.is_multiple_of(10)),
            )
        };
        (0..keys).for_each(learn);
        0
    });
    timed("the first plan in", &mut || {
        world.plan(SECOND, 0..hosts).len()
    });
    timed("a minute later in", &mut || {
        world.plan(60 * SECOND, 0..hosts).len()
    });
    timed("without one host in", &mut || {
        world.plan(60 * SECOND, 1..hosts).len()
    });
    timed("without half of the hosts in", &mut || {
        world.plan(60 * SECOND, hosts / 2..hosts).len()
    });
}
