// SPDX-License-Identifier: Apache-2.0
//! What a firing takes on a core. MODELLED: document 003 prints no times of its actors. Only how they compare is given
//! here, by assumption; together they are made so long that a core does a given number of reports a second.

use std::collections::VecDeque;
use std::time::Duration;

use super::actor::{self, ACTORS, Event};
use super::traffic::Report;

/// Parts of work for each event that an actor takes in, and for each that it sends.
const TAKES: [f64; ACTORS] = [0.8, 1.2, 1.6, 10.0, 0.4, 1.0, 0.8];
const SENDS: [f64; ACTORS] = [0.0, 0.0, 0.0, 0.0, 0.6, 0.0, 0.0];

#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    /// Seconds of a part.
    part: f64,
}

impl Costs {
    /// So that a core does `capacity` of these reports a second.
    pub(super) fn new(reports: &[Report], capacity: f64) -> Self {
        let one = Self { part: 1.0 };
        let mut actors = actor::all();
        let mut sum = 0.0;
        for report in reports {
            let mut waiting = VecDeque::from([(0, Event::Report(*report))]);
            while let Some((to, event)) = waiting.pop_front() {
                if let Some(actor) = actors.get_mut(to) {
                    let mut sent = Vec::new();
                    actor.fire(event, &mut sent);
                    sum += one.firing(to, 1, sent.len()).as_secs_f64();
                    waiting.extend(sent);
                }
            }
        }
        Self {
            part: reports.len() as f64 / (capacity * sum),
        }
    }

    /// Core time in which an actor takes in and sends so many events.
    pub(super) fn firing(&self, actor: usize, taken: usize, sent: usize) -> Duration {
        let parts = taken as f64 * TAKES[actor] + sent as f64 * SENDS[actor];
        Duration::from_secs_f64(self.part * parts)
    }
}
