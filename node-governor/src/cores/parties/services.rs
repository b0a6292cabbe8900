// SPDX-License-Identifier: Apache-2.0
//! Several services, each with cores of its own and a target, and jobs: the elastic cores go where [`super::several`] says.
//!
//! ```text
//!  elastic:  the service's ─> │ jobs' │ <─ the first other's │ the next one's
//! ```
//! Cores alone: frequency, memory and disk are for one service. Of our own: while nothing has been known of one of them for
//! long, or the mesh refuses requests to the service's host, all share the elastic cores evenly and jobs have what is left
//! over, as at the start.

use std::time::Duration;

use super::super::places::{Places, wide};
use super::super::sets::Sets;
use super::super::silence::{Heard, Silence};
use super::super::{CorePlan, Cores, Reason, Refused, Seen, check_cores};
use super::Params;
use super::several::{self, Several};
use crate::jobs::Job;

/// A service beside the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its name, of which there is one.
    pub name: String,
    /// Its own, always.
    pub least: Cores,
    /// Its 95th percentile shall stay below this.
    pub target: Duration,
}

/// Whose elastic cores are whose.
#[derive(Debug)]
pub struct Services {
    params: Params,
    jobs: Vec<Job>,
    places: Places,
    several: Several,
    /// Of each, the first service before the others.
    silences: Vec<Silence>,
}

impl Params {
    /// See [`Params::check`].
    pub(super) fn check_others(&self, machine: &Cores) -> Result<(), Refused> {
        let steps = [
            ("cache_steps", self.cache_steps),
            ("bandwidth_steps", self.bandwidth_steps),
            ("frequency_steps", self.frequency_steps),
            ("memory_steps", self.memory_steps),
            ("disk_steps", self.disk_steps),
            ("network_steps", self.network_steps),
        ];
        if let Some((field, _)) = steps.iter().find(|(_, steps)| *steps > 0) {
            let reason = "is for one service; with others cores alone are divided";
            return Err(Refused::new(*field, reason));
        }
        let mut owned = self.least.with(&self.elastic).with(&self.batch);
        for (index, other) in self.others.iter().enumerate() {
            let field = |name: &str| format!("others[{index}].{name}");
            check_cores(&field("least"), &other.least, machine)?;
            let shared = other.least.shared(&owned);
            if !shared.is_empty() {
                let reason = format!("{shared}: somebody else's, too");
                return Err(Refused::new(field("least"), reason));
            }
            owned = owned.with(&other.least);
            if other.target.is_zero() {
                return Err(Refused::new(field("target"), "is nothing"));
            }
            let before = &self.others[..index];
            if before.iter().any(|one| one.name == other.name) {
                return Err(Refused::new(field("name"), "is there twice"));
            }
        }
        Ok(())
    }
}

impl Services {
    /// All share the elastic cores evenly at first.
    ///
    /// # Errors
    /// As [`Params::check`].
    pub fn new(params: Params, machine: &Cores, jobs: &[Job]) -> Result<Self, Refused> {
        params.check(machine, jobs)?;
        let most = params.batch.len() + params.elastic.len();
        let services = 1 + params.others.len();
        let several = several::Params {
            // Beside what is its own always.
            least: 0,
            most: usize::MAX,
            tight: params.tight,
            loose: params.loose,
            settle: params.settle,
            rest: params.rest,
        };
        Ok(Self {
            jobs: jobs.iter().map(|job| wide(job, most)).collect(),
            places: Places::default(),
            several: Several::new(several, services, params.elastic.len()),
            silences: vec![Silence::default(); services],
            params,
        })
    }

    /// The first service's.
    pub(in super::super) fn target(&self) -> Duration {
        self.params.target
    }

    pub(in super::super) fn plan(&mut self, seen: &Seen) -> CorePlan {
        let reason = self.control(seen);
        let given: Vec<usize> = self.several.cores().collect();
        let first = given.first().copied().unwrap_or_default();
        let mut rest = self.params.elastic.numbers();
        let (near, far) = rest.split_at((first + self.several.free()).min(rest.len()));
        rest = far;
        let near: Cores = near.iter().copied().collect();
        let mut others = Vec::new();
        for (other, cores) in self.params.others.iter().zip(given.iter().skip(1)) {
            let (its, far) = rest.split_at((*cores).min(rest.len()));
            others.push(other.least.with(&its.iter().copied().collect()));
            rest = far;
        }
        let sets = Sets {
            least: &self.params.least,
            elastic: &near,
            batch: &self.params.batch,
        };
        let divided = sets.divide(first, &mut self.places, &self.jobs, seen);
        CorePlan {
            service: divided.service,
            others,
            speed: seen.pressed.then_some(1.0),
            jobs: divided.jobs,
            reason: match divided.no_jobs {
                true => Reason::NoJobs,
                false => reason,
            },
            ..CorePlan::default()
        }
    }

