// SPDX-License-Identifier: Apache-2.0
//! A rung up or down, and the one that has paid.

use super::*;
use crate::cores::Act;
use crate::jobs::{Queue, State};

/// A policy on six cores, and a service whose tail is its work over cores times speed, as a share of the target.
struct Node {
    policy: HipsterCo,
    second: u64,
    plan: CorePlan,
    state: State,
}

/// What was seen in so many seconds, on average.
#[derive(Debug)]
struct Came {
    jobs_cores: f64,
    missed: f64,
}

impl Node {
    fn new(params: Params) -> Self {
        let job = Job {
            name: "job".to_owned(),
            queue: Queue::Long,
            threads: 6,
        };
        let mut policy = HipsterCo::new(params, &(0..6).collect(), &[job]).unwrap();
        let plan = policy.plan(&Seen::default());
        Self {
            policy,
            second: 0,
            plan,
            state: State::Running,
        }
    }

    fn see(&mut self, p95: Option<f64>, requests: u64, jobs_cpu: Option<f64>) {
        self.second += 1;
        let target = self.policy.target();
        self.plan = self.policy.plan(&Seen {
            now: Nanos(self.second * 1_000_000_000),
            p95: p95.map(|share| target.mul_f64(share)),
            requests,
            jobs: vec![self.state],
            jobs_cpu,
            ..Seen::default()
        });
    }

    /// Under a load that needs so many cores at the highest frequency to be just within the target.
    fn play(&mut self, seconds: u64, needs: f64, requests: u64) -> Came {
        let (mut jobs_cores, mut missed) = (0.0, 0.0);
        for _ in 0..seconds {
            let speed = LOWEST + (1.0 - LOWEST) * self.plan.speed.unwrap_or(1.0);
            let tail = needs / (self.plan.service.len() as f64 * speed);
            let cores = self.plan.jobs[0].cores.len() as f64;
            self.see(Some(tail), requests, Some(cores));
            jobs_cores += cores;
            missed += f64::from(u8::from(tail > 1.0));
        }
        Came {
            jobs_cores: jobs_cores / seconds as f64,
            missed: missed / seconds as f64,
        }
    }

    fn cores(&self) -> (usize, usize) {
        (self.plan.service.len(), self.plan.jobs[0].cores.len())
    }
}

/// The service has one to six cores, jobs the others.
fn elastic() -> Params {
    Params {
        elastic: (1..6).collect(),
        batch: Cores::NONE,
        learning: Duration::from_secs(100),
        ..Params::default()
    }
}

#[test]
fn the_ladder_rises_from_the_least_to_all_and_has_every_configuration_once() {
    let ladder = Params {
        frequency_steps: 4,
        ..elastic()
    }
    .ladder();
    assert_eq!(ladder.len(), 6 * 5);
    let rung = |elastic, frequency| Rung { elastic, frequency };
    assert_eq!((ladder[0], ladder[29]), (rung(0, 0), rung(5, 4)));
    // As much by two slow cores as by a fast one, at less power.
    let place = |wanted| ladder.iter().position(|rung| *rung == wanted).unwrap();
    assert_eq!(place(rung(0, 4)), place(rung(1, 0)) + 1);
    for (index, one) in ladder.iter().enumerate() {
        assert!(!ladder[..index].contains(one), "{one:?}");
    }
}

#[test]
fn far_from_the_target_it_comes_down_a_rung_a_second_and_over_it_the_service_has_all() {
    let mut node = Node::new(elastic());
    assert_eq!(node.cores(), (6, 0));
    for left in (1..6).rev() {
        node.see(Some(0.3), 100, Some(0.0));
        assert_eq!(node.cores(), (left, 6 - left));
        assert_eq!(node.plan.reason, Reason::Loose);
    }
    node.see(Some(0.9), 100, Some(5.0));
    assert_eq!(node.cores(), (2, 4));
    node.see(Some(0.7), 100, Some(4.0));
    assert_eq!((node.cores(), node.plan.reason), ((2, 4), Reason::Same));
    node.see(Some(1.01), 100, Some(4.0));
    assert_eq!((node.cores(), node.plan.reason), ((6, 0), Reason::Tight));
    assert_eq!(node.plan.jobs[0].act, Act::Pause);
}

