// SPDX-License-Identifier: Apache-2.0
//! What holds for every policy, and three states against the document's own words.

use std::time::Duration;

use proptest::prelude::*;

use super::multi_state::{ByLoad, MultiState, Rung};
use super::*;
use crate::node::NodeCore;
use crate::planner::Planner;
use crate::sensed::{FUNCTIONS, Finished, Nanos, Tail};

/// When the tests' cores are looked at.
pub(super) const NOW: Nanos = Nanos(10_000_000_000);
const STEPS: [u32; 7] = [
    1_000_000, 1_200_000, 1_500_000, 1_800_000, 2_000_000, 2_300_000, 2_600_000,
];

pub(crate) fn node(cores: u32) -> Node {
    let steps: Vec<Khz> = STEPS.into_iter().map(Khz).collect();
    let range = Range {
        min: steps[0],
        max: steps[6],
        steps,
    };
    let core = |number| NodeCore {
        number,
        range: range.clone(),
    };
    Node {
        cores: (0..cores).map(core).collect(),
    }
}

pub(super) fn cold() -> Core {
    Core {
        online: true,
        ..Core::default()
    }
}

/// Functions and for how many milliseconds they have been running.
pub(super) fn hot(calls: &[(usize, u64)]) -> Core {
    let mut core = cold();
    for (function, took) in calls {
        core.hot.enter(*function, Nanos(NOW.0 - took * 1_000_000));
    }
    core
}

/// What a policy that has just begun chooses.
pub(super) fn settings<const N: usize>(
    policy: &Policy,
    node: &Node,
    cores: [Core; N],
) -> Vec<Setting> {
    let mut planner = Planner::new(node.clone(), policy.clone(), Duration::from_millis(50));
    let sensed = Sensed {
        now: NOW,
        cores: cores.to_vec(),
        ..Sensed::default()
    };
    let mut plan = Plan::default();
    planner.plan(&sensed, &mut plan);
    plan.cores
}

fn every_policy() -> Vec<Policy> {
    let by_load = Some(ByLoad::default());
    // The compiler says so here when the list below lacks a new one.
    let _ = |policy| match policy {
        Policy::Performance(_)
        | Policy::Powersave(_)
        | Policy::Ondemand(_)
        | Policy::Schedutil(_)
        | Policy::TwoState(_)
        | Policy::ThreeState(_)
        | Policy::MultiState(_)
        | Policy::IsoLatency(_)
        | Policy::SlowToFast(_)
        | Policy::Adaptive(_)
        | Policy::Rubik(_)
        | Policy::OctopusMan(_)
        | Policy::Hipster(_) => (),
    };
    vec![
        Policy::Performance(Default::default()),
        Policy::Powersave(Default::default()),
        Policy::Ondemand(Default::default()),
        Policy::Schedutil(Default::default()),
        Policy::TwoState(Default::default()),
        Policy::ThreeState(Default::default()),
        Policy::MultiState(Default::default()),
        Policy::MultiState(MultiState {
            by_load,
            ..MultiState::default()
        }),
        Policy::IsoLatency(Default::default()),
        Policy::SlowToFast(Default::default()),
        Policy::Adaptive(Default::default()),
        Policy::Rubik(Default::default()),
        Policy::OctopusMan(Default::default()),
        Policy::Hipster(Default::default()),
    ]
}

fn any_core() -> impl Strategy<Value = Core> {
    let busy = prop_oneof![0.0..=1.0, Just(f64::NAN), Just(-1.0), Just(1e300)];
    // Entries lie up to a second in the future.
    let entered = 8_000_000_000u64..11_000_000_000;
    let calls = proptest::collection::vec((0..FUNCTIONS + 2, entered), 0..3);
    (any::<bool>(), busy, calls).prop_map(|(online, busy, calls)| {
        let mut core = Core {
            online,
            busy,
            ..Core::default()
        };
        for (function, since) in calls {
            core.hot.enter(function, Nanos(since));
        }
        core
    })
}

fn any_tail() -> impl Strategy<Value = Option<Tail>> {
    let tail = (0u64..5_000, 0u64..3, 0u64..20_000).prop_map(|(latency, requests, at)| Tail {
        latency: Duration::from_millis(latency),
        requests,
        at: Nanos(at * 1_000_000),
    });
    proptest::option::of(tail)
}

/// Enough calls to learn from, of functions and cores that need not exist.
fn any_finished() -> impl Strategy<Value = Vec<Finished>> {
    let finished =
        (0..FUNCTIONS + 2, 0usize..5, 0u64..3_000).prop_map(|(function, core, took)| Finished {
            function,
            core,
            took: Duration::from_millis(took),
            at: NOW,
        });
    proptest::collection::vec(finished, 0..1_500)
}