    fn control(&mut self, seen: &Seen) -> Reason {
        let now = seen.now;
        let others = seen.others.iter().copied().chain(std::iter::repeat(None));
        let targets = self.params.others.iter().map(|other| other.target);
        let targets = std::iter::once(self.params.target).chain(targets);
        let slack = |(p95, target): (Option<Duration>, Duration)| {
            Some(1.0 - p95?.as_secs_f64() / target.as_secs_f64())
        };
        let tails = std::iter::once(seen.latency()).chain(others);
        let slacks: Vec<Option<f64>> = tails.zip(targets).map(slack).collect();
        let patience = self.params.patience;
        let heard = self.silences.iter_mut().zip(&slacks);
        let heard: Vec<Heard> = heard
            .map(|(silence, slack)| silence.hear(now, slack.is_some(), patience))
            .collect();
        if heard.contains(&Heard::NothingForLong) {
            self.several.share_evenly(now);
            return Reason::Safe;
        }
        if seen.pressed {
            self.several.share_evenly(now);
            return Reason::Refused;
        }
        let has = |several: &Several| several.cores().next();
        let before = has(&self.several);
        self.several.see(now, &slacks);
        match has(&self.several).cmp(&before) {
            std::cmp::Ordering::Greater => Reason::Tight,
            std::cmp::Ordering::Less => Reason::Loose,
            std::cmp::Ordering::Equal if slacks[0].is_none() => Reason::Held,
            std::cmp::Ordering::Equal => Reason::Same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::Act;
    use crate::jobs::{Queue, State};
    use crate::sensed::Nanos;

    struct Node(Services, u64);

    impl Node {
        /// Cores 0 and 7 are the services', 1 to 4 elastic, 5 and 6 the jobs'.
        fn new() -> Self {
            let job = |name: &str, queue| Job {
                name: name.to_owned(),
                queue,
                threads: 2,
            };
            let jobs = [job("long", Queue::Long), job("short", Queue::Short)];
            let policy = Services::new(params(), &(0..8).collect(), &jobs);
            Self(policy.unwrap(), 0)
        }

        /// So many decisions, with each tail as a share of its target.
        fn decide(&mut self, times: u64, tails: [Option<f64>; 2]) -> CorePlan {
            let mut plan = CorePlan::default();
            for _ in 0..5 * times {
                self.1 += 100;
                plan = self.0.plan(&Seen {
                    now: Nanos(self.1 * 1_000_000),
                    p95: tails[0].map(|share| self.0.params.target.mul_f64(share)),
                    others: vec![tails[1].map(|share| Duration::from_secs(1).mul_f64(share))],
                    jobs: vec![State::Running; 2],
                    ..Seen::default()
                });
            }
            plan
        }
    }

    fn params() -> Params {
        Params {
            elastic: (1..5).collect(),
            batch: [5, 6].into(),
            others: vec![Other {
                name: "other".to_owned(),
                least: [7].into(),
                target: Duration::from_secs(1),
            }],
            ..Params::default()
        }
    }

    #[test]
    fn cores_go_from_a_service_with_slack_to_jobs_and_from_jobs_to_the_one_that_is_late() {
        let mut node = Node::new();
        let plan = node.decide(1, [Some(0.9), Some(0.9)]);
        assert_eq!(
            (plan.service, &plan.others[..]),
            ([0, 1, 2].into(), &[[3, 4, 7].into()][..])
        );
        assert_eq!(plan.jobs[1].act, Act::Pause);
        let plan = node.decide(4, [Some(0.1), Some(0.2)]);
        assert_eq!(
            (plan.service, &plan.others[..]),
            ([0].into(), &[[7].into()][..])
        );
        assert_eq!(plan.jobs[1].cores, (1..5).collect());
        let plan = node.decide(3, [Some(0.9), Some(1.5)]);
        assert_eq!(
            (plan.service, &plan.others[..]),
            ([0].into(), &[[2, 3, 4, 7].into()][..])
        );
        assert_eq!(plan.jobs[1].cores, [1].into());
        let plan = node.decide(1, [Some(1.5), Some(0.9)]);
        assert_eq!((plan.service, plan.reason), ([0, 1].into(), Reason::Tight));
    }

    #[test]
    fn while_one_is_silent_all_stays_for_a_while_and_then_both_have_as_much() {
        let mut node = Node::new();
        node.decide(4, [Some(0.1), Some(0.1)]);
        let plan = node.decide(3, [Some(0.9), None]);
        assert_eq!(
            (plan.service, &plan.others[..]),
            ([0].into(), &[[7].into()][..])
        );
        let plan = node.decide(2, [Some(0.9), None]);
        assert_eq!(
            (plan.service, &plan.others[..]),
            ([0, 1, 2].into(), &[[3, 4, 7].into()][..])
        );
        assert_eq!(plan.reason, Reason::Safe);
    }

    #[test]
    fn other_services_that_cannot_be_are_refused() {
        let refused = |change: fn(&mut Params)| {
            let mut params = params();
            change(&mut params);
            params
                .check(&(0..8).collect(), &[])
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refused(|params| params.others[0].least = [0].into()),
            "others[0].least: 0: somebody else's, too"
        );
        assert_eq!(
            refused(|params| params.others.push(params.others[0].clone())),
            "others[1].least: 7: somebody else's, too"
        );
        assert_eq!(
            refused(|params| params.disk_steps = 1),
            "disk_steps: is for one service; with others cores alone are divided"
        );
        assert_eq!(
            refused(|params| params.others[0].target = Duration::ZERO),
            "others[0].target: is nothing"
        );
    }
}
