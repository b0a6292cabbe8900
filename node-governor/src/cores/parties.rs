// SPDX-License-Identifier: Apache-2.0
//! One resource at a time goes from batch jobs to the service and back, and what follows tells whether it stays.
//!
//! ```text
//!   slack = 1 - p95 / target, of the last reading and of the mean since the last decision, each half second:
//!     both < 5 %    a step more of the resource at the wheel; did slack not grow by it: the next resource
//!     both > 20 %   a step less; is slack < 5 % by it: the step goes back, the next resource, no step less for 10 s
//!   wheel: cores ──> cache ──> bandwidth ──> frequency ──> memory ──> disk ──> network ──> cores
//! ```
//! PARTIES: Chen, Delimitrou and Martínez, *PARTIES: QoS-Aware Resource Partitioning for Multiple Interactive
//! Services*, ASPLOS 2019, section 4. Its text was not at hand; shares, times, rest and wheel are those of the authors'
//! own controller (`manager/PARTIES.py` of sc2682cornell/PARTIES: five readings of 0.1 s, a rest of 100 readings), which
//! has cores, caches and frequency. Memory, disk and network are the paper's, from memory.
//!
//! Otherwise than there: cores are first, where it draws by lot. A step that did not help goes back when there is slack
//! again, one at a time; there it stays until slack is loose. While latency grows, nothing seems to help, and what is
//! taken back then is missing. The network is what all jobs together may send, in equal steps of the link. Ways of the L3
//! cache are those that jobs may fill; the service may fill all, also those. The bandwidth of memory is of our own: the
//! paper's machines could not divide it. While the mesh refuses requests the service has all.

mod readings;
pub mod services;
pub mod several;

use std::time::Duration;

use self::readings::Readings;
use self::services::Other;
use super::heracles::network::least;
use super::places::{Places, wide};
use super::sets::Sets;
use super::silence::{Heard, Silence};
use super::{
    Bounds, Ceilings, CorePlan, Cores, Limit, Limits, Reason, Refused, Seen, check_jobs,
    check_range,
};
use crate::jobs::Job;
use crate::sensed::Nanos;

/// Cores, target, steps and times.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The service's, always.
    pub least: Cores,
    /// The service's or jobs'; the service has them from the lowest number on.
    pub elastic: Cores,
    /// Jobs', always. None on a machine of two cores: then all jobs take turns on what the service leaves.
    pub batch: Cores,
    /// The 95th percentile shall stay below this.
    pub target: Duration,
    /// Less slack than this: a step more for the service.
    pub tight: f64,
    /// More slack than this: a step less.
    pub loose: f64,
    /// Between two decisions.
    pub settle: Duration,
    /// No step less for so long after one that went back.
    pub rest: Duration,
    /// Steps between most ways of the L3 cache and the least, which all jobs together may fill; with 0 the cache is no
    /// matter of this policy.
    pub cache_steps: u32,
    /// Those ways; none: the cache is no matter of this policy.
    pub ways: Option<Bounds>,
    /// Steps between all of the bandwidth of memory and the least, which jobs' cores may use; with 0 it is no matter of
    /// this policy.
    pub bandwidth_steps: u32,
    /// That bandwidth, in percent; none: it is no matter of this policy.
    pub bandwidth: Option<Bounds>,
    /// Steps between the lowest frequency and the highest; with 0 frequency is no matter of this policy.
    pub frequency_steps: u32,
    /// Steps between `memory_most` and `memory_least`; with 0 memory is no matter of this policy.
    pub memory_steps: u32,
    /// Of each job, in bytes, while the service has all of these steps.
    pub memory_least: u64,
    /// The same while the service has none.
    pub memory_most: u64,
    /// Steps between a job's weight of 100 and of 1; with 0 the disk is no matter of this policy.
    pub disk_steps: u32,
    /// Steps between the whole link and a hundredth of it, which all jobs together may send; with 0 the network is no
    /// matter of this policy.
    pub network_steps: u32,
    /// Bits a second of the interface that is shared; none: the network is no matter of this policy.
    pub link: Option<u64>,
    /// When the latency is not known, all stays as it is for so long, and then the service has all.
    pub patience: Duration,
    /// Services beside this one: where there are some, it is [`services::Services`] that divides.
    pub others: Vec<Other>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            least: Cores::from([0]),
            elastic: Cores::from([1]),
            batch: Cores::from([2, 3]),
            target: Duration::from_micros(1500),
            tight: 0.05,
            loose: 0.2,
            settle: Duration::from_millis(500),
            rest: Duration::from_secs(10),
            cache_steps: 0,
            ways: None,
            bandwidth_steps: 0,
            bandwidth: None,
            frequency_steps: 0,
            memory_steps: 0,
            memory_least: 256 << 20,
            memory_most: 4 << 30,
            disk_steps: 0,
            network_steps: 0,
            link: None,
            patience: Duration::from_secs(2),
            others: Vec::new(),
        }
    }
}

