// SPDX-License-Identifier: Apache-2.0
//! What is told of a simulation: requests that ended, hosts that were polled.

use std::time::Duration;

use weir_executor::Spent;
use weir_policy::Reason;
use weir_replay::record::Outcome;

/// One request and its end.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Place among all that came, from 0.
    pub index: usize,
    /// When it came.
    pub at: Duration,
    /// Priority class.
    pub class: u8,
    /// From its coming to the end of the last attempt, back-off included.
    pub duration: Duration,
    /// The last attempt, from its being sent to its end.
    pub attempt: Duration,
    /// How it ended.
    pub outcome: Outcome,
    /// Attempts made.
    pub attempts: u32,
    /// Attempts refused by admission.
    pub shed_attempts: u32,
    /// Hosts that did not take the connection, in all attempts.
    pub unconnected: u32,
    /// Those of them where it took too long.
    pub connect_timeouts: u32,
    /// Hosts that gave it back, in all attempts.
    pub bounces: u32,
    /// Hosts that gave up an attempt, because it had waited too long for its first joblet; one for each.
    pub queue_timeouts: Vec<usize>,
    /// Attempts that took their caller too long.
    pub read_timeouts: u32,
    /// Which caller sent it.
    pub caller: usize,
    /// Where the last attempt went.
    pub host: Option<usize>,
    /// Why there.
    pub reason: Option<Reason>,
    /// At the host, until the first joblet that it needs had a core: the wait of document 001.
    pub first_wait: Duration,
    /// How many of its keys the host had, from the first on.
    pub found: usize,
    /// Where the host's time went, if it answered. Its wait is that for all joblets.
    pub spent: Option<Spent>,
}

/// A host, when it has just been polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Duration,
    /// From 0.
    pub host: usize,
    /// Requests may go there.
    pub up: bool,
    /// Ranks that it admits by its DAGOR level, 0 to 4096.
    pub level: u16,
    /// What it told of its queue last.
    pub queued: u32,
    /// Core time in which its cores were busy since its life began; none where it is away, or has no cores.
    pub busy: Option<Duration>,
}

impl Ended {
    pub(crate) fn new(index: u32, at: Duration, class: u8, caller: usize) -> Self {
        Self {
            index: index as usize,
            at,
            class,
            duration: Duration::ZERO,
            attempt: Duration::ZERO,
            outcome: Outcome::Failed,
            attempts: 0,
            shed_attempts: 0,
            bounces: 0,
            unconnected: 0,
            connect_timeouts: 0,
            queue_timeouts: Vec::new(),
            read_timeouts: 0,
            caller,
            host: None,
            reason: None,
            first_wait: Duration::ZERO,
            found: 0,
            spent: None,
        }
    }
}
