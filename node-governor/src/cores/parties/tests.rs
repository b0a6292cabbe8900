// SPDX-License-Identifier: Apache-2.0
//! A step after the other, and what goes back.

use super::*;
use crate::jobs::{Queue, State};

const MIB: u64 = 1 << 20;

struct Node {
    policy: Parties,
    now_ms: u64,
}

impl Node {
    fn new(params: Params) -> Self {
        let job = Job {
            name: "job".to_owned(),
            queue: Queue::Long,
            threads: 4,
        };
        let policy = Parties::new(params, &(0..6).collect(), &[job]).unwrap();
        Self { policy, now_ms: 0 }
    }

    fn see(&mut self, p95_us: Option<u64>, pressed: bool) -> CorePlan {
        self.now_ms += 100;
        self.policy.plan(&Seen {
            now: Nanos(self.now_ms * 1_000_000),
            p95: p95_us.map(Duration::from_micros),
            pressed,
            jobs: vec![State::Running],
            ..Seen::default()
        })
    }

    /// So many decisions with this latency; what the last one has come to.
    fn decide(&mut self, times: usize, p95_us: u64) -> Has {
        let mut has = None;
        for _ in 0..5 * times {
            has = Some(Has::of(&self.see(Some(p95_us), false)));
        }
        has.unwrap()
    }
}

/// The service's cores and speed, and the job's limits.
#[derive(Debug, PartialEq)]
struct Has {
    cores: usize,
    speed: Option<f64>,
    memory_mib: Option<u64>,
    disk: Option<u32>,
    reason: Reason,
}

impl Has {
    fn of(plan: &CorePlan) -> Self {
        let limits = plan.jobs[0].limits;
        Self {
            cores: plan.service.len(),
            speed: plan.speed,
            memory_mib: limits.memory.map(|bytes| bytes / MIB),
            disk: limits.disk,
            reason: plan.reason,
        }
    }
}

/// Two steps of each.
fn all() -> Params {
    Params {
        elastic: [1, 2].into(),
        batch: [3, 4].into(),
        frequency_steps: 2,
        memory_steps: 2,
        memory_least: 100 * MIB,
        memory_most: 300 * MIB,
        disk_steps: 2,
        ..Params::default()
    }
}

const LOOSE: u64 = 500;
const FITS: u64 = 1300;
const TIGHT: u64 = 1450;

#[test]
fn with_slack_jobs_get_one_resource_after_the_other() {
    let mut node = Node::new(all());
    let mut rows = vec![Has::of(&node.see(Some(LOOSE), false))];
    rows.extend((0..8).map(|_| node.decide(1, LOOSE)));
    let shown: Vec<_> = rows
        .iter()
        .map(|has| (has.cores, has.speed, has.memory_mib, has.disk))
        .collect();
    let row = |cores, speed, memory, disk| (cores, Some(speed), Some(memory), Some(disk));
    assert_eq!(
        shown,
        [
            row(3, 1.0, 100, 1),
            row(2, 1.0, 100, 1),
            row(1, 1.0, 100, 1),
            row(1, 0.5, 100, 1),
            row(1, 0.0, 100, 1),
            row(1, 0.0, 200, 1),
            row(1, 0.0, 300, 1),
            row(1, 0.0, 300, 50),
            row(1, 0.0, 300, 100),
        ]
    );
}

#[test]
fn between_the_two_shares_nothing_changes() {
    let mut node = Node::new(all());
    node.decide(3, LOOSE);
    let has = node.decide(1, FITS);
    assert_eq!(has.reason, Reason::Same);
    assert_eq!(node.decide(20, FITS), has);
}

#[test]
fn a_step_less_that_costs_too_much_goes_back_and_the_next_resource_follows_after_a_rest() {
    let mut node = Node::new(all());
    assert_eq!(node.decide(1, LOOSE).cores, 2);
    let has = node.decide(1, TIGHT);
    assert_eq!((has.cores, has.reason), (3, Reason::Reverted));
    let has = node.decide(19, LOOSE);
    assert_eq!((has.cores, has.speed), (3, Some(1.0)));
    let has = node.decide(1, LOOSE);
    assert_eq!((has.cores, has.speed), (3, Some(0.5)));
}

