// SPDX-License-Identifier: Apache-2.0
use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::cores::Act;
use crate::jobs::{Queue, State};

/// Document 004's jobs, in the order of its figure 8, with the threads of its table 1.
fn jobs() -> Vec<Job> {
    let of = |(name, queue, threads): (&str, _, _)| Job {
        name: name.to_owned(),
        queue,
        threads,
    };
    [
        ("fft", Queue::Short, 1),
        ("dedup", Queue::Short, 1),
        ("canneal", Queue::Medium, 1),
        ("blackscholes", Queue::Medium, 2),
        ("freqmine", Queue::Long, 4),
        ("ferret", Queue::Long, 4),
    ]
    .map(of)
    .to_vec()
}

fn machine() -> Cores {
    (0..4).collect()
}

/// Part 4.2 of document 004, read once more: queues that jobs are taken out of, one rule a line.
struct Oracle {
    queues: [VecDeque<usize>; 3],
    small_state: bool,
    small: Option<usize>,
    large: Option<usize>,
    bound: bool,
}

impl Oracle {
    fn new() -> Self {
        Self {
            queues: [[0, 1].into(), [2, 3].into(), [4, 5].into()],
            small_state: false,
            small: None,
            large: None,
            bound: false,
        }
    }

    fn fetch(&mut self, order: [usize; 3]) -> Option<usize> {
        order
            .into_iter()
            .find_map(|queue| self.queues[queue].pop_front())
    }

    /// Cores of the service, and of each job that runs.
    fn tick(&mut self, cpu: f64, ended: &[bool]) -> (Vec<u32>, Vec<Option<Vec<u32>>>) {
        let over_60 = self.small_state && cpu > 0.6;
        let under_130 = !self.small_state && cpu < 1.3;
        if over_60 || under_130 {
            self.small_state = !self.small_state;
        }
        for place in [&mut self.small, &mut self.large] {
            if place.is_some_and(|job| ended[job]) {
                *place = None;
            }
        }
        if self.large.is_none() {
            self.large = self.fetch([2, 1, 0]);
        }
        if self.large.is_none() {
            self.large = self.small.take();
        }
        if self.small.is_none() {
            self.small = self.fetch([0, 1, 2]);
        }
        if self.small.is_none() {
            self.bound = true;
        }
        let mut runs = vec![None; 6];
        if let Some(job) = self.large {
            runs[job] = Some(vec![2, 3]);
        }
        let job_has_core_1 = self.small_state && !self.bound;
        if let Some(job) = self.small.filter(|_| job_has_core_1) {
            runs[job] = Some(vec![1]);
        }
        let service = if job_has_core_1 { vec![0] } else { vec![0, 1] };
        (service, runs)
    }
}

proptest! {
    #[test]
    fn blocks_do_what_document_004_describes(
        ticks in prop::collection::vec((0.0..2.0f64, 0.0..1.0f64, any::<bool>()), 1..300),
    ) {
        let mut policy = Blocks::new(Params::default(), &machine(), &jobs()).unwrap();
        let mut oracle = Oracle::new();
        let mut states = vec![State::Waiting; 6];
        for (tick, (cpu, end, well)) in ticks.into_iter().enumerate() {
            let running: Vec<usize> = (0..6).filter(|job| states[*job] == State::Running).collect();
            if end < 0.1 && !running.is_empty() {
                let job = running[(end * 1000.0) as usize % running.len()];
                states[job] = if well { State::Finished } else { State::Failed };
            }
            let ended: Vec<bool> = states.iter().map(|state| state.has_ended()).collect();
            let seen = Seen {
                now: crate::sensed::Nanos(tick as u64 * 1_000_000_000),
                cpu: Some(cpu),
                jobs: states.clone(),
                ..Seen::default()
            };
            let plan = policy.plan(&seen);
            let (service, runs) = oracle.tick(cpu, &ended);
            prop_assert_eq!(plan.service.numbers(), service);
            for (job, cores) in runs.into_iter().enumerate() {
                let planned = &plan.jobs[job];
                prop_assert_eq!(planned.act == Act::Run, cores.is_some(), "job {}", job);
                prop_assert_eq!(planned.cores.numbers(), cores.unwrap_or_default());
                states[job] = match planned.act {
                    Act::Run => State::Running,
                    Act::Pause => State::Paused,
                    _ => states[job],
                };
            }
        }
    }
}

fn seen(second: u64, cpu: Option<f64>, states: &[State]) -> Seen {
    Seen {
        now: crate::sensed::Nanos(second * 1_000_000_000),
        cpu,
        jobs: states.to_vec(),
        ..Seen::default()
    }
}

#[test]
fn the_limits_themselves_change_nothing() {
    let mut policy = Blocks::new(Params::default(), &machine(), &jobs()).unwrap();
    let mut after = |second, cpu| {
        policy.plan(&seen(second, Some(cpu), &[]));
        policy.size()
    };
    assert_eq!(after(0, 1.3), Size::Large);
    assert_eq!(after(1, 1.299), Size::Small);
    assert_eq!(after(2, 0.6), Size::Small);
    assert_eq!(after(3, 0.601), Size::Large);
}

#[test]
fn a_use_between_the_limits_keeps_both_blocks_until_it_has_been_low_for_long_enough() {
    let params = Params {
        calm: Duration::from_secs(2),
        ..Params::default()
    };
    let mut policy = Blocks::new(params, &machine(), &jobs()).unwrap();
    let mut after = |second, cpu| {
        policy.plan(&seen(second, Some(cpu), &[]));
        policy.size()
    };
    assert_eq!(after(0, 1.0), Size::Large);
    assert_eq!(after(1, 1.0), Size::Large);
    assert_eq!(after(2, 1.4), Size::Large, "from the beginning");
    assert_eq!(after(3, 1.0), Size::Large);
    assert_eq!(after(4, 1.0), Size::Large);
    assert_eq!(after(5, 1.0), Size::Small);
    assert_eq!(after(6, 0.7), Size::Large);
    assert_eq!(after(7, 0.7), Size::Large);
}

