// SPDX-License-Identifier: Apache-2.0
//! What decisions compare of a host. It is small, because a decision in a large fleet reads it of hosts that
//! lie all over memory.

use std::time::Duration;

/// Figures of one host, in nanoseconds on the clock of the decisions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    /// When `known` was true, but for what was sent since.
    pub(crate) observed: u64,
    /// The host did not take a request, or fails them; others come first until then.
    pub(crate) suspect_until: u64,
    /// Jobs running or queued by its newest load, and what was sent since; 0 where it never told any.
    pub(crate) known: u32,
    /// Requests in flight from this proxy.
    pub(crate) in_flight: u32,
}

/// The time of a decision, and how old a load may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    now: u64,
    /// What was true before that is not believed any more.
    oldest: u64,
}

impl Clock {
    pub(crate) fn new(now: Duration, stale_after: Duration) -> Self {
        let now = nanos(now);
        let oldest = now.saturating_sub(nanos(stale_after));
        Self { now, oldest }
    }

    /// Since then, in nanoseconds.
    pub(crate) fn age(self, then: Duration) -> u64 {
        self.now.saturating_sub(nanos(then))
    }

    /// Whether what was true then is believed still.
    pub(crate) fn believes(self, then: Duration) -> bool {
        nanos(then) >= self.oldest
    }
}

impl Standing {
    /// Jobs that are probably running or queued at the host: what it said last and what was sent since
    /// (document 001, section 9.2.3), or what is in flight from here where that is more.
    pub(crate) fn in_progress(self, clock: Clock) -> u32 {
        match self.is_believed(clock) {
            true => self.in_flight.max(self.known),
            false => self.in_flight,
        }
    }

    /// Whether what the host said last is believed still.
    pub(crate) fn is_believed(self, clock: Clock) -> bool {
        self.observed >= clock.oldest
    }

    pub(crate) fn is_suspect(self, clock: Clock) -> bool {
        self.suspect_until > clock.now
    }
}

/// Enough for five centuries; what is later is then.
pub(crate) fn nanos(time: Duration) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    // No saturating_mul: WebAssembly has no wide product, and a decision asks this often.
    let seconds = time.as_secs().min(u64::MAX / SECOND) * SECOND;
    seconds.saturating_add(time.subsec_nanos().into())
}

/// The same as a float.
pub(crate) fn time(time: Duration) -> f64 {
    nanos(time) as f64
}
