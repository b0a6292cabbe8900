// SPDX-License-Identifier: Apache-2.0
//! Jobs get cores one by one while the service has slack, and none while it is loaded or late.
//!
//! ```text
//!  each 15 s:  over the target       ──> jobs have no core for five minutes
//!              load > 85 %           ──> jobs have no core until load < 80 %
//!              slack < 10 %          ──> jobs get no more; < 5 %: they keep two
//!  each 2 s:   none of these         ──> jobs get a core more
//! ```
//! Heracles: Lo et al., *Heracles: improving resource efficiency at scale*, ISCA 2015, section 4: its top-level
//! controller (algorithm 1) and, of its sub-controllers, that of cores (algorithm 2, the state GROW_CORES), and, where
//! they are configured, those of [`memory`] and caches (the rest of algorithm 2), [`power`] (algorithm 3) and
//! [`network`] (algorithm 4). Figures are those of a translation of the whole paper that has all four algorithms; the
//! paper itself was not at hand. Algorithm 1 looks at slack only between both loads; here as the paper's text says,
//! whenever jobs may run. Of our own: load is the service's CPU use over all the cores that it may have, and while the
//! mesh refuses requests, or is about to, the service has all.

pub mod memory;
pub(crate) mod network;
pub mod power;

use std::time::Duration;

use self::memory::{Memory, Step};
use self::power::Power;
use super::places::{Places, wide};
use super::silence::{Heard, Silence};
use super::{
    Ceilings, CorePlan, Cores, Reason, Refused, Seen, check_cores, check_jobs, check_range,
};
use crate::jobs::Job;
use crate::sensed::Nanos;

/// Cores, target and times.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The service's, always.
    pub least: Cores,
    /// The service's or jobs'; jobs have them from the highest number on.
    pub elastic: Cores,
    /// The 95th percentile shall stay below this.
    pub target: Duration,
    /// Above this share of all cores in use, jobs have none.
    pub busy: f64,
    /// Below this share they may have some again.
    pub calm: f64,
    /// With less slack than this jobs get no more.
    pub tight: f64,
    /// With less than this they keep two cores.
    pub short: f64,
    /// Between two looks at latency and load.
    pub look: Duration,
    /// Between two cores more.
    pub grow: Duration,
    /// Jobs have none for so long when latency was over the target.
    pub cooldown: Duration,
    /// Somebody measures the latency: when that is not known, use alone is not enough to go by.
    pub measured: bool,
    /// When nothing is known of the service, jobs keep what they have for so long, and then have none.
    pub patience: Duration,
    /// Bits a second of the interface that is shared; none: what is sent is no matter of this policy.
    pub link: Option<u64>,
    /// None: power is no matter of this policy.
    pub power: Option<power::Params>,
    /// None: caches and memory are no matter of this policy.
    pub memory: Option<memory::Params>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            least: Cores::from([0]),
            elastic: Cores::from([1, 2, 3]),
            target: Duration::from_micros(1500),
            busy: 0.85,
            calm: 0.8,
            tight: 0.1,
            short: 0.05,
            look: Duration::from_secs(15),
            grow: Duration::from_secs(2),
            cooldown: Duration::from_secs(300),
            measured: false,
            patience: Duration::from_secs(2),
            link: None,
            power: None,
            memory: None,
        }
    }
}

/// Cores that jobs keep when slack is short.
const KEPT: usize = 2;

impl Params {
    /// # Errors
    /// A set of cores is empty, has cores that the machine does not have or that the other has, the target or a time is
    /// nothing, or the shares are not above 0, at most 1 and in their order; or a job is there twice or has no threads.
    pub fn check(&self, machine: &Cores, jobs: &[Job]) -> Result<(), Refused> {
        check_jobs(jobs)?;
        check_cores("least", &self.least, machine)?;
        check_cores("elastic", &self.elastic, machine)?;
        let shared = self.least.shared(&self.elastic);
        if !shared.is_empty() {
            return Err(Refused::new("elastic", format!("{shared}: in least, too")));
        }
        let times = [
            ("target", self.target),
            ("look", self.look),
            ("grow", self.grow),
        ];
        if let Some((field, _)) = times.iter().find(|(_, time)| time.is_zero()) {
            return Err(Refused::new(*field, "is nothing"));
        }
        check_range("busy", self.busy, 1.0)?;
        check_range("calm", self.calm, self.busy)?;
        check_range("tight", self.tight, 1.0)?;
        check_range("short", self.short, self.tight)
    }
}

/// What jobs have, and until when they may not.
#[derive(Debug)]
pub struct Heracles {
    params: Params,
    jobs: Vec<Job>,
    places: Places,
    silence: Silence,
    /// How many elastic cores jobs have.
    granted: usize,
    /// Jobs may have cores.
    enabled: bool,
    /// And more of them.
    growing: bool,
    looked: Option<Nanos>,
    grown: Nanos,
    cold_until: Nanos,
    power: Option<Power>,
    memory: Option<Memory>,
}

