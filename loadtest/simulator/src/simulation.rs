// SPDX-License-Identifier: Apache-2.0
//! The loop: one event after the other.

mod fleet;
mod held;
mod knowledge;
mod place;
mod request;
mod second;

use std::rc::Rc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use weir_executor::Spent;
use weir_fleet::ledger::News;
use weir_policy::Load;

use crate::agenda::Agenda;
use crate::caller::Caller;
use crate::control::{Control, PollAnswer};
use crate::deal::Deal;
use crate::ended::{Ended, Sample};
use crate::host::Host;
use crate::levels::Levels;
use crate::pending::AllPending;
use crate::scenario::{HostFault, Impossible, Placement, Scenario};
use crate::stock::Pace;
use crate::workload::{Job, Key};

/// Requests are named by their place among all that came, their connections by their number. There
/// are many at a time, so what is rare and large is boxed.
enum Event {
    /// The workload's next request.
    Arrive,
    /// A request that follows another, from the same caller.
    Follow(u32, Box<Job>),
    /// An attempt of a request.
    Attempt(u32),
    /// A request has come to where it is placed, if not by its caller.
    Place(u32),
    /// A request reaches a host.
    Reach(u32, u32),
    /// The host takes the connection.
    Accept(u32, u32),
    /// It does not; whether by silence.
    Unconnected(u32, u32, bool),
    /// The host gives it back.
    GivenBack(u32, u32, Box<Load>),
    /// The host refuses it, gives credits and says what it has to do.
    Refused(u32, u32, Box<(u32, Load)>),
    /// The host is gone while it had the request.
    Reset(u32, u32),
    /// A joblet ends at a host.
    Wake(usize),
    /// An answer reaches its caller.
    Answer(u32, u32, Box<Answer>),
    /// The first host takes long.
    TrySecond(u32, u32),
    ReachSecond(u32, u32),
    /// An answer of the second host.
    AnswerSecond(u32, u32, Box<Answer>),
    /// The host has had the request in its queue for too long.
    QueueTimeout(u32, u32),
    /// The caller has waited too long for the answer.
    ReadTimeout(u32, u32),
    /// A request's patience ends.
    Deadline(u32),
    /// A caller looks at those that wait there.
    Look(usize),
    /// A poll reaches a host.
    Poll(usize),
    /// The host's answer reaches weir-control.
    Polled(u32, Option<Box<PollAnswer>>),
    /// A caller sends a report.
    Report(usize),
    /// It reaches weir-control.
    Reported(u32, Box<News>),
    Publish,
    /// A host will be taken away.
    Notice(usize),
    /// It is.
    Preempt(usize),
    InjectFault(Box<(usize, HostFault)>),
}

/// What a host answers.
struct Answer {
    spent: Spent,
    load: Option<Load>,
    credits: Option<u32>,
}

/// What is told of hosts that were polled goes here.
type Watch<'a> = &'a mut dyn FnMut(Sample);

/// Plays the requests and tells of each that ends. The same scenario and requests tell the same, to
/// the last nanosecond, and gives how the levels moved. Only requests that have not ended are held.
///
/// # Errors
/// The scenario cannot be.
pub fn simulate(
    scenario: &Scenario,
    keys: &[Key],
    jobs: impl IntoIterator<Item = Job>,
    tell: impl FnMut(Ended),
) -> Result<Levels, Impossible> {
    simulate_watched(scenario, keys, jobs, tell, &mut |_| {})
}

/// [`simulate`], and tells of each host that is polled.
///
/// # Errors
/// The scenario cannot be.
pub fn simulate_watched(
    scenario: &Scenario,
    keys: &[Key],
    jobs: impl IntoIterator<Item = Job>,
    tell: impl FnMut(Ended),
    watch: &mut dyn FnMut(Sample),
) -> Result<Levels, Impossible> {
    scenario.check()?;
    let mut simulation = Simulation::new(scenario, keys, jobs.into_iter(), tell, watch);
    simulation.start();
    while simulation.pending_or_arriving() {
        let Some((now, event)) = simulation.agenda.next() else {
            break;
        };
        simulation.happen(now, event);
    }
    Ok(simulation.control.levels)
}