#[test]
fn what_was_learnt_of_a_load_beats_the_heuristic() {
    let mut node = Node::new(elastic());
    // One core is 0.9 of the target: in danger by the rule, which climbs, has twice as much as is safe, and comes down again.
    let learning = node.play(100, 0.9, 1000);
    let learnt = node.play(100, 0.9, 1000);
    assert!(
        learnt.jobs_cores > learning.jobs_cores + 0.4,
        "{learning:?} {learnt:?}"
    );
    assert_eq!((node.cores(), learnt.missed), ((1, 5), 0.0));
}

#[test]
fn a_load_that_is_known_has_its_rung_at_once_where_the_heuristic_comes_down_one_by_one() {
    let mut node = Node::new(Params {
        learning: Duration::from_secs(300),
        ..elastic()
    });
    node.play(20, 4.5, 1000);
    node.play(2, 0.9, 100);
    assert_eq!(node.cores(), (4, 2));
    node.play(298, 0.9, 100);
    node.play(20, 4.5, 1000);
    assert_eq!(node.cores(), (6, 0));
    node.play(2, 0.9, 100);
    // One core would do, but with one the target was missed when the load rose.
    assert_eq!(node.cores(), (2, 4));
}

#[test]
fn with_frequencies_the_service_is_slow_where_that_will_do_and_jobs_are_fast() {
    let mut node = Node::new(Params {
        frequency_steps: 2,
        ..elastic()
    });
    node.play(100, 0.4, 100);
    let came = node.play(50, 0.4, 100);
    assert_eq!((node.cores(), came.missed), ((1, 5), 0.0));
    assert!(node.plan.speed < Some(1.0), "{:?}", node.plan);
    assert!(node.plan.jobs[0].fast);
    let mut cores_alone = Node::new(elastic());
    cores_alone.play(1, 0.4, 100);
    assert!(cores_alone.plan.speed.is_none() && !cores_alone.plan.jobs[0].fast);
}

#[test]
fn without_a_job_the_service_has_all_and_what_follows_says_nothing_of_a_rung() {
    let mut node = Node::new(Params {
        frequency_steps: 2,
        ..elastic()
    });
    node.play(50, 0.9, 100);
    let learnt = format!("{:?}", node.policy.learner);
    node.state = State::Finished;
    node.play(1, 0.9, 100);
    assert_eq!((node.cores(), node.plan.speed), ((6, 0), Some(1.0)));
    assert_eq!(node.plan.reason, Reason::NoJobs);
    let learnt_then = format!("{:?}", node.policy.learner);
    node.play(50, 3.0, 100);
    let table = |text: &str| text.split("rung:").next().unwrap().to_owned();
    assert_ne!(table(&learnt), "");
    assert_eq!(
        table(&learnt_then),
        table(&format!("{:?}", node.policy.learner))
    );
}

#[test]
fn of_a_silent_service_all_stays_for_a_while_and_then_it_has_all() {
    let mut node = Node::new(elastic());
    node.play(10, 0.9, 100);
    let had = node.cores();
    assert!(had.1 > 0);
    node.see(None, 0, None);
    assert_eq!((node.cores(), node.plan.reason), (had, Reason::Held));
    node.play(1, 0.9, 100);
    for _ in 0..3 {
        node.see(None, 0, None);
    }
    assert_eq!((node.cores(), node.plan.reason), ((6, 0), Reason::Safe));
}

#[test]
fn steps_that_cannot_all_be_tried_are_refused() {
    let refused = |params: Params| {
        let error = params.check(&(0..6).collect(), &[]).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        refused(Params {
            frequency_steps: 17,
            ..elastic()
        }),
        "frequency_steps: is more than 16: each is tried with each number of cores"
    );
    assert_eq!(
        refused(Params {
            safe: 0.9,
            ..elastic()
        }),
        "safe: 0.9 is not above 0 and at most 0.85"
    );
}