impl Heracles {
    /// The service starts with all it may have.
    ///
    /// # Errors
    /// As [`Params::check`].
    pub fn new(params: Params, machine: &Cores, jobs: &[Job]) -> Result<Self, Refused> {
        params.check(machine, jobs)?;
        Ok(Self {
            jobs: jobs
                .iter()
                .map(|job| wide(job, params.elastic.len()))
                .collect(),
            power: params.power.map(Power::new),
            memory: params.memory.map(Memory::new),
            params,
            places: Places::default(),
            silence: Silence::default(),
            granted: 0,
            enabled: false,
            growing: false,
            looked: None,
            grown: Nanos::default(),
            cold_until: Nanos::default(),
        })
    }

    /// See [`Params::target`].
    pub(super) fn target(&self) -> Duration {
        self.params.target
    }

    pub(super) fn plan(&mut self, seen: &Seen) -> CorePlan {
        let mut reason = self.control(seen);
        // One place, of all the cores that jobs have.
        self.places.fill(&self.jobs, seen, &Cores::NONE);
        let elastic = self.params.elastic.numbers();
        let mut theirs: Cores = elastic.iter().rev().copied().take(self.granted).collect();
        if self.places.small.is_none() {
            (theirs, reason) = (Cores::NONE, Reason::NoJobs);
        }
        CorePlan {
            service: self
                .params
                .least
                .with(&self.params.elastic.without(&theirs)),
            others: Vec::new(),
            speed: seen.pressed.then_some(1.0),
            jobs: self.places.plan(&self.jobs, seen, &Cores::NONE, &theirs),
            ceilings: self.ceilings(seen),
            reason,
        }
    }

    /// Of the sub-controllers beside that of cores.
    fn ceilings(&mut self, seen: &Seen) -> Ceilings {
        let resources = &seen.resources;
        let power = self.power.as_mut();
        Ceilings {
            egress: (self.params.link).map(|link| network::ceiling(link, resources.egress)),
            speed: power.map(|power| power.speed(seen.now, resources)),
            ways: self.memory.as_ref().and_then(Memory::ways),
            bandwidth: None,
        }
    }

    fn control(&mut self, seen: &Seen) -> Reason {
        let now = seen.now;
        let heard = seen.tells(self.params.measured);
        match self.silence.hear(now, heard, self.params.patience) {
            Heard::NothingYet => return Reason::Held,
            Heard::NothingForLong => return self.disable(Reason::Safe),
            Heard::Something => {}
        }
        if seen.pressed {
            return self.disable(Reason::Refused);
        }
        let due = |last: Nanos| now.since(last) >= self.params.look;
        if self.looked.is_none_or(due) {
            self.looked = Some(now);
            let reason = self.look(seen);
            if reason != Reason::Same {
                return reason;
            }
        }
        if now.since(self.grown) < self.params.grow {
            return Reason::Same;
        }
        let grows = self.enabled && self.growing;
        let step = match &mut self.memory {
            Some(memory) => {
                self.grown = now;
                memory.step(seen.resources.memory, self.granted, grows)
            }
            None if grows => Step::More,
            None => Step::Stay,
        };
        match step {
            Step::More if self.granted < self.params.elastic.len() => {
                self.granted += 1;
                self.grown = now;
                Reason::Loose
            }
            Step::Less(cores) => {
                self.granted = self.granted.saturating_sub(cores);
                Reason::Memory
            }
            Step::More | Step::Stay => Reason::Same,
        }
    }

    /// The top-level controller.
    fn look(&mut self, seen: &Seen) -> Reason {
        let params = &self.params;
        let target = params.target.as_secs_f64();
        let slack = seen.p95.map(|p95| 1.0 - p95.as_secs_f64() / target);
        let below = |least: f64| slack.is_some_and(|slack| slack < least);
        let cores = (params.least.len() + params.elastic.len()) as f64;
        let load = seen.cpu().map_or(0.0, |cpu| cpu / cores);
        if below(0.0) {
            self.cold_until = seen.now.after(params.cooldown);
            return self.disable(Reason::Tight);
        }
        if load > params.busy {
            return self.disable(Reason::Busy);
        }
        if load < params.calm && seen.now >= self.cold_until {
            self.enabled = true;
        }
        self.growing = !below(params.tight);
        if below(params.short) && self.granted > KEPT {
            self.granted = KEPT;
            return Reason::Tight;
        }
        Reason::Same
    }

