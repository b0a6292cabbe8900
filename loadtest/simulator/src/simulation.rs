// SPDX-License-Identifier: Apache-2.0
//! The loop: one event after the other.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use weir_executor::Spent;
use weir_policy::{Load, Reason};
use weir_replay::record::Outcome;

use crate::agenda::Agenda;
use crate::caller::{Caller, Choice};
use crate::control::{Control, Push};
use crate::host::Host;
use crate::scenario::Scenario;
use crate::workload::Workload;

/// One request and its end.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Place in the workload.
    pub index: usize,
    /// From the offset in the workload to the end of the last attempt, back-off included.
    pub duration: Duration,
    /// How it ended.
    pub outcome: Outcome,
    /// Attempts made.
    pub attempts: u32,
    /// Attempts refused by admission.
    pub shed_attempts: u32,
    /// Which caller sent it.
    pub caller: usize,
    /// Where the last attempt went.
    pub host: Option<usize>,
    /// Why there.
    pub reason: Option<Reason>,
    /// Where the host's time went, if it answered.
    pub spent: Option<Spent>,
}

enum Event {
    /// The workload's next request.
    Arrive,
    /// An attempt of a request.
    Attempt(u32),
    /// A request reaches a host.
    Reach(u32, usize),
    /// A joblet ends at a host.
    Wake(usize),
    /// An answer reaches its caller.
    Answer(u32, Box<(Spent, Option<Load>)>),
    /// A request's patience ends.
    Deadline(u32),
    Poll(usize),
    Report(usize),
    Publish,
    Push(usize, Rc<Push>),
}

/// A request that has not ended.
struct Pending {
    ended: Ended,
    /// Where it is; none while it backs off.
    at: Option<usize>,
}

/// Plays the workload and tells of every request that ends. The same scenario and workload tell
/// the same, to the last nanosecond.
pub fn simulate(scenario: &Scenario, workload: &Workload, tell: impl FnMut(Ended)) {
    let mut simulation = Simulation::new(scenario, workload, tell);
    simulation.start();
    while simulation.pending_or_arriving() {
        let Some((now, event)) = simulation.agenda.next() else {
            return;
        };
        simulation.happen(now, event);
    }
}

struct Simulation<'a, F> {
    scenario: &'a Scenario,
    workload: &'a Workload,
    tell: F,
    agenda: Agenda<Event>,
    rng: SmallRng,
    hosts: Vec<Host>,
    callers: Vec<Caller>,
    control: Control,
    /// The workload's next request.
    next: usize,
    pending: HashMap<u32, Pending>,
}

impl<'a, F: FnMut(Ended)> Simulation<'a, F> {
    fn new(scenario: &'a Scenario, workload: &'a Workload, tell: F) -> Self {
        let control = Control::new(scenario);
        let mut rng = SmallRng::seed_from_u64(scenario.seed);
        let caller = |_| Caller::new(control.names(), rng.random());
        Self {
            callers: (0..scenario.callers).map(caller).collect(),
            hosts: (0..scenario.hosts)
                .map(|host| Host::new(scenario, host as u64 + 1))
                .collect(),
            scenario,
            workload,
            tell,
            agenda: Agenda::new(),
            rng,
            control,
            next: 0,
            pending: HashMap::new(),
        }
    }

    /// Polls, tables and reports run before the first request, as in a mesh that has been up.
    fn start(&mut self) {
        for host in 0..self.hosts.len() {
            self.control
                .poll(host, &mut self.hosts[host], Duration::ZERO);
            let first = self.scenario.poll.mul_f64(self.rng.random());
            self.agenda.note(first, Event::Poll(host));
        }
        if let Some(push) = self.control.publish(Duration::ZERO) {
            for caller in &mut self.callers {
                caller.learn(&push, Duration::ZERO);
            }
        }
        self.agenda.note(self.scenario.publish, Event::Publish);
        for caller in 0..self.callers.len() {
            let first = self.scenario.report.mul_f64(self.rng.random());
            self.agenda.note(first, Event::Report(caller));
        }
        self.note_arrival();
    }

    fn pending_or_arriving(&self) -> bool {
        self.next < self.workload.len() || !self.pending.is_empty()
    }

    fn note_arrival(&mut self) {
        if let Some(job) = self.workload.jobs.get(self.next) {
            self.agenda.note(job.at, Event::Arrive);
        }
    }

    fn happen(&mut self, now: Duration, event: Event) {
        match event {
            Event::Arrive => self.arrive(now),
            Event::Attempt(request) => self.attempt(request, now),
            Event::Reach(request, host) => self.reach(request, host, now),
            Event::Wake(host) => self.wake(host, now),
            Event::Answer(request, answer) => self.answer(request, *answer, now),
            Event::Deadline(request) => self.give_up(request, now),
            Event::Poll(host) => {
                self.control.poll(host, &mut self.hosts[host], now);
                let jitter = self.rng.random_range(0.9..1.1);
                self.agenda
                    .note(now + self.scenario.poll.mul_f64(jitter), Event::Poll(host));
            }
            Event::Report(caller) => {
                let news = self.callers[caller].report(now);
                self.control.report(news, now);
                self.agenda
                    .note(now + self.scenario.report, Event::Report(caller));
            }
            Event::Publish => {
                if let Some(push) = self.control.publish(now).map(Rc::new) {
                    let arrives = now + self.scenario.network;
                    for caller in 0..self.callers.len() {
                        self.agenda
                            .note(arrives, Event::Push(caller, Rc::clone(&push)));
                    }
                }
                self.agenda
                    .note(now + self.scenario.publish, Event::Publish);
            }
            Event::Push(caller, push) => self.callers[caller].learn(&push, now),
        }
    }

