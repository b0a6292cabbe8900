// SPDX-License-Identifier: Apache-2.0
//! How much work the calls that are running have done.

use super::Speed;
use crate::frequency::Khz;
use crate::sensed::{Core, FUNCTIONS, Nanos};

/// One core's calls, by function.
#[derive(Clone, Debug)]
pub(in crate::frequency) struct Progress {
    running: [Option<Call>; FUNCTIONS],
    /// What the core is set to, and since when.
    khz: Khz,
    at: Nanos,
}

/// A call that is running.
#[derive(Clone, Copy, Debug)]
pub(in crate::frequency) struct Call {
    pub(in crate::frequency) since: Nanos,
    /// Done so far.
    pub(in crate::frequency) work: f64,
}

impl Progress {
    /// What the core is set to at first is not known: rather too much work than too little.
    pub(in crate::frequency) fn new(speed: &Speed) -> Self {
        Self {
            running: [None; FUNCTIONS],
            khz: speed.fastest,
            at: Nanos::default(),
        }
    }

    /// Work of a call that ended after `took` seconds, as far as it can be known: of one that was not seen running,
    /// all of it was done at what the core is set to.
    pub(in crate::frequency) fn ended(&mut self, function: usize, took: f64, speed: &Speed) -> f64 {
        let seen = self.running.get_mut(function).and_then(Option::take);
        let (done, before) = seen.map_or((0.0, 0.0), |call| {
            (call.work, self.at.since(call.since).as_secs_f64())
        });
        done + (took - before).max(0.0) * speed.at(self.khz)
    }

    /// Brings the calls up to `now`.
    pub(in crate::frequency) fn advance(&mut self, now: Nanos, seen: &Core, speed: &Speed) {
        let rate = speed.at(self.khz);
        let mut running = [None; FUNCTIONS];
        for (function, since) in seen.hot.running() {
            let known = self.running[function].filter(|call| call.since == since);
            let (work, from) = known.map_or((0.0, since), |call| (call.work, self.at.max(since)));
            let work = work + now.since(from).as_secs_f64() * rate;
            running[function] = Some(Call { since, work });
        }
        self.running = running;
        self.at = now;
    }

    /// What the core is set to from now on.
    pub(in crate::frequency) fn set(&mut self, khz: Khz) {
        self.khz = khz;
    }

    /// The functions that are running, with their calls.
    pub(in crate::frequency) fn calls(&self) -> impl Iterator<Item = (usize, Call)> + '_ {
        let running = |(function, call): (usize, &Option<Call>)| Some((function, (*call)?));
        self.running.iter().enumerate().filter_map(running)
    }
}
