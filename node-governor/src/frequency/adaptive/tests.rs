// SPDX-License-Identifier: Apache-2.0

use proptest::prelude::*;

use super::*;
use crate::frequency::calls::work::{BUCKETS, bucket, end};
use crate::frequency::tests::{NOW, cold, node};
use crate::frequency::{Khz, Policy};
use crate::planner::Planner;
use crate::sensed::{Finished, Tail};

const SPEED: Speed = Speed {
    fastest: Khz(2_600_000),
    memory: 0.0,
};

/// Everything from 1.0 to 2.6 GHz.
fn range() -> Range {
    Range {
        steps: Vec::new(),
        ..node(1).cores[0].range.clone()
    }
}

fn wanted(budget: f64) -> Wanted {
    Wanted {
        efficient: Khz(1_600_000),
        quantile: 0.99,
        budget,
    }
}

fn survivors(works: &[f64]) -> [f64; BUCKETS] {
    let mut learned = Works::default();
    works.iter().for_each(|work| learned.add(*work));
    learned.survivors().unwrap()
}

/// The buckets up to the quantile: share of calls, work, and GHz given.
fn parts(
    survivors: &[f64; BUCKETS],
    khz: impl Fn(f64) -> Khz,
) -> impl Iterator<Item = (f64, f64, f64)> {
    let common = survivors.iter().take_while(|share| **share > 0.01);
    let part = move |(at, share): (usize, &f64)| {
        let begin = if at == 0 { 0.0 } else { end(at - 1) };
        let khz = khz((begin + end(at)) / 2.0);
        (*share, end(at) - begin, f64::from(khz.0) / 1e6)
    };
    common.enumerate().map(part).collect::<Vec<_>>().into_iter()
}

/// Seconds until the quantile's work is done, and expected energy by the policy's own model.
fn costs(survivors: &[f64; BUCKETS], khz: impl Fn(f64) -> Khz) -> (f64, f64) {
    let parts = parts(survivors, khz);
    parts.fold((0.0, 0.0), |(time, energy), (share, work, ghz)| {
        let takes = work * 2.6 / ghz;
        let power = ghz.powi(3) + 2.0 * 1.6f64.powi(3);
        (time + takes, energy + share * power * takes)
    })
}

fn any_works() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(0.001f64..1.0, 50..300)
}

proptest! {
    #[test]
    fn no_constant_frequency_that_is_in_time_takes_less_energy(
        works in any_works(),
        slack in 1.0f64..2.6,
        constant in 1_600_000u32..=2_600_000,
    ) {
        let survivors = survivors(&works);
        let (fastest, _) = costs(&survivors, |_| Khz(2_600_000));
        let wanted = wanted(fastest * slack + 1e-6);
        let schedule = Schedule::new(&survivors, &wanted, &SPEED, &range()).unwrap();
        let (time, energy) = costs(&survivors, |work| schedule.after(work));
        prop_assert!(time <= wanted.budget);
        let (constant_time, constant_energy) = costs(&survivors, |_| Khz(constant));
        // Halving ends just before the budget does.
        let close = constant_time > wanted.budget * (1.0 - 1e-4);
        prop_assert!(close || energy <= constant_energy * (1.0 + 1e-4));
    }

    #[test]
    fn a_schedule_never_falls(works in any_works(), budget in 1.2f64..4.0) {
        for range in [range(), node(1).cores[0].range.clone()] {
            let schedule = Schedule::new(&survivors(&works), &wanted(budget), &SPEED, &range).unwrap();
            let given: Vec<Khz> = (0..BUCKETS).map(|at| schedule.after(end(at))).collect();
            prop_assert!(given.is_sorted());
            prop_assert!(given[0] >= Khz(1_600_000));
        }
    }

    #[test]
    fn until_faster_is_where_the_next_step_begins(works in any_works(), budget in 1.2f64..4.0, work in 0.0f64..2.0) {
        let schedule = Schedule::new(&survivors(&works), &wanted(budget), &SPEED, &range()).unwrap();
        let now = schedule.after(work);
        match schedule.until_faster(work) {
            Some(more) => {
                prop_assert!(schedule.after(work + more * 0.999) == now);
                prop_assert!(schedule.after(work + more + 1e-9) > now);
            }
            None => prop_assert_eq!(schedule.after(f64::MAX), now),
        }
    }

    #[test]
    fn work_lies_in_its_bucket(work in 1e-4f64..1000.0) {
        let at = bucket(work);
        prop_assert!(work <= end(at) * (1.0 + 1e-9));
        prop_assert!(at == 0 || work >= end(at - 1) * (1.0 - 1e-9));
    }
}

#[test]
fn with_time_to_spare_all_runs_at_the_most_efficient_frequency() {
    let survivors = survivors(&[0.1; 100]);
    let schedule = Schedule::new(&survivors, &wanted(1.0), &SPEED, &range()).unwrap();
    assert_eq!(schedule.after(0.05), Khz(1_600_000));
    // A call ten times as long as any is hurried once its time is up.
    assert_eq!(schedule.after(1.0), Khz(2_600_000));
}

#[test]
fn with_too_little_time_there_is_no_schedule() {
    let survivors = survivors(&[0.1; 100]);
    let late = Schedule::new(&survivors, &wanted(0.05), &SPEED, &range());
    assert!(late.is_none());
}

fn efficient_at_two() -> Adaptive {
    Adaptive {
        efficient: Frequency::Absolute(Khz(2_000_000)),
        idle: Frequency::Absolute(Khz(2_000_000)),
        ..Adaptive::default()
    }
}