impl Params {
    /// # Errors
    /// A set of cores is empty and not `batch`, has cores that the machine does not have or that another set has,
    /// the target or `settle` is nothing, the shares of slack are not above 0, at most 1 and in this order, or the least
    /// memory is nothing or more than the most; a service beside it has no cores of its own, no target or the name of
    /// another, or there are steps of what is not divided between several; or a job is there twice or has no threads.
    pub fn check(&self, machine: &Cores, jobs: &[Job]) -> Result<(), Refused> {
        check_jobs(jobs)?;
        self.sets().check(machine)?;
        let times = [("target", self.target), ("settle", self.settle)];
        if let Some((field, _)) = times.iter().find(|(_, time)| time.is_zero()) {
            return Err(Refused::new(*field, "is nothing"));
        }
        check_range("loose", self.loose, 1.0)?;
        check_range("tight", self.tight, self.loose)?;
        if self.memory_least == 0 {
            return Err(Refused::new("memory_least", "is nothing"));
        }
        if self.memory_least > self.memory_most {
            return Err(Refused::new("memory_least", "is more than memory_most"));
        }
        match self.others[..] {
            [] => Ok(()),
            _ => self.check_others(machine),
        }
    }

    /// Those that this policy sets.
    pub fn limits(&self) -> Vec<Limit> {
        let memory = (self.memory_steps > 0).then_some(Limit::Memory);
        let disk = (self.disk_steps > 0).then_some(Limit::Disk);
        memory.into_iter().chain(disk).collect()
    }

    fn sets(&self) -> Sets<'_> {
        Sets {
            least: &self.least,
            elastic: &self.elastic,
            batch: &self.batch,
        }
    }

    /// Of each resource, in the order of the wheel.
    fn steps(&self) -> [u32; WHEEL] {
        let elastic = u32::try_from(self.elastic.len()).unwrap_or(u32::MAX);
        [
            elastic,
            self.cache_steps,
            self.bandwidth_steps,
            self.frequency_steps,
            self.memory_steps,
            self.disk_steps,
            self.network_steps,
        ]
    }
}

/// Places on the wheel.
const WHEEL: usize = 7;
const CORES: usize = 0;
const CACHE: usize = 1;
const BANDWIDTH: usize = 2;
const FREQUENCY: usize = 3;
const MEMORY: usize = 4;
const DISK: usize = 5;
const NETWORK: usize = 6;

/// A step whose outcome is not known yet.
#[derive(Clone, Copy, Debug)]
enum Trial {
    /// Of this resource, with the slack before it.
    More(usize, f64),
    Less(usize),
}

/// What the service has, and what was tried.
#[derive(Debug)]
pub struct Parties {
    params: Params,
    jobs: Vec<Job>,
    places: Places,
    silence: Silence,
    /// Steps of each resource that the service has.
    given: [u32; WHEEL],
    /// Where the wheel stands for a step more, and for a step less.
    more: usize,
    less: usize,
    trial: Option<Trial>,
    /// Resources with a step that did not help.
    useless: Vec<usize>,
    rests_until: Nanos,
    decided: Nanos,
    /// Of slack since then.
    readings: Readings,
}

impl Parties {
    /// The service starts with all it may have.
    ///
    /// # Errors
    /// As [`Params::check`].
    pub fn new(params: Params, machine: &Cores, jobs: &[Job]) -> Result<Self, Refused> {
        params.check(machine, jobs)?;
        let most = params.batch.len() + params.elastic.len();
        Ok(Self {
            jobs: jobs.iter().map(|job| wide(job, most)).collect(),
            given: params.steps(),
            params,
            places: Places::default(),
            silence: Silence::default(),
            more: CORES,
            less: CORES,
            trial: None,
            useless: Vec::new(),
            rests_until: Nanos::default(),
            decided: Nanos::default(),
            readings: Readings::default(),
        })
    }

    /// See [`Params::target`].
    pub(super) fn target(&self) -> Duration {
        self.params.target
    }

    pub(super) fn plan(&mut self, seen: &Seen) -> CorePlan {
        let reason = self.control(seen);
        let cores = usize::try_from(self.given[CORES]).unwrap_or(usize::MAX);
        let sets = self.params.sets();
        let mut divided = sets.divide(cores, &mut self.places, &self.jobs, seen);
        let limits = self.limits();
        divided.jobs.iter_mut().for_each(|job| job.limits = limits);
        CorePlan {
            service: divided.service,
            others: Vec::new(),
            speed: match self.params.frequency_steps {
                0 => seen.pressed.then_some(1.0),
                steps => Some(f64::from(self.given[FREQUENCY]) / f64::from(steps)),
            },
            jobs: divided.jobs,
            ceilings: self.ceilings(),
            reason: if divided.no_jobs {
                Reason::NoJobs
            } else {
                reason
            },
        }
    }

