// SPDX-License-Identifier: Apache-2.0
//! A second try of a request while the first goes on: whichever answers first ends the other.
//!
//! Simpler than Envoy's: where the first try fails, the second is given up with it.

use std::time::Duration;

use weir_replay::record::Outcome;

use super::request::task;
use super::{Answer, Event, Simulation};
use crate::ended::Ended;
use crate::pending::{Pending, Place};
use crate::workload::Job;

impl<J: Iterator<Item = Job>, F: FnMut(Ended)> Simulation<'_, J, F> {
    /// The first host has not answered yet: the next of the decision's order gets the request too.
    pub(super) fn try_second(&mut self, request: u32, connection: u32, now: Duration) {
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        let next = pending.ranked.get(pending.tried + 1).copied();
        let Some(host) = next.filter(|_| pending.at(connection).is_some()) else {
            return;
        };
        pending.second = Some(Place {
            host,
            sent: now,
            demand: None,
            job: None,
            started: false,
        });
        let reach = Event::ReachSecond(request, connection);
        let way = self.scenario.way(pending.ended.caller, host);
        self.agenda.note(now + way, reach);
    }

    pub(super) fn reach_second(&mut self, request: u32, connection: u32, now: Duration) {
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        let Some(place) = pending.second_at(connection) else {
            return;
        };
        let host = &mut self.hosts[place.host];
        let task = task(self.scenario, self.keys, &pending.job);
        let job = host.up.then(|| host.submit(now, request, task).ok());
        pending.second = job.flatten().map(|job| Place {
            job: Some((job, now)),
            ..place
        });
        self.wake(place.host, now);
    }

    pub(super) fn answer_second(
        &mut self,
        request: u32,
        connection: u32,
        Answer { spent, load, .. }: Answer,
        now: Duration,
    ) {
        let of = |pending: &Pending| pending.second_at(connection);
        let Some(Place { host, .. }) = self.pending.get(&request).and_then(of) else {
            // The first was faster.
            return;
        };
        let Some(mut pending) = self.pending.remove(&request) else {
            return;
        };
        let caller = &mut self.callers[pending.ended.caller];
        if let Some(asked) = &pending.asked {
            caller.sent(host, asked, now);
        }
        caller.ended((host, now), load, None, now);
        if let Some(first) = pending.at {
            caller.gave_up((first.host, first.sent), now);
            self.cancel(first, now);
        }
        pending.ended.host = Some(host);
        pending.ended.first_wait = spent.wait;
        pending.ended.spent = Some(spent);
        pending.ended.outcome = Outcome::Ok;
        self.end(pending, now);
    }

    /// The second try is not wanted any more.
    pub(super) fn drop_second(&mut self, request: u32, now: Duration) {
        let pending = self.pending.get_mut(&request);
        if let Some(second) = pending.and_then(|pending| pending.second.take()) {
            self.cancel(second, now);
        }
    }

    pub(super) fn cancel(&mut self, place: Place, now: Duration) {
        if let Some((job, _)) = place.job.filter(|_| self.hosts[place.host].up) {
            self.hosts[place.host].cancel(now, job);
            self.wake(place.host, now);
        }
    }
}
