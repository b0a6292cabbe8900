// SPDX-License-Identifier: Apache-2.0
//! What holds for every policy, whatever is seen.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::jobs::Queue;
use crate::sensed::Bandwidth;
use blocks::Blocks;
use heracles::Heracles;
use hipster_co::HipsterCo;
use latency_slack::LatencySlack;
use parties::Parties;
use parties::services::{Other, Services};
use static_plan::{PlanNode, Step};

const WAYS: Bounds = Bounds { least: 2, most: 9 };
const PERCENT: Bounds = Bounds {
    least: 10,
    most: 100,
};
const QUEUES: [Queue; 3] = [Queue::Short, Queue::Medium, Queue::Long];

fn jobs(of: &[(usize, u32)]) -> Vec<Job> {
    let job = |(index, (queue, threads)): (usize, &(usize, u32))| Job {
        name: format!("job {index}"),
        queue: QUEUES[*queue],
        threads: *threads,
    };
    of.iter().enumerate().map(job).collect()
}

/// A chain of jobs on half of the machine, the others on the rest of it.
fn chained(jobs: &[Job], machine: &Cores) -> static_plan::Params {
    let step = |(index, job): (usize, &Job)| Step {
        job: job.name.clone(),
        node: "here".to_owned(),
        cores: if index % 2 == 0 {
            [1].into()
        } else {
            [2, 3].into()
        },
        after: if index < 2 {
            Vec::new()
        } else {
            vec![jobs[index - 2].name.clone()]
        },
    };
    static_plan::Params {
        nodes: vec![PlanNode {
            name: "here".to_owned(),
            cores: machine.clone(),
            service: [0].into(),
        }],
        steps: jobs.iter().enumerate().map(step).collect(),
        ..static_plan::Params::default()
    }
}

/// Each with the use of the service's cores at which every job gets some in the end: where jobs have cores of their
/// own that is any, also an unknown one.
fn policies(jobs: &[Job]) -> Vec<(Policy, Option<f64>)> {
    let machine: Cores = (0..6).collect();
    let blocks_of_six = blocks::Params {
        large: [2, 3, 4].into(),
        ..blocks::Params::default()
    };
    let slack_of_six = latency_slack::Params {
        elastic: [1, 2].into(),
        batch: [3, 5].into(),
        frequency_steps: 2,
        ..latency_slack::Params::default()
    };
    let two: Cores = (0..2).collect();
    let blocks_of_two = blocks::Params {
        large: Cores::NONE,
        ..blocks::Params::default()
    };
    let slack_of_two = latency_slack::Params {
        batch: Cores::NONE,
        ..latency_slack::Params::default()
    };
    let blocks = |params, machine| Policy::Blocks(Blocks::new(params, machine, jobs).unwrap());
    let slack =
        |params, machine| Policy::LatencySlack(LatencySlack::new(params, machine, jobs).unwrap());
    // Its own times are longer than the law's.
    let tick = Duration::from_millis(100);
    let heracles = |elastic: Cores, machine| {
        let params = heracles::Params {
            elastic,
            look: tick,
            grow: tick,
            cooldown: tick,
            link: Some(1_000_000),
            power: Some(heracles::power::Params {
                guaranteed: crate::node::Khz(2_000_000),
                watts: Some(100.0),
            }),
            memory: Some(heracles::memory::Params {
                peak: 2e6,
                ways: Some(WAYS),
            }),
            ..heracles::Params::default()
        };
        Policy::Heracles(Heracles::new(params, machine, jobs).unwrap())
    };
    let parties = |elastic: Cores, batch: Cores, machine| {
        let params = parties::Params {
            elastic,
            batch,
            settle: tick,
            rest: tick,
            cache_steps: 2,
            ways: Some(WAYS),
            bandwidth_steps: 1,
            bandwidth: Some(PERCENT),
            frequency_steps: 1,
            memory_steps: 3,
            disk_steps: 3,
            ..parties::Params::default()
        };
        Policy::Parties(Parties::new(params, machine, jobs).unwrap())
    };
    let hipster_co = |elastic: Cores, batch: Cores, learning, machine| {
        let params = hipster_co::Params {
            elastic,
            batch,
            interval: tick,
            learning,
            frequency_steps: 2,
            ..hipster_co::Params::default()
        };
        Policy::HipsterCo(HipsterCo::new(params, machine, jobs).unwrap())
    };
    let services = |elastic: Cores, batch: Cores| {
        let other = |core: u32| Other {
            name: core.to_string(),
            least: [core].into(),
            target: Duration::from_millis(1),
        };
        let params = parties::Params {
            elastic,
            batch,
            settle: tick,
            rest: tick,
            others: vec![other(4), other(5)],
            ..parties::Params::default()
        };
        Policy::Services(Services::new(params, &machine, jobs).unwrap())
    };
    // The compiler says so here when the list below lacks a new one.
    let _ = |policy| match policy {
        Policy::StaticPlan(_)
        | Policy::Blocks(_)
        | Policy::LatencySlack(_)
        | Policy::Parties(_)
        | Policy::Services(_)
        | Policy::Heracles(_)
        | Policy::HipsterCo(_) => (),
    };
    vec![
        (
            Policy::StaticPlan(
                static_plan::StaticPlan::new(&chained(jobs, &machine), "here", jobs).unwrap(),
            ),
            None,
        ),
        (blocks(blocks_of_six, &machine), None),
        (slack(slack_of_six, &machine), None),
        (blocks(blocks_of_two, &two), Some(0.0)),
        (slack(slack_of_two, &two), Some(0.0)),
        (heracles((1..6).collect(), &machine), Some(0.0)),
        (heracles([1].into(), &two), Some(0.0)),
        (parties([1, 2].into(), [3, 5].into(), &machine), Some(0.0)),
        (parties([1].into(), Cores::NONE, &two), Some(0.0)),
        (services([1, 2].into(), [3].into()), Some(0.0)),
        (services([1, 2, 3].into(), Cores::NONE), Some(0.0)),
        (
            hipster_co([1, 2].into(), [3, 5].into(), 5 * tick, &machine),
            Some(0.0),
        ),
        (
            hipster_co([1].into(), Cores::NONE, Duration::ZERO, &two),
            Some(0.0),
        ),
    ]
}

