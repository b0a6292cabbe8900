// SPDX-License-Identifier: Apache-2.0
//! What happens to a request, from its coming to its end.

use std::time::Duration;

use rand::RngExt;
use weir_policy::Load;
use weir_replay::record::Outcome;

use super::{Answer, Event, Simulation};
use crate::Scenario;
use crate::caller::Choice;
use crate::ended::Ended;
use crate::joblets;
use crate::machine::{News, Task};
use crate::pending::{Pending, Place};
use crate::prompt;
use crate::workload::{Job, Key, Work};

/// Lanes of the agenda.
const DEADLINES: usize = 0;
const QUEUES: usize = 1;
const READS: usize = 2;
/// Between any two.
pub(super) const NETWORK: usize = 3;

impl<J: Iterator<Item = Job>, F: FnMut(Ended)> Simulation<'_, J, F> {
    pub(super) fn arrive(&mut self, job: Job, caller: usize, now: Duration) {
        let request = self.came;
        self.came += 1;
        let ended = Ended::new(request, now, job.class, caller);
        self.pending.insert(request, Pending::new(job, ended));
        let deadline = now + self.scenario.timeouts.deadline;
        self.agenda
            .note_in_turn(DEADLINES, deadline, Event::Deadline(request));
        self.attempt(request, now);
    }

    pub(super) fn attempt(&mut self, request: u32, now: Duration) {
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        pending.ended.attempts += 1;
        pending.began = now;
        if self.bounds(request, now) {
            return;
        }
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        let ended = &mut pending.ended;
        let job = &pending.job;
        let key = job.key.and_then(|key| self.keys.get(key as usize));
        let caller = &mut self.callers[ended.caller];
        let asked = caller.request(job, key.map(|key| key.keys.clone()).unwrap_or_default());
        let choice = caller.choose(request, &asked, now);
        pending.asked = Some(asked);
        self.follow(request, choice, now);
    }

    /// Does as the caller has decided.
    pub(super) fn follow(&mut self, request: u32, choice: Choice, now: Duration) {
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        let ended = &mut pending.ended;
        match choice {
            Choice::Hold(ticket) => self.hold(request, ticket, now),
            Choice::Send(sent) => {
                ended.reason = Some(sent.reason);
                pending.hedge = sent.hedge;
                pending.ranked = sent.hosts;
                pending.bounds = sent.bounds;
                pending.tried = 0;
                self.connect(request, now);
            }
            Choice::Shed(after) => {
                ended.shed_attempts += 1;
                ended.outcome = Outcome::Shed;
                self.back_off(request, Some(after), now);
            }
        }
    }

    /// To the first host that was not tried yet.
    fn connect(&mut self, request: u32, now: Duration) {
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        let Some(host) = pending.ranked.get(pending.tried).copied() else {
            pending.ended.outcome = Outcome::Failed;
            self.back_off(request, None, now);
            return;
        };
        let asked = pending.asked.as_ref();
        let sent = |asked| self.callers[pending.ended.caller].sent(host, asked, now);
        let demand = asked.and_then(sent);
        pending.ended.host = Some(host);
        pending.connection += 1;
        pending.at = Some(Place {
            host,
            sent: now,
            demand,
            job: None,
            started: false,
        });
        let reach = Event::Reach(request, pending.connection);
        let arrives = now + self.scenario.way(pending.ended.caller, host);
        self.agenda.note_in_turn(NETWORK, arrives, reach);
        if let Some(after) = pending.hedge.filter(|_| pending.tried == 0) {
            let second = Event::TrySecond(request, pending.connection);
            self.agenda.note(now + after, second);
        }
    }

    pub(super) fn reach(&mut self, request: u32, connection: u32, now: Duration) {
        let Some(pending) = self.pending.get(&request) else {
            return;
        };
        let Some(Place { host, .. }) = pending.at(connection) else {
            return;
        };
        if !self.hosts[host].up {
            let refused = Event::Unconnected(request, connection, false);
            let way = self.scenario.way(pending.ended.caller, host);
            self.agenda.note(now + way, refused);
            return;
        }
        let delay = self.hosts[host].accepts_after(now);
        let doubled = 1 << pending.tried.min(16);
        let patience = self.scenario.timeouts.connect.map(|t| t * doubled);
        if let Some(patience) = patience.filter(|patience| delay > *patience) {
            let silence = Event::Unconnected(request, connection, true);
            self.agenda.note(now + patience, silence);
        } else if delay.is_zero() {
            self.accept(request, connection, now);
        } else {
            let accept = Event::Accept(request, connection);
            self.agenda.note(now + delay, accept);
        }
    }

    pub(super) fn accept(&mut self, request: u32, connection: u32, now: Duration) {
        let Some(pending) = self.pending.get_mut(&request) else {
            // Its caller has gone.
            return;
        };
        let Some(Place { host, demand, .. }) = pending.at(connection) else {
            return;
        };
        if !self.hosts[host].up {
            self.unconnected(request, connection, false, now);
            return;
        }
        if let Some(bound) = pending.bounds.get(pending.tried)
            && let Some(load) = self.hosts[host].gives_back(*bound, now)
        {
            let back = Event::GivenBack(request, connection, Box::new(load));
            let arrives = now + self.scenario.way(pending.ended.caller, host);
            self.agenda.note_in_turn(NETWORK, arrives, back);
            return;
        }
        if let Some(demand) = demand
            && let Some(load) = self.hosts[host].refuses(now)
        {
            let credits = self.hosts[host].grant(pending.ended.caller, demand, now);
            let refused = Event::Refused(request, connection, Box::new((credits, load)));
            let arrives = now + self.scenario.way(pending.ended.caller, host);
            self.agenda.note_in_turn(NETWORK, arrives, refused);
            return;
        }
        let task = task(self.scenario, self.keys, &pending.job);
        let Ok(job) = self.hosts[host].submit(now, request, task) else {
            self.failed(request, now);
            return;
        };
        if let Some(place) = &mut pending.at {
            place.job = Some((job, now));
        }
        let timeouts = &self.scenario.timeouts;
        if let Some(queue) = timeouts.queue {
            let timeout = Event::QueueTimeout(request, connection);
            self.agenda.note_in_turn(QUEUES, now + queue, timeout);
        }
        if let Some(read) = timeouts.read {
            let timeout = Event::ReadTimeout(request, connection);
            self.agenda.note_in_turn(READS, now + read, timeout);
        }
        self.wake(host, now);
    }

    pub(super) fn unconnected(
        &mut self,
        request: u32,
        connection: u32,
        silent: bool,
        now: Duration,
    ) {
        let Some((pending, place)) = self.pending.leave(request, connection) else {
            return;
        };
        pending.ended.unconnected += 1;
        pending.ended.connect_timeouts += u32::from(silent);
        self.callers[pending.ended.caller].failed(place, now);
        self.try_next(request, now);
    }

    /// The host gave it back.
    pub(super) fn given_back(&mut self, request: u32, connection: u32, load: Load, now: Duration) {
        let Some((pending, place)) = self.pending.leave(request, connection) else {
            return;
        };
        pending.ended.bounces += 1;
        self.callers[pending.ended.caller].given_back(place, load, now);
        self.try_next(request, now);
    }

    /// The host refused it.
    pub(super) fn refused(
        &mut self,
        request: u32,
        connection: u32,
        (credits, load): (u32, Load),
        now: Duration,
    ) {
        let Some((pending, place)) = self.pending.leave(request, connection) else {
            return;
        };
        pending.ended.shed_attempts += 1;
        pending.ended.outcome = Outcome::Shed;
        let caller = &mut self.callers[pending.ended.caller];
        caller.credited(place.0, Some(credits), now);
        let after = caller.refused(place, load, now);
        self.back_off(request, Some(after), now);
    }

    fn try_next(&mut self, request: u32, now: Duration) {
        if let Some(pending) = self.pending.get_mut(&request) {
            pending.tried += 1;
        }
        self.drop_second(request, now);
        self.connect(request, now);
    }

    /// The host was taken away with the request.
    pub(super) fn reset(&mut self, request: u32, connection: u32, now: Duration) {
        let Some((pending, place)) = self.pending.leave(request, connection) else {
            return;
        };
        pending.ended.outcome = Outcome::Failed;
        self.callers[pending.ended.caller].failed(place, now);
        self.back_off(request, None, now);
    }

    pub(super) fn queue_timeout(&mut self, request: u32, connection: u32, now: Duration) {
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        let Some(place) = pending.at(connection) else {
            return;
        };
        let Some((job, _)) = place.job.filter(|_| !place.started) else {
            return;
        };
        pending.ended.queue_timeouts.push(place.host);
        self.hosts[place.host].cancel(now, job);
        self.failed(request, now);
        self.wake(place.host, now);
    }

    pub(super) fn read_timeout(&mut self, request: u32, connection: u32, now: Duration) {
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        let Some(place) = pending.at(connection) else {
            return;
        };
        pending.ended.read_timeouts += 1;
        pending.ended.outcome = Outcome::Timeout;
        pending.at = None;
        if let Some((job, _)) = place.job {
            self.hosts[place.host].cancel(now, job);
        }
        self.callers[pending.ended.caller].gave_up((place.host, place.sent), now);
        self.back_off(request, None, now);
        self.wake(place.host, now);
    }

    /// The host answers with an error: its queue is full, or was too slow.
    fn failed(&mut self, request: u32, now: Duration) {
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        pending.ended.outcome = Outcome::Failed;
        if let Some(place) = pending.at.take() {
            self.callers[pending.ended.caller].ended((place.host, place.sent), None, None, now);
        }
        self.back_off(request, None, now);
    }

    /// Until the next attempt, if there may be one.
    pub(super) fn back_off(&mut self, request: u32, retry_after: Option<Duration>, now: Duration) {
        self.drop_second(request, now);
        let Some(pending) = self.pending.get(&request) else {
            return;
        };
        let ended = &pending.ended;
        if retry_after.is_none() && ended.attempts - ended.shed_attempts >= self.scenario.attempts {
            if let Some(pending) = self.pending.remove(&request) {
                self.end(pending, now);
            }
            return;
        }
        let unit = self.rng.random();
        let backoff = &self.scenario.backoff;
        let delay = backoff.delay(ended.attempts - 1, retry_after, unit);
        self.agenda.note(now + delay, Event::Attempt(request));
    }

    pub(super) fn wake(&mut self, number: usize, now: Duration) {
        let host = &mut self.hosts[number];
        if !host.up {
            return;
        }
        let mut answers = Vec::new();
        let pending = &mut self.pending;
        host.advance(now, |request, news| match news {
            News::Started => {
                if let Some(Pending { at, ended, .. }) = pending.get_mut(&request)
                    && let Some(place) = at.as_mut().filter(|place| place.host == number)
                    && let Some((_, since)) = place.job
                {
                    place.started = true;
                    ended.first_wait = now.saturating_sub(since);
                }
            }
            News::Ended(spent, found) => {
                answers.extend(pending.get_mut(&request).map(|pending| {
                    pending.ended.found = found;
                    if !pending.at.is_some_and(|place| place.started) {
                        pending.ended.first_wait = spent.wait;
                    }
                    let second = pending.second.is_some_and(|second| second.host == number);
                    let demand = pending.at.filter(|_| !second).and_then(|at| at.demand);
                    let wants = demand.map(|demand| (pending.ended.caller, demand));
                    let way = self.scenario.way(pending.ended.caller, number);
                    (request, pending.connection, second, (way, spent, wants))
                }));
            }
        });
        for (request, connection, second, (way, spent, wants)) in answers {
            let arrives = now + way;
            let answer = Box::new(Answer {
                spent,
                load: self.scenario.orca.then(|| host.load(now)),
                credits: wants.map(|(caller, demand)| host.grant(caller, demand, now)),
            });
            let answer = match second {
                true => Event::AnswerSecond(request, connection, answer),
                false => Event::Answer(request, connection, answer),
            };
            self.agenda.note_in_turn(NETWORK, arrives, answer);
        }
        let due = host.next_due();
        if host.wake.is_some_and(|wake| wake <= now) {
            host.wake = None;
        }
        if let Some(due) = due.filter(|due| host.wake.is_none_or(|wake| *due < wake)) {
            host.wake = Some(due);
            self.agenda.note(due, Event::Wake(number));
        }
        self.feed(now);
    }

    pub(super) fn answer(&mut self, request: u32, connection: u32, answer: Answer, now: Duration) {
        let Answer {
            spent,
            load,
            credits,
        } = answer;
        let of = |pending: &Pending| pending.at(connection);
        let Some(Place { host, sent, .. }) = self.pending.get(&request).and_then(of) else {
            // Its caller did not wait for it.
            return;
        };
        self.drop_second(request, now);
        let Some(mut pending) = self.pending.remove(&request) else {
            return;
        };
        let key = pending.asked.as_ref().and_then(|asked| asked.keys.last());
        let cost = key.filter(|_| pending.job.work != Work::Prefetch);
        let cost = cost.map(|key| (key, &spent));
        let caller = &mut self.callers[pending.ended.caller];
        caller.credited(host, credits, now);
        caller.ended((host, sent), load, cost, now);
        pending.ended.spent = Some(spent);
        pending.ended.outcome = Outcome::Ok;
        self.end(pending, now);
    }

    pub(super) fn give_up(&mut self, request: u32, now: Duration) {
        self.drop_second(request, now);
        let Some(mut pending) = self.pending.remove(&request) else {
            return;
        };
        self.queue.remove(request);
        if let Some(ticket) = pending.held {
            pending.ended.outcome = Outcome::Timeout;
            self.callers[pending.ended.caller].left(ticket);
        }
        if let Some(place) = pending.at {
            pending.ended.outcome = Outcome::Timeout;
            if let Some((job, _)) = place.job {
                self.hosts[place.host].cancel(now, job);
            }
            self.callers[pending.ended.caller].gave_up((place.host, place.sent), now);
            self.wake(place.host, now);
        }
        self.end(pending, now);
    }

    pub(super) fn end(&mut self, mut pending: Pending, now: Duration) {
        let ended = &mut pending.ended;
        ended.duration = now.saturating_sub(ended.at);
        ended.attempt = now.saturating_sub(pending.began);
        if let Some(next) = pending.job.then.take() {
            self.following += 1;
            let after = next.at;
            let follow = Event::Follow(ended.caller as u32, next);
            self.agenda.note(now + after, follow);
        }
        (self.tell)(pending.ended);
    }
}

/// What a host is given to do.
pub(super) fn task(scenario: &Scenario, keys: &[Key], job: &Job) -> Task {
    match &scenario.language_model {
        Some(model) => Task::Prompt(prompt::of(job, keys, model)),
        None => Task::Joblets(joblets::of(job, keys, &scenario.timing)),
    }
}