    fn disable(&mut self, reason: Reason) -> Reason {
        (self.enabled, self.growing, self.granted) = (false, false, 0);
        if let Some(memory) = &mut self.memory {
            memory.end();
        }
        reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::{Act, Bounds};
    use crate::jobs::{Queue, State};
    use crate::sensed::{Bandwidth, Resources};

    struct Node {
        policy: Heracles,
        second: u64,
    }

    impl Node {
        fn new() -> Self {
            let job = Job {
                name: "job".to_owned(),
                queue: Queue::Long,
                threads: 4,
            };
            let params = Params {
                elastic: (1..6).collect(),
                ..Params::default()
            };
            let policy = Heracles::new(params, &(0..6).collect(), &[job]).unwrap();
            Self { policy, second: 0 }
        }

        /// Cores of the job, and whether it runs, after so many seconds of a latency and a use.
        fn after(&mut self, seconds: u64, p95_us: u64, cpu: f64) -> (usize, Act) {
            let mut plan = CorePlan::default();
            for _ in 0..seconds {
                self.second += 1;
                plan = self.policy.plan(&Seen {
                    now: Nanos(self.second * 1_000_000_000),
                    cpu: Some(cpu),
                    p95: Some(Duration::from_micros(p95_us)),
                    jobs: vec![State::Running],
                    ..Seen::default()
                });
            }
            (plan.jobs[0].cores.len(), plan.jobs[0].act)
        }
    }

    #[test]
    fn jobs_get_a_core_each_two_seconds_while_there_is_slack() {
        let mut node = Node::new();
        assert_eq!(node.after(2, 500, 1.0), (1, Act::Run));
        assert_eq!(node.after(2, 500, 1.0), (2, Act::Run));
        assert_eq!(node.after(60, 500, 1.0), (5, Act::Run));
    }

    #[test]
    fn with_less_slack_they_get_no_more_and_then_keep_two() {
        let mut node = Node::new();
        node.after(7, 500, 1.0);
        let (had, _) = node.after(15, 1400, 1.0);
        assert_eq!(node.after(60, 1400, 1.0), (had, Act::Run));
        assert_eq!(node.after(15, 1450, 1.0), (2, Act::Run));
    }

    #[test]
    fn over_the_target_they_have_none_for_five_minutes() {
        let mut node = Node::new();
        node.after(30, 500, 1.0);
        assert_eq!(node.after(15, 1600, 1.0), (0, Act::Pause));
        assert_eq!(node.after(270, 500, 1.0), (0, Act::Pause));
        assert_eq!(node.after(60, 500, 1.0).1, Act::Run);
    }

    #[test]
    fn with_memory_to_mind_cores_come_and_go_by_what_is_read_and_with_them_the_cache() {
        let job = Job {
            name: "job".to_owned(),
            queue: Queue::Long,
            threads: 4,
        };
        let ways = Some(Bounds { least: 1, most: 19 });
        let params = Params {
            elastic: (1..6).collect(),
            memory: Some(memory::Params { peak: 100e9, ways }),
            ..Params::default()
        };
        let mut policy = Heracles::new(params, &(0..6).collect(), &[job]).unwrap();
        let mut second = 0;
        // Two seconds in which jobs read so many GB/s and everybody so many.
        let mut see = |p95_us, read: Option<[f64; 2]>| {
            let mut plan = CorePlan::default();
            for _ in 0..2 {
                second += 1;
                let now = Nanos(second * 1_000_000_000);
                plan = policy.plan(&Seen {
                    now,
                    cpu: Some(1.0),
                    p95: Some(Duration::from_micros(p95_us)),
                    jobs: vec![State::Running],
                    resources: Resources {
                        memory: read.map(|[jobs, total]| Bandwidth {
                            at: now,
                            jobs: jobs * 1e9,
                            total: total * 1e9,
                        }),
                        ..Resources::default()
                    },
                    ..Seen::default()
                });
            }
            (plan.jobs[0].cores.len(), plan.ceilings.ways, plan.reason)
        };
        assert_eq!(
            see(500, None),
            (0, Some(1), Reason::Same),
            "nothing is measured"
        );
        assert_eq!(see(500, Some([0.0, 20.0])), (1, Some(2), Reason::Loose));
        assert_eq!(see(500, Some([10.0, 30.0])).1, Some(3));
        // The third way has not paid.
        assert_eq!(see(500, Some([10.0, 30.0])), (2, Some(2), Reason::Loose));
        assert_eq!(see(500, Some([20.0, 40.0])), (3, Some(2), Reason::Loose));
        assert_eq!(see(500, Some([60.0, 115.0])), (1, Some(2), Reason::Memory));
        // Late: they have none, and the least of the cache.
        for _ in 0..8 {
            see(1600, Some([20.0, 40.0]));
        }
        assert_eq!(see(1600, Some([0.0, 20.0])).0, 0);
        assert_eq!(see(1600, Some([0.0, 20.0])).1, Some(1));
    }

    #[test]
    fn of_a_loaded_service_they_have_none_until_it_is_calm() {
        let mut node = Node::new();
        node.after(30, 500, 1.0);
        assert_eq!(node.after(15, 500, 5.5).0, 0);
        assert_eq!(node.after(30, 500, 4.9).0, 0);
        assert!(node.after(30, 500, 4.0).0 > 0);
    }
}
