// SPDX-License-Identifier: Apache-2.0
//! The machine in modelled time: what happens next, until the run ends.

use std::collections::VecDeque;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use weir_governor::frequency::{Khz, Policy};

use super::chip::Chip;
use super::clairvoyant::Clairvoyant;
use super::clients::Clients;
use super::core::{Core, NEVER, Work};
use super::governing::Governing;
use super::tally::{Energy, Outcome};
use super::{Agent, Allowed, Load, Params};
use crate::draws::exponential;

/// The parts of a shard: before the hot function, in it, and on the way out.
const PHASES: usize = 3;
const HOT_PHASE: usize = 1;

/// Who sets frequencies.
#[derive(Clone, Debug, PartialEq)]
pub enum Governor {
    /// A policy of the governor, called so often where it does not choose that itself.
    Policy(Policy, Duration),
    /// Nobody: every core stays at it.
    Fixed(Khz),
    /// Somebody who knows what each query will need.
    Clairvoyant(Clairvoyant),
}

/// A run.
#[derive(Debug)]
pub struct Run {
    /// The model's numbers.
    pub params: Params,
    /// Who asks.
    pub load: Load,
    /// Who sets frequencies.
    pub governor: Governor,
    /// What that costs.
    pub agent: Agent,
    /// Idle states that may be used.
    pub allowed: Allowed,
    /// Of the queries.
    pub seed: u64,
    /// Ends then.
    pub lasts: Duration,
    /// Or after so many answers.
    pub answers: usize,
}

#[derive(Debug)]
struct Query {
    client: usize,
    /// The number of its hot function, too.
    class: usize,
    asked: u64,
    shards: Vec<f64>,
    left: usize,
}

#[derive(Debug)]
enum Event {
    Core(usize),
    Client(usize),
    Tick,
}

struct Machine {
    params: Params,
    agent: Agent,
    /// Of the agent's events.
    pauses: SmallRng,
    chip: Chip,
    now: u64,
    cores: Vec<Core>,
    /// Idle cores; the one that has been idle longest is first, as with Java's waiting threads.
    free: VecDeque<usize>,
    clients: Clients,
    queries: Vec<Query>,
    /// Shards that wait for a thread: the query's number and the shard's.
    waiting: VecDeque<(usize, usize)>,
    /// Work of the service's other threads that no core does now, in nanoseconds at the highest frequency. They are
    /// not pinned: they go where no search thread works, and never delay one.
    aside_ns: f64,
    /// While a core is not in C6.
    awake_ns: u64,
    governing: Option<Governing>,
    clairvoyant: Option<Clairvoyant>,
    outcome: Outcome,
}

/// Plays a run. The same run gives the same outcome.
#[must_use]
pub fn run(run: Run) -> Outcome {
    let lasts = u64::try_from(run.lasts.as_nanos()).unwrap_or(NEVER);
    let answers = run.answers;
    let mut machine = Machine::new(run);
    while machine.outcome.latencies.len() < answers {
        let (at, event) = machine.next();
        machine.pass(at.min(lasts));
        if at >= lasts {
            break;
        }
        match event {
            Event::Core(core) => machine.core(core),
            Event::Client(client) => machine.ask(client),
            Event::Tick => machine.tick(),
        }
    }
    machine.end()
}

impl Machine {
    fn new(run: Run) -> Self {
        let chip = Chip::new(&run.params);
        let core = || Core::new(chip.steps.len(), run.allowed);
        let number = run.params.cores as usize;
        let mut cores: Vec<Core> = (0..number).map(|_| core()).collect();
        let governing = match run.governor.clone() {
            Governor::Policy(policy, period) => {
                let has_classes = !run.load.classes.is_empty();
                let power = has_classes.then(|| run.params.power());
                Some(Governing::new(&chip, power, number, policy, period))
            }
            Governor::Fixed(khz) => {
                let step = chip.step(khz);
                cores.iter_mut().for_each(|core| core.step = step);
                None
            }
            Governor::Clairvoyant(_) => None,
        };
        let clairvoyant = match run.governor {
            Governor::Clairvoyant(clairvoyant) => Some(clairvoyant),
            _ => None,
        };
        Self {
            clients: Clients::new(run.load, &run.params, run.seed),
            params: run.params,
            agent: run.agent,
            pauses: SmallRng::seed_from_u64(run.seed),
            chip,
            now: 0,
            cores,
            free: (0..number).collect(),
            queries: Vec::new(),
            waiting: VecDeque::new(),
            aside_ns: 0.0,
            awake_ns: 0,
            governing,
            clairvoyant,
            outcome: Outcome::default(),
        }
    }

