// SPDX-License-Identifier: Apache-2.0
//! That the two kinds of policy have one plan.

use super::*;
use crate::cores::blocks::{Blocks, Params as Blocked};
use crate::cores::heracles::{Heracles, Params as Shared, power};
use crate::cores::hipster_co;
use crate::cores::latency_slack::{LatencySlack, Params as Slack};
use crate::frequency::performance::Performance;
use crate::frequency::powersave::Powersave;
use crate::jobs::{Job, Queue, State};
use crate::node::{Khz, NodeCore, Range};
use crate::sensed::{Core, Nanos, Resources, Row, Tail};

const MIN: Khz = Khz(1_000_000);
const MAX: Khz = Khz(2_600_000);

fn node() -> Node {
    let core = |number| NodeCore {
        number,
        range: Range {
            min: MIN,
            max: MAX,
            steps: vec![MIN, Khz(1_800_000), MAX],
        },
    };
    Node {
        cores: (0..4).map(core).collect(),
    }
}

fn jobs() -> Vec<Job> {
    let job = |name: &str, queue| Job {
        name: name.to_owned(),
        queue,
        threads: 2,
    };
    vec![job("long", Queue::Long), job("short", Queue::Short)]
}

fn slow() -> Policy {
    Policy::Powersave(Powersave)
}

fn planner(cores: Option<cores::Policy>) -> Planner {
    let pressure = pressure::Params::default();
    let tick = Duration::from_millis(50);
    Planner::with(node(), Some(&slow()), cores, pressure, tick)
}

fn sensed(tick: u64, cpu: f64, row: Option<Row>) -> Sensed {
    Sensed {
        now: Nanos(tick * 50_000_000),
        cores: vec![
            Core {
                online: true,
                ..Core::default()
            };
            4
        ],
        service_cpu: Some(cpu),
        row,
        jobs: vec![State::Running; 2],
        ..Sensed::default()
    }
}

fn refusing(tick: u64) -> Option<Row> {
    Some(Row {
        at: Nanos(tick * 50_000_000),
        refuses: true,
        delay: None,
    })
}

fn frequencies(plan: &Plan) -> Vec<Khz> {
    plan.cores.iter().map(|core| core.frequency).collect()
}

#[test]
fn pressure_raises_the_services_cores_and_only_those() {
    let machine: Cores = (0..4).collect();
    let blocks = Blocks::new(Blocked::default(), &machine, &jobs()).unwrap();
    let mut planner = planner(Some(cores::Policy::Blocks(blocks)));
    let mut plan = Plan::default();
    planner.plan(&sensed(1, 0.1, None), &mut plan);
    assert_eq!(plan.shares.as_ref().unwrap().service, [0].into());
    assert_eq!(frequencies(&plan), [MIN; 4]);
    planner.plan(&sensed(2, 0.1, refusing(2)), &mut plan);
    assert_eq!(plan.shares.as_ref().unwrap().service, [0, 1].into());
    assert_eq!(frequencies(&plan), [MAX, MAX, MIN, MIN]);
}

#[test]
fn pressure_raises_every_core_where_they_are_not_divided() {
    let mut planner = planner(None);
    let mut plan = Plan::default();
    planner.plan(&sensed(1, 0.1, None), &mut plan);
    assert_eq!((frequencies(&plan), &plan.shares), (vec![MIN; 4], &None));
    planner.plan(&sensed(2, 0.1, refusing(2)), &mut plan);
    assert_eq!(frequencies(&plan), [MAX; 4]);
}

#[test]
fn the_frequency_that_latency_needs_is_the_least_that_the_other_policy_may_choose() {
    let machine: Cores = (0..4).collect();
    let params = Slack {
        frequency_steps: 2,
        ..Slack::default()
    };
    let slack = LatencySlack::new(params, &machine, &jobs()).unwrap();
    let mut planner = planner(Some(cores::Policy::LatencySlack(slack)));
    let mut plan = Plan::default();
    let mut lowest = MAX;
    for tick in 1..200 {
        planner.plan(&sensed(tick, 0.1, None), &mut plan);
        let speed = plan.shares.as_ref().unwrap().speed.unwrap();
        assert_eq!(
            plan.cores[0].frequency,
            Frequency::Share(speed).on(&node().cores[0].range)
        );
        assert_eq!(plan.cores[3].frequency, MIN, "a job's");
        lowest = lowest.min(plan.cores[0].frequency);
    }
    assert_eq!(lowest, MIN);
}

