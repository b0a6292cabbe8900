// SPDX-License-Identifier: Apache-2.0
//! What a host of a language model has still to read before the next prompt.
//!
//! Such a host reads one prompt after another, or parts of some by turns, and writes many answers beside that. So what
//! delays the first token of an answer are the prompts that are still to be read, not the jobs that are there:
//!
//! ```text
//! ahead = what was sent from here, each as long as its keys that the host lacks take, one after another
//!         no less than what all callers sent, as weir-control has added it up, and what was sent since
//!         no less than the prompts that wait there take, as the host said last, and what was sent since
//!         no more than twice these and one more
//! ```
//! Nothing tells when a prompt has been read, so what was sent is taken to be read at the rate that all are.

use std::time::Duration;

use crate::{Load, Work};

/// The host may have this many times what its prompts take on average.
const MOST: u32 = 2;

/// The prompts of one host, as this proxy sent them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unread {
    /// When all of them have been read.
    until: Duration,
}

impl Unread {
    /// One more that takes this long was sent. Those that have no answer take `in_flight` together.
    pub(crate) fn sent(&mut self, work: Duration, in_flight: Duration, now: Duration) {
        let before = self.until.clamp(now, now.saturating_add(in_flight));
        self.until = before.saturating_add(work);
    }

    /// How long until all have been read. `told` is what the host said last and the work that was sent since, where
    /// that is believed.
    pub(crate) fn ahead(
        &self,
        told: Option<(&Load, Duration)>,
        mean: Duration,
        now: Duration,
    ) -> Duration {
        let Some((load, since)) = told else {
            return self.until.saturating_sub(now);
        };
        let base = load.observed.saturating_add(since);
        let sent = load.work.as_ref().map_or(Duration::ZERO, Work::total);
        let least = base.saturating_add(mean.saturating_mul(load.queued));
        let most = mean.saturating_mul(load.queued.saturating_add(1).saturating_mul(MOST));
        let until = self.until.max(base.saturating_add(sent));
        let until = until.clamp(least, base.saturating_add(most).max(least));
        until.saturating_sub(now)
    }
}