    /// Of events of one instant, cores come first, then clients, then the tick.
    fn next(&self) -> (u64, Event) {
        let tick = self.governing.as_ref().map_or(NEVER, |one| one.due);
        let (mut at, mut event) = (tick, Event::Tick);
        let (due, client) = self.clients.next();
        if due <= at {
            (at, event) = (due, Event::Client(client));
        }
        for (number, core) in self.cores.iter().enumerate().rev() {
            let due = core.next(&self.chip);
            if due <= at {
                (at, event) = (due, Event::Core(number));
            }
        }
        (at, event)
    }

    /// Time goes on; until then nothing changes.
    fn pass(&mut self, to: u64) {
        if self.cores.iter().any(Core::is_awake) {
            self.awake_ns += to - self.now;
        }
        self.now = to;
    }

    fn ask(&mut self, client: usize) {
        let query = self.queries.len();
        let (class, shards) = self.clients.ask(client, self.now);
        self.outcome.asked_s += shards.iter().sum::<f64>() * 1e-9;
        self.waiting
            .extend((0..shards.len()).map(|shard| (query, shard)));
        self.queries.push(Query {
            client,
            class,
            asked: self.now,
            left: shards.len(),
            shards,
        });
        while !self.waiting.is_empty()
            && let Some(core) = self.free.pop_front()
        {
            self.cores[core].advance(&self.chip, self.now);
            self.aside_ns += self.cores[core].interrupt();
            self.take(core);
        }
        self.resume_aside();
    }

    /// A core whose search thread has nothing to do takes the shard that has waited longest.
    fn take(&mut self, number: usize) {
        let core = &mut self.cores[number];
        match self.waiting.pop_front() {
            Some((query, shard)) => {
                let asked = &self.queries[query];
                if let Some(clairvoyant) = &self.clairvoyant {
                    let own = phase_share(&self.params, 0) + self.params.hot_share;
                    let passed = self.now - asked.asked;
                    core.set(clairvoyant.step(&self.chip, asked.shards[shard] * own, passed));
                }
                let work_ns = asked.shards[shard] * phase_share(&self.params, 0);
                core.class = asked.class;
                core.begin(Work::Shard(query, shard, 0), work_ns, self.now);
            }
            None => {
                self.free.push_back(number);
                self.rest(number);
            }
        }
    }

    /// A core whose search thread waits does what there is to do for others.
    fn rest(&mut self, number: usize) {
        let core = &mut self.cores[number];
        if self.aside_ns > 0.0 {
            if let Some(clairvoyant) = &self.clairvoyant {
                core.set(self.chip.step(clairvoyant.aside));
            }
            core.begin(Work::Aside, std::mem::take(&mut self.aside_ns), self.now);
        } else {
            core.fall_idle(self.now);
        }
    }

    /// Work that has been interrupted goes to an idle core.
    fn resume_aside(&mut self) {
        let idle = |number: &&usize| self.cores[**number].work.is_none();
        if self.aside_ns > 0.0
            && let Some(number) = self.free.iter().rfind(idle).copied()
        {
            self.cores[number].advance(&self.chip, self.now);
            self.rest(number);
        }
    }

    /// A core has come to an end: of a phase, or of its patience in a shallow idle state.
    fn core(&mut self, number: usize) {
        let core = &mut self.cores[number];
        core.advance(&self.chip, self.now);
        match core.work {
            None => core.fall_deeper(),
            Some(Work::Tick) => self.take(number),
            Some(Work::Aside) => self.rest(number),
            Some(Work::Shard(query, shard, phase)) if phase + 1 == PHASES => {
                let aside = self.params.aside_share();
                self.aside_ns += self.queries[query].shards[shard] * aside;
                self.end_shard(query);
                self.take(number);
            }
            Some(Work::Shard(query, shard, phase)) => {
                self.pass_hot(number, phase);
                let share = phase_share(&self.params, phase + 1);
                let work_ns = self.queries[query].shards[shard] * share;
                let wait_ns = exponential(self.agent.event_ns, &mut self.pauses);
                let work = Work::Shard(query, shard, phase + 1);
                self.cores[number].go_on(work, work_ns, wait_ns);
            }
        }
    }