/// What the tick brings: use, latency, that of another service, whether the mesh presses, and which running job ends how.
type Tick = (
    Option<f64>,
    Option<u64>,
    Option<u64>,
    bool,
    Option<(usize, bool)>,
);

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![8 => 0.0..3.0f64, 1 => Just(f64::NAN), 1 => Just(-1.0), 1 => Just(f64::INFINITY)]
}

fn tick() -> impl Strategy<Value = Tick> {
    (
        prop::option::of(any_number()),
        prop::option::of(0..5_000_000u64),
        prop::option::of(0..5_000_000u64),
        prop::bool::weighted(0.1),
        prop::option::weighted(0.1, (any::<usize>(), any::<bool>())),
    )
}

/// Jobs read half of these bytes a second.
fn read(now: u64, bytes: Option<u64>) -> Resources {
    let memory = bytes.map(|bytes| Bandwidth {
        at: Nanos(now),
        jobs: bytes as f64 / 2.0,
        total: bytes as f64,
    });
    Resources {
        memory,
        ..Resources::default()
    }
}

/// Does what the plan says, as far as it may be said at all.
fn obey(plan: &CorePlan, states: &mut [State]) -> Result<(), TestCaseError> {
    prop_assert!(!plan.service.is_empty());
    prop_assert!(plan.speed.is_none_or(|speed| (0.0..=1.0).contains(&speed)));
    let ceilings = plan.ceilings;
    prop_assert!(ceilings.egress.is_none_or(|bits| bits > 0));
    prop_assert!(
        ceilings
            .speed
            .is_none_or(|speed| (0.0..=1.0).contains(&speed))
    );
    let within = |has: Option<u32>, bounds: Bounds| {
        has.is_none_or(|has| (bounds.least..=bounds.most).contains(&has))
    };
    prop_assert!(within(ceilings.ways, WAYS) && within(ceilings.bandwidth, PERCENT));
    prop_assert_eq!(plan.jobs.len(), states.len());
    let mut owned = plan.service.clone();
    for cores in &plan.others {
        prop_assert!(!cores.is_empty());
        prop_assert!(owned.shared(cores).is_empty());
        owned = owned.with(cores);
    }
    for (job, state) in plan.jobs.iter().zip(states) {
        prop_assert_eq!(job.act == Act::Run, !job.cores.is_empty());
        prop_assert!(job.limits.memory.is_none_or(|bytes| bytes > 0));
        prop_assert!(
            job.limits
                .disk
                .is_none_or(|weight| (1..=100).contains(&weight))
        );
        prop_assert!(owned.shared(&job.cores).is_empty());
        owned = owned.with(&job.cores);
        let next = match (job.act, *state) {
            (Act::Run, State::Waiting | State::Running | State::Paused) => State::Running,
            (Act::Pause, State::Running | State::Paused) => State::Paused,
            (Act::Wait, State::Waiting) => State::Waiting,
            (Act::Done, ended) if ended.has_ended() => ended,
            (act, state) => return Err(TestCaseError::fail(format!("{act:?} while {state:?}"))),
        };
        *state = next;
    }
    prop_assert!(owned.numbers().iter().all(|core| *core < 6));
    Ok(())
}

proptest! {
    #[test]
    fn cores_have_one_owner_the_service_has_some_and_no_job_is_lost(
        of in prop::collection::vec((0..3usize, 1..6u32), 0..8),
        ticks in prop::collection::vec(tick(), 0..150),
    ) {
        let jobs = jobs(&of);
        for (mut policy, idle) in policies(&jobs) {
            let mut states = vec![State::Waiting; jobs.len()];
            let mut now = 0;
            for (cpu, p95, other, pressed, end) in &ticks {
                now += 100_000_000;
                let running: Vec<usize> =
                    (0..jobs.len()).filter(|job| states[*job] == State::Running).collect();
                if let Some((which, well)) = end.filter(|_| !running.is_empty()) {
                    let ended = if well { State::Finished } else { State::Failed };
                    states[running[which % running.len()]] = ended;
                }
                let plan = policy.plan(&Seen {
                    now: Nanos(now),
                    cpu: *cpu,
                    p95: p95.map(Duration::from_micros),
                    p95_at: Nanos(now),
                    others: vec![other.map(Duration::from_micros); 2],
                    resources: read(now, *other),
                    pressed: *pressed,
                    jobs: states.clone(),
                    ..Seen::default()
                });
                obey(&plan, &mut states)?;
            }
            // From here on each job ends after a tick on its cores. Use must be low for a while until it counts, and
            // of parties' resources each step may go back before the cores do.
            let ticks = 2 * jobs.len() + if idle.is_some() { 16 } else { 0 };
            for _ in 0..=ticks {
                now += 100_000_000;
                for state in states.iter_mut().filter(|state| **state == State::Running) {
                    *state = State::Finished;
                }
                let plan =
                    policy.plan(&Seen { now: Nanos(now), cpu: idle, quiet: true, others: vec![Some(Duration::ZERO); 2], resources: read(now, Some(0)), jobs: states.clone(), ..Seen::default() });
                obey(&plan, &mut states)?;
            }
            prop_assert!(states.iter().all(|state| state.has_ended()), "{policy:?}: {states:?}");
        }
    }
}
