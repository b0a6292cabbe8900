// SPDX-License-Identifier: Apache-2.0
//! What weir-control hears and tells. All of it is on its way for the network's time.
//!
//! ```text
//!  host ── answer to a poll ──> weir-control ── tables ──> caller, which sees them at its next tick
//!                                    ^───────── report ──────┘
//! ```

use std::rc::Rc;
use std::time::Duration;

use rand::RngExt;
use weir_fleet::pace;

use super::request::NETWORK;
use super::{Event, Simulation};
use crate::control::PollAnswer;
use crate::ended::Ended;
use crate::workload::Job;

impl<J: Iterator<Item = Job>, F: FnMut(Ended)> Simulation<'_, J, F> {
    /// Everybody knows what there is before the first request.
    pub(super) fn start_control(&mut self) {
        let start = Duration::ZERO;
        for host in 0..self.hosts.len() {
            let answer = self.control.poll(&mut self.hosts[host], start, start);
            self.control.polled(host, answer, start);
            let first = self.scenario.poll.mul_f64(self.rng.random());
            self.agenda.note(first, Event::Poll(host));
        }
        if let Some(push) = self.control.publish(start) {
            let push = Rc::new(push);
            for caller in &mut self.callers {
                caller.learn(Rc::clone(&push), start);
            }
        }
        self.agenda.note(self.scenario.publish, Event::Publish);
        for caller in 0..self.callers.len() {
            let first = self.scenario.report.mul_f64(self.rng.random());
            self.agenda.note(first, Event::Report(caller));
        }
    }

    /// The host answers with what is true in the middle of the way there and back.
    pub(super) fn poll(&mut self, host: usize, now: Duration) {
        let asked = now.saturating_sub(self.scenario.network);
        let answer = self.control.poll(&mut self.hosts[host], asked, now);
        let polled = Event::Polled(host as u32, answer.map(Box::new));
        let arrives = now + self.scenario.network;
        self.agenda.note_in_turn(NETWORK, arrives, polled);
        let jitter = self.rng.random_range(0.9..1.1);
        self.agenda
            .note(now + self.scenario.poll.mul_f64(jitter), Event::Poll(host));
    }

    pub(super) fn polled(&mut self, host: usize, answer: Option<Box<PollAnswer>>, now: Duration) {
        self.control.polled(host, answer.map(|answer| *answer), now);
        let busy = self.hosts[host].busy_time(now);
        if let Some(sample) = self.control.sample(host, busy, now) {
            (self.watch)(sample);
        }
    }

    pub(super) fn report(&mut self, caller: usize, now: Duration) {
        let pause = pace::pause(self.callers.len());
        if let Some(news) = self.callers[caller].report(pause, now) {
            let reported = Event::Reported(caller as u32, Box::new(news));
            let arrives = now + self.scenario.network;
            self.agenda.note_in_turn(NETWORK, arrives, reported);
        }
        self.agenda
            .note(now + self.scenario.report, Event::Report(caller));
    }

    pub(super) fn publish(&mut self, now: Duration) {
        if let Some(push) = self.control.publish(now).map(Rc::new) {
            let arrives = now + self.scenario.network;
            for caller in &mut self.callers {
                caller.receive(Rc::clone(&push), arrives);
            }
        }
        self.agenda
            .note(now + self.scenario.publish, Event::Publish);
    }
}
