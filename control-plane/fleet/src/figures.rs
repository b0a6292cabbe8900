// SPDX-License-Identifier: Apache-2.0
//! Figures of one host's load.

use std::time::Duration;

/// What is known of a host's load. A figure that the host does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Jobs running or queued.
    pub in_progress: Option<u32>,
    /// Jobs queued by business class.
    pub queued: Option<Vec<u32>>,
    /// Mean wait in the queue over the last window.
    pub queuing_delay: Option<Duration>,
    /// It is that of jobs whose answers are done, however long ago they waited.
    pub delay_is_late: bool,
    /// Cores in use.
    pub busy_cores: Option<u32>,
    /// Core time that its jobs are expected to need still, in microseconds, by business class.
    pub work: Option<Vec<u64>>,
}

impl Figures {
    /// The wait of jobs that have left the queue lately: where it is told late the queue's length says more.
    #[must_use]
    pub fn delay_of_now(&self) -> Option<Duration> {
        let is_late = self.delay_is_late && self.queued.is_some();
        self.queuing_delay.filter(|_| !is_late)
    }

    /// Jobs that they tell.
    #[must_use]
    pub fn jobs(&self) -> u64 {
        self.in_progress.map_or_else(|| self.waiting(), u64::from)
    }

    /// Of these the ones that wait, as far as they tell.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        let queued = self.queued.as_deref().unwrap_or_default();
        queued.iter().copied().map(u64::from).sum()
    }

    /// Cores that its jobs hold: one each, unless it says how many.
    #[must_use]
    pub fn used_cores(&self) -> u32 {
        let running = self.jobs().saturating_sub(self.waiting());
        self.busy_cores
            .unwrap_or(u32::try_from(running).unwrap_or(u32::MAX))
    }
}

/// A page that could be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scraped {
    /// What it says.
    pub figures: Figures,
    /// Jobs that left its queue since the page before, as it counts them, and the time between the pages.
    pub left_queue: Option<(f64, Duration)>,
    /// Prompts that it has read since then, and how long that took, where it is a host that tells it.
    pub read: Option<Spell>,
    /// Answers that it has written since then, and how long that took, where it tells it.
    pub wrote: Option<Spell>,
    /// Thousandths of a core that it has, where it says so.
    pub millicores: Option<u32>,
    /// The host wants no new requests.
    pub draining: bool,
    /// What it should say and does not.
    pub complaints: Vec<String>,
}

/// Prompts of a language model that a host has read, or answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spell {
    /// How many; more than none.
    pub prompts: f64,
    /// How long all of them took, in seconds.
    pub seconds: f64,
}
