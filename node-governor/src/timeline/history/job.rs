// SPDX-License-Identifier: Apache-2.0
//! One job over time.

use super::super::line;
use crate::book::shares::state_named;
use crate::jobs::State;

/// What is known of it.
#[derive(Debug, Default)]
pub(in crate::timeline) struct Job {
    pub name: String,
    pub queue: String,
    pub threads: u32,
    /// None: not seen.
    pub state: Option<State>,
    /// In which it ran or was paused, in order.
    pub stretches: Vec<Stretch>,
    /// None: not yet, or before the first line.
    pub started: Option<f64>,
    pub ended: Option<f64>,
    pub ran: f64,
    pub paused: f64,
    pub pauses: u64,
    pub code: Option<i32>,
    pub trouble: Option<String>,
    /// What it does now, and since when.
    open: Option<(f64, Option<u32>)>,
}

/// Some time of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::timeline) struct Stretch {
    pub from: f64,
    pub to: f64,
    /// Where it ran: position in [`super::History::sets`]. None: it was paused.
    pub set: Option<u32>,
}

impl Job {
    pub(super) fn new(named: line::Named) -> Self {
        Self {
            name: named.name,
            queue: named.queue,
            threads: named.threads,
            ..Self::default()
        }
    }

    /// From now on it is so; whether there is such a state.
    pub(super) fn turn(&mut self, job: line::Job, at: f64, sets: &mut Vec<String>) -> bool {
        let Some(state) = state_named(&job.state) else {
            return false;
        };
        let before = self.state.replace(state);
        if before.is_some_and(State::has_ended) && !state.has_ended() {
            self.begin_anew();
        }
        (self.code, self.trouble) = (job.code, job.trouble);
        let is_new = before != Some(state);
        if is_new && before == Some(State::Waiting) {
            self.started = Some(at);
        }
        if is_new && state.has_ended() && before.is_some() {
            self.ended = Some(at);
        }
        self.pauses += u64::from(is_new && state == State::Paused && before.is_some());
        let now = match state {
            State::Running => Some(Some(position(sets, job.cores))),
            State::Paused => Some(None),
            _ => None,
        };
        if self.open.map(|(_, set)| set) != now {
            self.close(at);
            self.open = now.map(|set| (at, set));
        }
        true
    }

    /// It was forgotten and may be started again: what it did stays drawn, and is no longer counted.
    fn begin_anew(&mut self) {
        (self.started, self.ended) = (None, None);
        (self.ran, self.paused, self.pauses) = (0.0, 0.0, 0);
    }

    pub(super) fn close(&mut self, at: f64) {
        let Some((from, set)) = self.open.take() else {
            return;
        };
        let time = if set.is_some() {
            &mut self.ran
        } else {
            &mut self.paused
        };
        *time += at - from;
        self.stretches.push(Stretch { from, to: at, set });
    }
}

fn position(sets: &mut Vec<String>, cores: String) -> u32 {
    let known = sets.iter().position(|set| *set == cores);
    let position = known.unwrap_or(sets.len());
    if known.is_none() {
        sets.push(cores);
    }
    position as u32
}