fn any_range() -> impl Strategy<Value = Range> {
    let steps = proptest::collection::btree_set(400_000u32..6_000_000, 0..9);
    let limits = (400_000u32..6_000_000, 400_000u32..6_000_000);
    (steps, limits).prop_map(|(steps, (a, b))| {
        let steps: Vec<Khz> = steps.into_iter().map(Khz).collect();
        let ends = steps.first().copied().zip(steps.last().copied());
        let (min, max) = ends.unwrap_or((Khz(a.min(b)), Khz(a.max(b))));
        Range { min, max, steps }
    })
}

fn has(range: &Range, khz: Khz) -> bool {
    let between = range.min <= khz && khz <= range.max;
    between && (range.steps.is_empty() || range.steps.contains(&khz))
}

proptest! {
    #[test]
    fn every_core_online_gets_what_it_can_do_and_the_others_nothing(
        policy in proptest::sample::select(every_policy()),
        ranges in proptest::collection::vec(any_range(), 3),
        ticks in proptest::collection::vec(
            (0u64..2_000, proptest::collection::vec(any_core(), 3), any_tail(), any_finished()),
            1..8,
        ),
    ) {
        let core = |(number, range)| NodeCore { number, range };
        let node = Node { cores: (0..).zip(ranges).map(core).collect() };
        let mut planner = Planner::new(node.clone(), policy, Duration::from_millis(50));
        let mut plan = Plan::default();
        let mut now = NOW;
        for (millis, cores, tail, finished) in ticks {
            now = Nanos(now.0 + millis * 1_000_000);
            let sensed = Sensed { now, cores, tail, finished, ..Sensed::default() };
            let before = plan.cores.clone();
            planner.plan(&sensed, &mut plan);
            prop_assert!(plan.sleep > Duration::ZERO);
            for (at, seen) in sensed.cores.iter().enumerate() {
                if seen.online {
                    prop_assert!(has(&node.cores[at].range, plan.cores[at].frequency));
                } else {
                    prop_assert_eq!(plan.cores[at], before.get(at).copied().unwrap_or_default());
                }
            }
        }
    }

    #[test]
    fn a_call_that_has_run_longer_is_never_on_a_slower_core(
        policy in proptest::sample::select(every_policy()),
        first in 0u64..2_000,
        second in 0u64..2_000,
        third in any_tail(),
    ) {
        let mut planner = Planner::new(node(2), policy, Duration::from_millis(50));
        let (short, long) = (first.min(second), first.max(second));
        let cores = vec![hot(&[(3, short)]), hot(&[(3, long)])];
        let sensed = Sensed { now: NOW, cores, tail: third, ..Sensed::default() };
        let mut plan = Plan::default();
        planner.plan(&sensed, &mut plan);
        prop_assert!(plan.cores[0].frequency <= plan.cores[1].frequency);
    }

    #[test]
    fn of_several_calls_the_one_that_asks_for_most_gets_it(
        one in 0u64..500,
        other in 0u64..500,
    ) {
        let rung = |after, khz| Rung {
            after: Duration::from_millis(after),
            frequency: Frequency::Absolute(Khz(khz)),
        };
        let policy = Policy::MultiState(MultiState {
            functions: vec![
                (1, vec![rung(0, 1_200_000), rung(100, 1_800_000), rung(300, 2_600_000)]),
                (2, vec![rung(0, 1_500_000), rung(200, 2_300_000)]),
            ],
            ..MultiState::default()
        });
        prop_assert_eq!(policy.check(&node(1)), Ok(()));
        let alone = |calls: &[(usize, u64)]| settings(&policy, &node(1), [hot(calls)])[0].frequency;
        let both = alone(&[(1, one), (2, other)]);
        prop_assert_eq!(both, alone(&[(1, one)]).max(alone(&[(2, other)])));
    }

    #[test]
    fn two_states_are_three_whose_threshold_is_never_reached(
        running in proptest::option::of(0u64..9_000),
    ) {
        let core = running.map_or(cold(), |took| hot(&[(0, took)]));
        let two = two_state::TwoState::default();
        let three = three_state::ThreeState {
            idle: two.idle,
            hot: two.hot,
            over: Frequency::Share(0.0),
            threshold: Duration::MAX,
        };
        let two = settings(&Policy::TwoState(two), &node(1), [core]);
        prop_assert_eq!(two, settings(&Policy::ThreeState(three), &node(1), [core]));
    }
}