struct Simulation<'a, J, F> {
    scenario: &'a Scenario,
    keys: &'a [Key],
    jobs: J,
    tell: F,
    watch: Watch<'a>,
    agenda: Agenda<Event>,
    rng: SmallRng,
    hosts: Vec<Host>,
    callers: Vec<Caller>,
    control: Control,
    deal: Deal,
    /// The workload's next request.
    next: Option<Job>,
    /// How many have come.
    came: u32,
    /// How many will come because another has ended.
    following: usize,
    pending: AllPending,
    /// What waits in one place.
    queue: place::Queue,
    /// Lives of hosts so far, which name their caches.
    lives: u64,
}

impl<'a, J: Iterator<Item = Job>, F: FnMut(Ended)> Simulation<'a, J, F> {
    fn new(
        scenario: &'a Scenario,
        keys: &'a [Key],
        mut jobs: J,
        tell: F,
        watch: Watch<'a>,
    ) -> Self {
        let control = Control::new(scenario);
        let mut rng = SmallRng::seed_from_u64(scenario.seed);
        let names = control.names();
        let paces = Pace::of(scenario.hosts);
        let caller = |number| {
            let caller = Caller::new(Rc::clone(&names), rng.random());
            let caller = caller.in_scenario(number, scenario);
            match scenario.placement {
                Placement::Stock(balancer) => {
                    caller.stock(balancer, (number, scenario), Rc::clone(&paces))
                }
                _ => caller,
            }
        };
        let lives = scenario.hosts as u64;
        Self {
            callers: (0..scenario.callers).map(caller).collect(),
            hosts: (1..=lives).map(|life| Host::new(scenario, life)).collect(),
            scenario,
            keys,
            next: jobs.next(),
            jobs,
            tell,
            watch,
            agenda: Agenda::new(),
            rng,
            control,
            deal: Deal::new(scenario),
            came: 0,
            following: 0,
            pending: AllPending::default(),
            queue: place::Queue::default(),
            lives,
        }
    }

    /// Polls, tables and reports run before the first request, as in a mesh that has been up.
    fn start(&mut self) {
        if self.scenario.placement == Placement::Callers {
            self.start_control();
        }
        self.plan_troubles();
        self.note_arrival();
    }

    fn pending_or_arriving(&self) -> bool {
        self.next.is_some() || self.following > 0 || !self.pending.is_empty()
    }

    fn note_arrival(&mut self) {
        if let Some(job) = &self.next {
            self.agenda.note(job.at, Event::Arrive);
        }
    }

    fn happen(&mut self, now: Duration, event: Event) {
        match event {
            Event::Arrive => {
                if let Some(job) = std::mem::replace(&mut self.next, self.jobs.next()) {
                    self.note_arrival();
                    let caller = self.deal.caller(job.sender, self.came);
                    self.arrive(job, caller, now);
                }
            }
            Event::Follow(caller, job) => {
                self.following -= 1;
                self.arrive(*job, caller as usize, now);
            }
            Event::Attempt(request) => self.attempt(request, now),
            Event::Place(request) => self.place(request, now),
            Event::Reach(request, connection) => self.reach(request, connection, now),
            Event::Accept(request, connection) => self.accept(request, connection, now),
            Event::Unconnected(request, connection, silent) => {
                self.unconnected(request, connection, silent, now);
            }
            Event::GivenBack(request, connection, load) => {
                self.given_back(request, connection, *load, now);
            }
            Event::Refused(request, connection, told) => {
                self.refused(request, connection, *told, now);
            }
            Event::Reset(request, connection) => self.reset(request, connection, now),
            Event::Wake(host) => self.wake(host, now),
            Event::Answer(request, connection, answer) => {
                self.answer(request, connection, *answer, now);
            }
            Event::TrySecond(request, connection) => self.try_second(request, connection, now),
            Event::ReachSecond(request, connection) => self.reach_second(request, connection, now),
            Event::AnswerSecond(request, connection, answer) => {
                self.answer_second(request, connection, *answer, now);
            }
            Event::QueueTimeout(request, connection) => {
                self.queue_timeout(request, connection, now);
            }
            Event::ReadTimeout(request, connection) => self.read_timeout(request, connection, now),
            Event::Deadline(request) => self.give_up(request, now),
            Event::Look(caller) => self.look(caller, now),
            Event::Poll(host) => self.poll(host, now),
            Event::Polled(host, answer) => self.polled(host as usize, answer, now),
            Event::Report(caller) => self.report(caller, now),
            Event::Reported(caller, news) => self.control.report(caller as usize, *news, now),
            Event::Publish => self.publish(now),
            Event::Notice(host) => self.notice(host),
            Event::Preempt(host) => self.preempt(host, now),
            Event::InjectFault(what) => self.inject_fault(what.0, what.1, now),
        }
    }
}