    /// What is left of network, cache and bandwidth of memory for all jobs together.
    fn ceilings(&self) -> Ceilings {
        let steps = u64::from(self.params.network_steps);
        let left = |link: u64| {
            let given = link / steps * u64::from(self.given[NETWORK]);
            (link - given).max(least(link))
        };
        let of = |bounds: Option<Bounds>, steps: u32, resource: usize| {
            let bounds = bounds.filter(|_| steps > 0)?;
            Some(bounds.left(self.given[resource], steps))
        };
        let params = &self.params;
        Ceilings {
            egress: params.link.filter(|_| steps > 0).map(left),
            ways: of(params.ways, params.cache_steps, CACHE),
            bandwidth: of(params.bandwidth, params.bandwidth_steps, BANDWIDTH),
            speed: None,
        }
    }

    /// What is left of memory and disk for each job.
    fn limits(&self) -> Limits {
        let params = &self.params;
        let memory = |steps: u64| {
            let each = (params.memory_most - params.memory_least) / steps;
            match u64::from(self.given[MEMORY]) {
                all if all == steps => params.memory_least,
                given => params.memory_most - each * given,
            }
        };
        let disk = |steps: u32| (100 - 100 * self.given[DISK] / steps).max(1);
        let steps = |steps: u32| Some(steps).filter(|steps| *steps > 0);
        Limits {
            memory: steps(params.memory_steps).map(|steps| memory(steps.into())),
            disk: steps(params.disk_steps).map(disk),
        }
    }

    fn control(&mut self, seen: &Seen) -> Reason {
        let now = seen.now;
        let target = self.params.target.as_secs_f64();
        let slack = seen.latency();
        let slack = slack.map(|latency| 1.0 - latency.as_secs_f64() / target);
        let heard = self
            .silence
            .hear(now, slack.is_some(), self.params.patience);
        let slack = match (heard, slack) {
            (Heard::NothingForLong, _) => return self.give_all(now, Reason::Safe),
            _ if seen.pressed => return self.give_all(now, Reason::Refused),
            (_, None) => return Reason::Held,
            (_, Some(slack)) => slack,
        };
        self.readings.add(slack);
        if now.since(self.decided) < self.params.settle {
            return Reason::Same;
        }
        self.decided = now;
        match self.readings.take() {
            Some((last, mean)) => self.decide(now, last, mean),
            None => Reason::Same,
        }
    }

    fn decide(&mut self, now: Nanos, last: f64, mean: f64) -> Reason {
        let tight = last.max(mean) < self.params.tight;
        let loose = last.min(mean) > self.params.loose;
        match self.trial.take() {
            Some(Trial::More(resource, before)) if tight && mean <= before => {
                self.useless.push(resource);
                self.more = next(resource);
            }
            Some(Trial::Less(resource)) if tight => {
                self.given[resource] += 1;
                self.less = next(resource);
                self.rests_until = now.after(self.params.rest);
                return Reason::Reverted;
            }
            _ => {}
        }
        if tight {
            return self.step_more(mean);
        }
        while let Some(resource) = self.useless.pop() {
            if self.given[resource] > 0 {
                self.step_less(resource);
                return Reason::Reverted;
            }
        }
        let from = self.less;
        let left = turn(from).find(|resource| self.given[*resource] > 0);
        match left.filter(|_| loose && now >= self.rests_until) {
            Some(resource) => {
                self.less = resource;
                self.step_less(resource);
                Reason::Loose
            }
            None => Reason::Same,
        }
    }

    fn step_more(&mut self, slack: f64) -> Reason {
        let steps = self.params.steps();
        let free = |resource: &usize| self.given[*resource] < steps[*resource];
        let Some(resource) = turn(self.more).find(free) else {
            return Reason::Same;
        };
        self.more = resource;
        self.given[resource] += 1;
        self.trial = Some(Trial::More(resource, slack));
        Reason::Tight
    }

    fn step_less(&mut self, resource: usize) {
        self.given[resource] -= 1;
        self.trial = Some(Trial::Less(resource));
    }

    fn give_all(&mut self, now: Nanos, reason: Reason) -> Reason {
        self.given = self.params.steps();
        self.trial = None;
        self.useless.clear();
        (self.decided, self.readings) = (now, Readings::default());
        reason
    }
}

fn next(resource: usize) -> usize {
    (resource + 1) % WHEEL
}

/// The wheel once around.
fn turn(from: usize) -> impl Iterator<Item = usize> {
    (0..WHEEL).map(move |place| (from + place) % WHEEL)
}

#[cfg(test)]
mod tests;