/// Algorithms 1 and 2 of Medeiros, section 3.2, line by line, for one thread on each core. It is told every event;
/// the governor is told what the lanes' heads say, so that events it never saw make no difference to it.
#[derive(Default)]
struct Literal {
    func_state: Vec<Option<Status>>,
    core_changes: Vec<[u8; 2]>,
    frequency: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Status {
    in_hot_function: bool,
    timestamp: u64,
}

impl Literal {
    fn new(cores: usize) -> Self {
        Self {
            func_state: vec![None; cores],
            // Nothing has been written yet.
            core_changes: vec![[0, u8::MAX]; cores],
            frequency: vec![0; cores],
        }
    }

    fn algorithm_1(&mut self, queue: &[(usize, bool, u64)], now: u64, threshold: u64) {
        for (core, entry, timestamp) in queue {
            match &mut self.func_state[*core] {
                Some(recorded) if *entry => {
                    recorded.in_hot_function = true;
                    recorded.timestamp = *timestamp;
                }
                Some(recorded) => recorded.in_hot_function = false,
                first => {
                    *first = Some(Status {
                        in_hot_function: true,
                        timestamp: *timestamp,
                    });
                }
            }
        }
        for (core, status) in self.func_state.iter().enumerate() {
            let Some(status) = status else { continue };
            self.core_changes[core][0] = match status.in_hot_function {
                true if now - status.timestamp >= threshold => 2,
                true => 1,
                false => 0,
            };
        }
        self.algorithm_2();
    }