/// A core whose calls are watched at ticks a tenth of a second apart.
struct Watched {
    planner: Planner,
    plan: Plan,
    sensed: Sensed,
}

impl Watched {
    fn new(parameters: Adaptive) -> Self {
        let sensed = Sensed {
            now: NOW,
            cores: vec![cold()],
            ..Sensed::default()
        };
        Self {
            planner: Planner::new(node(1), Policy::Adaptive(parameters), Duration::MAX),
            plan: Plan::default(),
            sensed,
        }
    }

    fn tick(&mut self) -> Khz {
        self.planner.plan(&self.sensed, &mut self.plan);
        self.sensed.now.0 += 100_000_000;
        self.sensed.finished.clear();
        self.plan.cores[0].frequency
    }

    fn finish(&mut self, calls: usize, millis: u64) {
        let finished = Finished {
            function: 0,
            core: 0,
            took: Duration::from_millis(millis),
            at: self.sensed.now,
        };
        self.sensed.finished.extend(vec![finished; calls]);
    }

    fn tail(&mut self, millis: u64) {
        self.sensed.tail = Some(Tail {
            latency: Duration::from_millis(millis),
            requests: 100,
            at: self.sensed.now,
        });
    }

    fn enter(&mut self) {
        self.sensed.cores[0].hot.enter(0, self.sensed.now);
    }
}

#[test]
fn calls_are_fastest_until_enough_of_them_are_known() {
    let mut core = Watched::new(efficient_at_two());
    core.enter();
    assert_eq!(core.tick(), Khz(2_600_000));
    core.finish(49, 10);
    assert_eq!(core.tick(), Khz(2_600_000));
    core.finish(1, 10);
    for _ in 0..10 {
        core.tick();
    }
    core.sensed.cores[0] = cold();
    core.enter();
    assert_eq!(core.tick(), Khz(2_000_000));
}

#[test]
fn a_tail_over_the_target_makes_calls_faster_and_one_under_it_slower() {
    let mut core = Watched::new(efficient_at_two());
    core.enter();
    core.finish(100, 300);
    core.tick();
    let mut after = |millis| {
        for _ in 0..1000 {
            core.tail(millis);
            core.sensed.cores[0] = cold();
            core.enter();
            core.tick();
        }
        core.plan.cores[0].frequency
    };
    assert_eq!(after(2000), Khz(2_600_000));
    assert_eq!(after(100), Khz(2_000_000));
}

#[test]
fn where_the_highest_frequency_is_late_cold_cores_have_it_too() {
    let mut core = Watched::new(efficient_at_two());
    core.finish(100, 300);
    assert_eq!(core.tick(), Khz(2_000_000));
    for _ in 0..2000 {
        core.tail(2000);
        core.tick();
    }
    assert_eq!(core.tick(), Khz(2_600_000));
}

#[test]
fn a_long_call_gets_faster_as_it_outlives_the_others() {
    let mut core = Watched::new(Adaptive {
        budget: 0.6,
        ..efficient_at_two()
    });
    core.tick();
    core.finish(95, 100);
    core.finish(5, 600);
    core.sensed.now.0 += 2_000_000_000;
    core.tick();
    core.enter();
    let seen: Vec<Khz> = (0..12).map(|_| core.tick()).collect();
    assert_eq!(seen[0], Khz(2_000_000));
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!(seen[11], Khz(2_600_000));
}

#[test]
fn work_is_time_at_the_frequency_that_was_set() {
    let mut progress = Progress::new(&SPEED);
    let call = |millis: u64| {
        let mut core = cold();
        core.hot.enter(3, Nanos(NOW.0 + millis * 1_000_000));
        core
    };
    let at = |millis: u64| Nanos(NOW.0 + millis * 1_000_000);
    progress.advance(at(0), &cold(), &SPEED);
    progress.set(Khz(1_300_000));
    progress.advance(at(100), &call(40), &SPEED);
    let (function, Call { work, .. }) = progress.calls().next().unwrap();
    assert_eq!((function, work), (3, 0.030));
    progress.set(Khz(2_600_000));
    progress.advance(at(200), &call(40), &SPEED);
    let (_, Call { work, .. }) = progress.calls().next().unwrap();
    assert!((work - 0.130).abs() < 1e-9, "{work}");
    // It ended 50 ms later, and the next began.
    let ended = progress.ended(3, 0.210, &SPEED);
    assert!((ended - 0.180).abs() < 1e-9, "{ended}");
    progress.advance(at(300), &call(290), &SPEED);
    let (_, Call { work, .. }) = progress.calls().next().unwrap();
    assert!((work - 0.010).abs() < 1e-9, "{work}");
    // One that nobody saw running.
    let unseen = progress.ended(4, 0.020, &SPEED);
    assert!((unseen - 0.020).abs() < 1e-9, "{unseen}");
}

#[test]
fn a_plan_sleeps_until_a_call_needs_its_next_step() {
    let mut core = Watched::new(Adaptive {
        shortest_period: Duration::from_millis(1),
        longest_period: Duration::from_secs(9),
        idle: Frequency::Share(1.0),
        ..efficient_at_two()
    });
    core.tick();
    assert_eq!(core.plan.sleep, Duration::from_secs(9));
    core.finish(100, 100);
    core.sensed.now.0 += 2_000_000_000;
    core.tick();
    core.enter();
    core.tick();
    // Work to 100 ms at the highest, of a budget of 500 ms: the rest of that budget is slow too.
    let slow = core.plan.sleep.as_secs_f64();
    assert_eq!(core.plan.cores[0].frequency, Khz(2_000_000));
    assert!((0.4..0.7).contains(&slow), "{slow}");
}
