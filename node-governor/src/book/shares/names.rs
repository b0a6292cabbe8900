// SPDX-License-Identifier: Apache-2.0
//! What states and reasons are called: on pages, in metrics and in the timeline's file.

use crate::cores::Reason;
use crate::jobs::{Queue, State};

/// All of them.
pub const STATES: [State; 5] = [
    State::Waiting,
    State::Running,
    State::Paused,
    State::Finished,
    State::Failed,
];

/// What a state is called.
pub fn state_name(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::Running => "running",
        State::Paused => "paused",
        State::Finished => "finished",
        State::Failed => "failed",
    }
}

/// The state that is called so.
pub fn state_named(name: &str) -> Option<State> {
    STATES.into_iter().find(|state| state_name(*state) == name)
}

/// What a reason is called.
pub fn reason_name(reason: Reason) -> &'static str {
    match reason {
        Reason::Same => "same",
        Reason::Written => "written",
        Reason::Busy => "busy",
        Reason::Calm => "calm",
        Reason::Tight => "tight",
        Reason::Loose => "loose",
        Reason::Refused => "refused",
        Reason::Reverted => "reverted",
        Reason::Memory => "memory",
        Reason::Held => "held",
        Reason::Safe => "safe",
        Reason::NoJobs => "no_jobs",
    }
}

/// What a queue is called.
pub fn queue_name(queue: Queue) -> &'static str {
    match queue {
        Queue::Short => "short",
        Queue::Medium => "medium",
        Queue::Long => "long",
    }
}