#[test]
fn short_of_power_jobs_cores_are_lowered_and_the_services_stay() {
    let machine: Cores = (0..4).collect();
    let tick = Duration::from_millis(50);
    let params = Shared {
        look: tick,
        grow: tick,
        link: Some(1_000_000_000),
        power: Some(power::Params {
            guaranteed: MAX,
            watts: Some(100.0),
        }),
        ..Shared::default()
    };
    let heracles = Heracles::new(params, &machine, &jobs()).unwrap();
    let cores = Some(cores::Policy::Heracles(heracles));
    let fast = Policy::Performance(Performance);
    let pressure = pressure::Params::default();
    let mut planner = Planner::with(node(), Some(&fast), cores, pressure, tick);
    let mut plan = Plan::default();
    let short = Resources {
        egress: Some(5e8),
        watts: Some(99.0),
        slowest: Some(Khz(1_800_000)),
        memory: None,
    };
    // Two seconds at each of ten steps.
    for tick in 1..440 {
        let sensed = Sensed {
            resources: short,
            ..sensed(tick, 0.1, None)
        };
        planner.plan(&sensed, &mut plan);
    }
    let shares = plan.shares.as_ref().unwrap();
    assert_eq!(shares.service, [0].into());
    assert_eq!(frequencies(&plan), [MAX, MIN, MIN, MIN]);
    assert_eq!(shares.ceilings.egress, Some(450_000_000));
}

#[test]
fn jobs_of_a_service_that_may_be_slow_are_fast() {
    let machine: Cores = (0..4).collect();
    let params = hipster_co::Params {
        frequency_steps: 2,
        ..hipster_co::Params::default()
    };
    let co = hipster_co::HipsterCo::new(params, &machine, &jobs()).unwrap();
    let mut planner = planner(Some(cores::Policy::HipsterCo(co)));
    let mut plan = Plan::default();
    for second in 1..10 {
        let mut sensed = sensed(20 * second, 0.1, None);
        sensed.tail = Some(Tail {
            latency: Duration::from_micros(100),
            requests: 100,
            at: sensed.now,
        });
        planner.plan(&sensed, &mut plan);
    }
    let shares = plan.shares.as_ref().unwrap();
    assert_eq!(shares.service, [0].into());
    assert_eq!(frequencies(&plan), [MIN, MAX, MAX, MAX]);
}

#[test]
fn without_a_frequency_policy_nothing_is_said_of_frequencies() {
    let machine: Cores = (0..4).collect();
    let blocks = Blocks::new(Blocked::default(), &machine, &jobs()).unwrap();
    let cores = Some(cores::Policy::Blocks(blocks));
    let pressure = pressure::Params::default();
    let none = Node { cores: Vec::new() };
    let mut planner = Planner::with(none, None, cores, pressure, Duration::from_millis(50));
    let mut plan = Plan::default();
    planner.plan(&sensed(1, 0.1, None), &mut plan);
    assert!(plan.cores.is_empty() && plan.shares.is_some());
}

#[test]
fn capacity_is_of_the_services_cores_and_their_speed() {
    let machine: Cores = (0..4).collect();
    let blocks = Blocks::new(Blocked::default(), &machine, &jobs()).unwrap();
    let mut divided = planner(Some(cores::Policy::Blocks(blocks)));
    let mut plan = Plan::default();
    let has = |cores: &[u32]| cores.iter().copied().collect::<Cores>();
    divided.plan(&sensed(1, 0.1, None), &mut plan);
    assert_eq!(
        plan.capacity_millicores(&node(), Some(&has(&[0]))),
        385,
        "one at 1 of 2.6 GHz"
    );
    divided.plan(&sensed(2, 0.1, refusing(2)), &mut plan);
    assert_eq!(
        plan.capacity_millicores(&node(), Some(&has(&[0, 1]))),
        2000,
        "two at the highest"
    );
    let none = Node { cores: Vec::new() };
    assert_eq!(
        plan.capacity_millicores(&none, Some(&has(&[0, 1]))),
        2000,
        "of no known speed"
    );
    planner(None).plan(&sensed(1, 0.1, None), &mut plan);
    assert_eq!(plan.capacity_millicores(&node(), None), 1538, "all");
}