    fn arrive(&mut self, now: Duration) {
        let request = self.next as u32;
        let caller = self.next % self.callers.len();
        self.next += 1;
        self.note_arrival();
        let ended = Ended {
            index: request as usize,
            duration: Duration::ZERO,
            outcome: Outcome::Failed,
            attempts: 0,
            shed_attempts: 0,
            caller,
            host: None,
            reason: None,
            spent: None,
        };
        self.pending.insert(request, Pending { ended, at: None });
        self.agenda
            .note(now + self.scenario.deadline, Event::Deadline(request));
        self.attempt(request, now);
    }

    fn attempt(&mut self, request: u32, now: Duration) {
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        let ended = &mut pending.ended;
        ended.attempts += 1;
        let job = &self.workload.jobs[request as usize];
        let key = job.key.map(|key| self.workload.keys[key as usize].hash);
        let caller = &mut self.callers[ended.caller];
        let asked = caller.request(job, key);
        let wait = match caller.choose(&asked, now) {
            Choice::Send(hosts, reason) => {
                let host = hosts[0];
                caller.sent(host, &asked, now);
                ended.host = Some(host);
                ended.reason = Some(reason);
                pending.at = Some(host);
                let reaches = now + self.scenario.network;
                self.agenda.note(reaches, Event::Reach(request, host));
                return;
            }
            Choice::Shed(after) => {
                ended.shed_attempts += 1;
                ended.outcome = Outcome::Shed;
                Some(after)
            }
            Choice::NoHost => {
                ended.outcome = Outcome::Failed;
                None
            }
        };
        self.back_off(request, wait, now);
    }

    fn back_off(&mut self, request: u32, retry_after: Option<Duration>, now: Duration) {
        let Some(pending) = self.pending.get(&request) else {
            return;
        };
        let retry = pending.ended.attempts - 1;
        let unit = self.rng.random();
        let delay = self.scenario.backoff.delay(retry, retry_after, unit);
        self.agenda.note(now + delay, Event::Attempt(request));
    }

    fn reach(&mut self, request: u32, host: usize, now: Duration) {
        if !self.pending.contains_key(&request) {
            // Its caller has gone.
            return;
        }
        let job = &self.workload.jobs[request as usize];
        let key = job
            .key
            .map(|key| self.workload.keys[key as usize].name.clone());
        let work = self.scenario.timing.job(key, job.bytes, job.class, job.run);
        if self.hosts[host].submit(now, request, work).is_err() {
            self.refused(request, host, now);
            return;
        }
        self.wake(host, now);
    }

    /// The host's queue is full: 503.
    fn refused(&mut self, request: u32, host: usize, now: Duration) {
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        pending.at = None;
        pending.ended.outcome = Outcome::Failed;
        self.callers[pending.ended.caller].ended(host, None, now);
        self.back_off(request, None, now);
    }

    fn wake(&mut self, number: usize, now: Duration) {
        let host = &mut self.hosts[number];
        let mut answers = Vec::new();
        host.advance(now, |request, spent| answers.push((request, spent)));
        let arrives = now + self.scenario.network;
        for (request, spent) in answers {
            let load = self.scenario.orca.then(|| host.load(now));
            let answer = Event::Answer(request, Box::new((spent, load)));
            self.agenda.note(arrives, answer);
        }
        let due = host.next_due();
        if host.wake.is_some_and(|wake| wake <= now) {
            host.wake = None;
        }
        if let Some(due) = due.filter(|due| host.wake.is_none_or(|wake| *due < wake)) {
            host.wake = Some(due);
            self.agenda.note(due, Event::Wake(number));
        }
    }

    fn answer(&mut self, request: u32, (spent, load): (Spent, Option<Load>), now: Duration) {
        let Some(mut pending) = self.pending.remove(&request) else {
            return;
        };
        if let Some(host) = pending.at {
            self.callers[pending.ended.caller].ended(host, load, now);
        }
        pending.ended.spent = Some(spent);
        pending.ended.outcome = Outcome::Ok;
        self.end(pending.ended, now);
    }

    fn give_up(&mut self, request: u32, now: Duration) {
        let Some(mut pending) = self.pending.remove(&request) else {
            return;
        };
        if let Some(host) = pending.at {
            pending.ended.outcome = Outcome::Timeout;
            self.hosts[host].cancel(now, request);
            self.callers[pending.ended.caller].gave_up(host);
            self.wake(host, now);
        }
        self.end(pending.ended, now);
    }

    fn end(&mut self, mut ended: Ended, now: Duration) {
        ended.duration = now.saturating_sub(self.workload.jobs[ended.index].at);
        (self.tell)(ended);
    }
}