#[test]
fn use_that_was_low_before_the_mesh_pressed_is_not_low_after_it() {
    let params = Params {
        calm: Duration::from_secs(2),
        ..Params::default()
    };
    let mut policy = Blocks::new(params, &machine(), &jobs()).unwrap();
    let mut after = |second, cpu, pressed| {
        policy.plan(&Seen {
            pressed,
            ..seen(second, Some(cpu), &[])
        });
        policy.size()
    };
    assert_eq!(after(0, 1.0, false), Size::Large);
    assert_eq!(after(1, 2.0, true), Size::Large);
    assert_eq!(after(5, 2.0, true), Size::Large);
    assert_eq!(after(6, 1.0, false), Size::Large, "low for no time");
    assert_eq!(after(8, 1.0, false), Size::Small);
}

#[test]
fn silence_changes_nothing_for_a_while_and_then_gives_the_service_both_blocks() {
    let mut policy = Blocks::new(Params::default(), &machine(), &jobs()).unwrap();
    assert_eq!(policy.plan(&seen(0, Some(0.1), &[])).service, [0].into());
    for (second, cpu) in [(1, None), (2, Some(f64::NAN))] {
        let plan = policy.plan(&seen(second, cpu, &[]));
        assert_eq!((plan.service, plan.reason), ([0].into(), Reason::Held));
    }
    let plan = policy.plan(&seen(3, Some(-1.0), &[]));
    assert_eq!((plan.service, plan.reason), ([0, 1].into(), Reason::Safe));
}

#[test]
fn the_last_job_moves_to_the_large_block_and_the_service_keeps_the_small_one() {
    use State::{Finished, Running};
    let mut policy = Blocks::new(Params::default(), &machine(), &jobs()).unwrap();
    let mut states = [Finished; 6];
    states[3] = Running;
    states[5] = Running;
    policy.plan(&seen(0, Some(0.1), &states));
    let both = policy.plan(&seen(1, Some(0.1), &states));
    assert_eq!(both.jobs[3].cores, [1].into());
    states[5] = Finished;
    let last = policy.plan(&seen(2, Some(0.1), &states));
    assert_eq!(last.jobs[3].cores, [2, 3].into());
    assert_eq!((last.service, last.reason), ([0, 1].into(), Reason::NoJobs));
}

#[test]
fn without_a_large_block_jobs_take_turns_in_the_small_one_and_pause_while_the_service_has_it() {
    use State::{Finished, Paused, Running, Waiting};
    let params = Params {
        large: Cores::NONE,
        ..Params::default()
    };
    let mut policy = Blocks::new(params, &(0..2).collect(), &jobs()).unwrap();
    let acts = |plan: &CorePlan| [0, 1, 4].map(|job| plan.jobs[job].act);
    let mut states = [Finished; 6];
    (states[0], states[1], states[4]) = (Waiting, Waiting, Waiting);
    let calm = policy.plan(&seen(0, Some(0.1), &states));
    assert_eq!(calm.service, [0].into());
    assert_eq!(acts(&calm), [Act::Run, Act::Wait, Act::Wait]);
    states[0] = Running;
    let busy = policy.plan(&seen(1, Some(0.9), &states));
    assert_eq!(busy.service, [0, 1].into());
    assert_eq!(acts(&busy), [Act::Pause, Act::Wait, Act::Wait]);
    states[0] = Paused;
    let calm = policy.plan(&seen(2, Some(1.0), &states));
    assert_eq!(acts(&calm), [Act::Run, Act::Wait, Act::Wait]);
    (states[0], states[1]) = (Finished, Finished);
    let long = policy.plan(&seen(3, Some(0.1), &states));
    assert_eq!(long.jobs[4].cores, [1].into());
    states[4] = Finished;
    let over = policy.plan(&seen(4, Some(0.1), &states));
    assert_eq!((over.service, over.reason), ([0, 1].into(), Reason::NoJobs));
}

/// A fault, and how it is refused.
type Case<'a> = (&'a dyn Fn(&mut Params), &'a str);

#[test]
fn blocks_that_cannot_be_are_refused_with_field_and_reason() {
    let refused = |change: &dyn Fn(&mut Params)| {
        let mut params = Params::default();
        change(&mut params);
        params.check(&machine(), &jobs()).unwrap_err().to_string()
    };
    let cases: [Case; 5] = [
        (&|params| params.small = Cores::NONE, "small: has no cores"),
        (
            &|params| params.large = [1, 2].into(),
            "large: 1: in block small, too",
        ),
        (
            &|params| params.large = [2, 3, 4].into(),
            "large: the machine has cores 0-3, and no 4",
        ),
        (
            &|params| params.large_above = 1.1,
            "large_above: 1.1 is not above 0 and at most 1",
        ),
        (
            &|params| params.small_below = f64::NAN,
            "small_below: NaN is not above 0 and at most 2",
        ),
    ];
    for (change, reason) in cases {
        assert_eq!(refused(change), reason);
    }
    let mut twice = jobs();
    twice[1].name = "fft".to_owned();
    let error = Params::default().check(&machine(), &twice).unwrap_err();
    assert_eq!(error.to_string(), "jobs.fft: is there twice");
}