    /// Entry and return of the hot function.
    fn pass_hot(&mut self, number: usize, ended: usize) {
        let core = &mut self.cores[number];
        if ended + 1 == HOT_PHASE {
            core.hot = Some(self.now);
        } else if let Some(since) = core.hot.take()
            && let Some(governing) = &mut self.governing
        {
            governing.finished(core.class, number, since, self.now);
        }
    }

    fn end_shard(&mut self, number: usize) {
        let query = &mut self.queries[number];
        query.left -= 1;
        if query.left > 0 {
            return;
        }
        let latency = self.now - query.asked;
        self.outcome.latencies.push(latency as f64 * 1e-9);
        self.clients.answered(query.client, self.now);
        if let Some(governing) = &mut self.governing {
            governing.answered(self.now, query.asked);
        }
    }

    fn tick(&mut self) {
        for core in &mut self.cores {
            core.advance(&self.chip, self.now);
        }
        let joules = self.energy().joules();
        let Some(governing) = &mut self.governing else {
            return;
        };
        let queries = &self.queries;
        let waiting = self.waiting.iter().map(|(query, _)| queries[*query].asked);
        governing.tick(&self.chip, &mut self.cores, waiting, joules, self.now);
        self.outcome.ticks += 1;
        if self.agent.tick_ns > 0.0 {
            self.work_tick();
        }
    }

    /// The governor's own work: on the core that was idle last, or else between the work of one that is not.
    fn work_tick(&mut self) {
        let core = match self.free.pop_back() {
            Some(number) => {
                self.aside_ns += self.cores[number].interrupt();
                self.cores[number].begin(Work::Tick, 0.0, self.now);
                number
            }
            None => self.outcome.ticks as usize % self.cores.len(),
        };
        // The governor's own timer is on the core that it ran on.
        self.cores[core].timer = self.governing.as_ref().map_or(NEVER, |one| one.due);
        self.cores[core].stall(self.agent.tick_ns);
    }

    /// So far, of cores whose accounts are up to now.
    fn energy(&self) -> Energy {
        let sum = |of: fn(&Core) -> f64| self.cores.iter().map(of).sum();
        Energy {
            package_j: self.chip.package_w * self.now as f64 * 1e-9,
            uncore_j: self.chip.uncore_w * self.awake_ns as f64 * 1e-9,
            active_j: sum(|core| core.accounts.active_j),
            idle_j: sum(|core| core.accounts.idle_j),
        }
    }

    /// Work that has been asked for and is not done.
    fn left_ns(&self) -> f64 {
        let whole = |(query, shard): &(usize, usize)| self.queries[*query].shards[*shard];
        let begun = |core: &Core| {
            let to_come = match core.work {
                Some(Work::Shard(query, shard, phase)) => {
                    let phases = (phase + 1..PHASES).map(|phase| phase_share(&self.params, phase));
                    let share = phases.sum::<f64>() + self.params.aside_share();
                    self.queries[query].shards[shard] * share
                }
                _ => 0.0,
            };
            core.left_ns() + to_come
        };
        let waiting: f64 = self.waiting.iter().map(whole).sum();
        waiting + self.cores.iter().map(begun).sum::<f64>() + self.aside_ns
    }

    fn end(mut self) -> Outcome {
        for core in &mut self.cores {
            core.advance(&self.chip, self.now);
        }
        self.outcome.left_s = self.left_ns() * 1e-9;
        self.outcome.seconds = self.now as f64 * 1e-9;
        self.outcome.energy = self.energy();
        self.outcome.attributed = self.governing.as_ref().and_then(Governing::attributed);
        self.outcome.account(&self.chip, &self.cores);
        self.outcome
    }
}

/// Of a shard's work, that of its search thread.
fn phase_share(params: &Params, phase: usize) -> f64 {
    [params.before_share, params.hot_share, 0.0][phase]
}
