// SPDX-License-Identifier: Apache-2.0
//! Requests that wait at their caller for a host.

use std::time::Duration;

use weir_policy::{Round, Ticket};

use super::{Event, Simulation};
use crate::ended::Ended;
use crate::workload::Job;

impl<J: Iterator<Item = Job>, F: FnMut(Ended)> Simulation<'_, J, F> {
    pub(super) fn hold(&mut self, request: u32, ticket: Ticket, now: Duration) {
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        pending.held = Some(ticket);
        let number = pending.ended.caller;
        let caller = &mut self.callers[number];
        if !std::mem::replace(&mut caller.looks, true) {
            self.agenda
                .note(caller.tick_after(now), Event::Look(number));
        }
    }

    /// Decides anew for all who wait at a caller.
    pub(super) fn look(&mut self, number: usize, now: Duration) {
        let mut round = Round::default();
        while let Some((request, choice)) = self.callers[number].next_held(&mut round, now) {
            if let Some(pending) = self.pending.get_mut(&request) {
                pending.held = None;
                pending.began = now;
                self.follow(request, choice, now);
            }
        }
        let caller = &mut self.callers[number];
        caller.looks = caller.holds();
        if caller.looks {
            self.agenda
                .note(caller.tick_after(now), Event::Look(number));
        }
    }
}