#[test]
fn a_step_more_that_does_not_help_is_followed_by_the_next_resource_and_goes_back_when_there_is_slack()
 {
    let mut node = Node::new(all());
    node.decide(9, LOOSE);
    // Not at once: one reading may be by chance.
    let has = node.decide(1, 1600);
    assert_eq!((has.cores, has.memory_mib), (2, Some(300)));
    let has = node.decide(1, 1600);
    assert_eq!((has.cores, has.speed), (2, Some(0.5)));
    let has = node.decide(1, 1700);
    assert_eq!((has.speed, has.memory_mib), (Some(0.5), Some(200)));
    // That is it: memory is what it needs.
    let has = node.decide(1, 1500);
    assert_eq!((has.memory_mib, has.disk), (Some(100), Some(100)));
    let has = node.decide(1, FITS);
    assert_eq!((has.speed, has.reason), (Some(0.0), Reason::Reverted));
    let has = node.decide(1, FITS);
    assert_eq!((has.cores, has.reason), (1, Reason::Reverted));
    let has = node.decide(9, FITS);
    assert_eq!(
        (has.cores, has.speed, has.memory_mib),
        (1, Some(0.0), Some(100))
    );
}

#[test]
fn nothing_is_taken_back_while_the_target_is_missed() {
    let mut node = Node::new(all());
    node.decide(9, LOOSE);
    let mut latency = 1600;
    for _ in 0..20 {
        latency += 100;
        node.decide(1, latency);
    }
    let has = node.decide(1, latency);
    assert_eq!(
        (has.cores, has.speed, has.memory_mib, has.disk),
        (3, Some(1.0), Some(100), Some(1))
    );
}

#[test]
fn silence_is_waited_for_and_then_the_service_has_all_as_it_has_while_the_mesh_presses() {
    let mut node = Node::new(all());
    let calm = node.decide(9, LOOSE);
    let held = Has::of(&node.see(None, false));
    assert_eq!((held.cores, held.reason), (calm.cores, Reason::Held));
    for _ in 0..20 {
        node.see(None, false);
    }
    let safe = Has::of(&node.see(None, false));
    assert_eq!(
        (safe.cores, safe.memory_mib, safe.reason),
        (3, Some(100), Reason::Safe)
    );

    let mut node = Node::new(all());
    node.decide(9, LOOSE);
    let pressed = Has::of(&node.see(Some(LOOSE), true));
    assert_eq!(
        (pressed.cores, pressed.disk, pressed.reason),
        (3, Some(1), Reason::Refused)
    );
}

#[test]
fn steps_of_the_network_are_what_jobs_may_not_send() {
    let mut node = Node::new(Params {
        network_steps: 4,
        link: Some(1_000_000),
        ..Params::default()
    });
    // Before anything is known the service has all, and jobs the least.
    let has = |plan: &CorePlan| plan.ceilings.egress;
    assert_eq!(has(&node.see(None, false)), Some(10_000));
    let mut left = Vec::new();
    for _ in 0..6 {
        node.decide(1, LOOSE);
        let plan = node.see(Some(LOOSE), false);
        left.push(has(&plan).unwrap());
        node.now_ms += 500;
    }
    assert!(left.is_sorted(), "{left:?}");
    assert_eq!(left.last(), Some(&1_000_000), "{left:?}");
    assert!(left.contains(&500_000), "{left:?}");
    assert_eq!(has(&node.see(Some(LOOSE), true)), Some(10_000));
}

#[test]
fn steps_of_cache_and_bandwidth_are_what_jobs_may_not_have_and_follow_cores() {
    let bounds = |least, most| Some(Bounds { least, most });
    let mut node = Node::new(Params {
        cache_steps: 3,
        ways: bounds(1, 10),
        bandwidth_steps: 2,
        bandwidth: bounds(10, 100),
        ..Params::default()
    });
    let has = |plan: CorePlan| {
        let Ceilings {
            ways, bandwidth, ..
        } = plan.ceilings;
        (plan.service.len(), ways.unwrap(), bandwidth.unwrap())
    };
    assert_eq!(has(node.see(None, false)), (2, 1, 10));
    let mut rows = Vec::new();
    for _ in 0..40 {
        rows.push(has(node.see(Some(LOOSE), false)));
    }
    rows.dedup();
    assert_eq!(
        rows,
        [
            (2, 1, 10),
            (1, 1, 10),
            (1, 4, 10),
            (1, 7, 10),
            (1, 10, 10),
            (1, 10, 55),
            (1, 10, 100),
        ]
    );
    assert_eq!(has(node.see(Some(LOOSE), true)), (2, 1, 10));
}

#[test]
fn what_has_no_steps_is_left_alone() {
    let mut node = Node::new(Params::default());
    let has = node.decide(9, LOOSE);
    assert_eq!(
        (has.cores, has.speed, has.memory_mib, has.disk),
        (1, None, None, None)
    );
}