    fn algorithm_2(&mut self) {
        for (core, change) in self.core_changes.iter_mut().enumerate() {
            if change[0] != change[1] {
                self.frequency[core] = [1_000_000, 2_000_000, 2_600_000][usize::from(change[0])];
                change[1] = change[0];
            }
        }
    }
}

proptest! {
    #[test]
    fn three_states_and_the_same_ladder_do_what_the_algorithms_say(
        // For each tick: milliseconds of sleep, and calls that begin or end meanwhile, at a share of it.
        ticks in proptest::collection::vec(
            (1u64..200, proptest::collection::vec((0usize..3, 0.0f64..1.0), 0..6)),
            1..60,
        ),
    ) {
        let three = three_state::ThreeState::default();
        let period = Duration::from_millis(50);
        let mut literal = Literal::new(3);
        let mut planners = [
            Planner::new(node(3), Policy::ThreeState(three), period),
            Planner::new(node(3), Policy::MultiState(three.into()), period),
        ];
        let mut lanes: [Option<Nanos>; 3] = [None; 3];
        let mut now = NOW.0;
        for (millis, mut changes) in ticks {
            changes.sort_by(|a, b| a.1.total_cmp(&b.1));
            let mut queue = Vec::new();
            for (core, share) in changes {
                let at = now + (share * (millis * 1_000_000) as f64) as u64;
                lanes[core] = lanes[core].is_none().then_some(Nanos(at));
                queue.push((core, lanes[core].is_some(), at));
            }
            now += millis * 1_000_000;
            literal.algorithm_1(&queue, now, 450_000_000);
            let look = |lane: &Option<Nanos>| {
                let mut core = cold();
                if let Some(since) = lane {
                    core.hot.enter(0, *since);
                }
                core
            };
            let sensed = Sensed {
                now: Nanos(now),
                cores: lanes.iter().map(look).collect(),
                ..Sensed::default()
            };
            for planner in &mut planners {
                let mut plan = Plan::default();
                planner.plan(&sensed, &mut plan);
                let chosen: Vec<u32> = plan.cores.iter().map(|core| core.frequency.0).collect();
                prop_assert_eq!(&chosen, &literal.frequency);
                prop_assert_eq!(plan.sleep, period);
            }
        }
    }
}

#[test]
fn cold_cores_idle_at_the_lowest_frequency_unless_told_otherwise() {
    for policy in every_policy() {
        let idle = match policy {
            // Without a measured tail the others are as the first.
            Policy::Performance(_)
            | Policy::IsoLatency(_)
            | Policy::OctopusMan(_)
            | Policy::Hipster(_) => 2_600_000,
            Policy::Adaptive(_) => 1_500_000,
            _ => 1_000_000,
        };
        let setting = settings(&policy, &node(1), [cold()])[0];
        let expected = Setting {
            frequency: Khz(idle),
            rung: 0,
        };
        assert_eq!(setting, expected, "{policy:?}");
    }
}

#[test]
fn without_a_measured_tail_nothing_waits_for_it() {
    let fast = |policy| settings(&policy, &node(1), [hot(&[(0, 0)])])[0].frequency;
    let fastest = Khz(2_600_000);
    assert_eq!(fast(Policy::IsoLatency(Default::default())), fastest);
    assert_eq!(fast(Policy::SlowToFast(Default::default())), fastest);
    assert_eq!(fast(Policy::Adaptive(Default::default())), fastest);
    assert_eq!(fast(Policy::Rubik(Default::default())), fastest);
    assert_eq!(fast(Policy::OctopusMan(Default::default())), fastest);
    assert_eq!(fast(Policy::Hipster(Default::default())), fastest);
}

#[test]
fn defaults_pass_their_own_check() {
    for policy in every_policy() {
        assert_eq!(policy.check(&node(2)), Ok(()));
    }
}

#[test]
fn what_cannot_be_meant_is_refused_by_its_name() {
    let three = three_state::ThreeState::default();
    let rung = |millis, khz| Rung {
        after: Duration::from_millis(millis),
        frequency: Frequency::Absolute(Khz(khz)),
    };
    let ladder = |rungs: &[Rung]| {
        Policy::MultiState(MultiState {
            ladder: rungs.to_vec(),
            ..MultiState::default()
        })
    };
    let own = |functions: &[usize]| {
        let own = |function: &usize| (*function, vec![rung(0, 2_000_000)]);
        Policy::MultiState(MultiState {
            functions: functions.iter().map(own).collect(),
            ..MultiState::default()
        })
    };
    let cases = [
        (
            Policy::ThreeState(three_state::ThreeState {
                over: Frequency::Absolute(Khz(2_700_000)),
                ..three
            }),
            "over: 2.7 GHz is above the 2.6 GHz that the cores can be set to",
        ),
        (
            Policy::ThreeState(three_state::ThreeState {
                idle: Frequency::Absolute(Khz(900_000)),
                ..three
            }),
            "idle: 0.9 GHz is below the 1 GHz that the cores can be set to",
        ),
        (
            Policy::TwoState(two_state::TwoState {
                hot: Frequency::Share(f64::NAN),
                ..Default::default()
            }),
            "hot: NaN is not a share from 0 to 1",
        ),
        (ladder(&[]), "ladder: must begin with a step after 0"),
        (
            ladder(&[rung(5, 2_000_000)]),
            "ladder: must begin with a step after 0",
        ),
        (
            ladder(&[rung(0, 2_000_000), rung(0, 2_300_000)]),
            "ladder[1].after: must be later than the step before it",
        ),
        (
            ladder(&[rung(0, 2_000_000), rung(9, 1_500_000)]),
            "ladder[1].frequency: must not be slower than the step before it",
        ),
        (
            own(&[16]),
            "functions[0]: 16 is not a function from 0 to 15",
        ),
        (
            own(&[4, 4]),
            "functions[1]: function 4 has a ladder already",
        ),
        (
            Policy::Ondemand(ondemand::Ondemand {
                up_threshold: 95.0,
                ..Default::default()
            }),
            "up_threshold: must be from 0.01 to 1",
        ),
        (
            Policy::IsoLatency(iso_latency::IsoLatency {
                target: Duration::ZERO,
                ..Default::default()
            }),
            "target: must not be 0",
        ),
        (
            Policy::SlowToFast(slow_to_fast::SlowToFast {
                settle: Duration::ZERO,
                ..Default::default()
            }),
            "settle: must not be 0",
        ),
        (
            Policy::Adaptive(adaptive::Adaptive {
                longest_period: Duration::from_millis(5),
                ..Default::default()
            }),
            "longest_period: must be at least shortest_period",
        ),
        (
            Policy::Rubik(rubik::Rubik {
                quantile: 1.0,
                ..Default::default()
            }),
            "quantile: must be from 0.5 to less than 1",
        ),
        (
            Policy::OctopusMan(octopus_man::OctopusMan {
                safe: 0.9,
                ..Default::default()
            }),
            "safe: must be from 0 to less than danger",
        ),
    ];
    for (policy, message) in cases {
        let wrong = policy.check(&node(1)).unwrap_err();
        assert_eq!(wrong.to_string(), message);
    }
}

#[test]
fn the_closest_step_is_the_one_the_kernel_would_take() {
    let range = &node(1).cores[0].range;
    for (wanted, closest) in [
        (0, 1_000_000),
        (1_099_999, 1_000_000),
        (1_100_000, 1_200_000),
        (2_149_999, 2_000_000),
        (9_000_000, 2_600_000),
    ] {
        assert_eq!(range.closest(Khz(wanted)), Khz(closest), "{wanted}");
    }
}
