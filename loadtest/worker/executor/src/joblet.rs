// SPDX-License-Identifier: Apache-2.0
//! One joblet: who wants it, and whether it waits or runs.

use std::time::Duration;

use crate::id::JobletId;
use crate::job::Step;
use crate::waiters::Waiters;
use crate::{Kind, Work};

/// A joblet that has just been given cores.
#[derive(Debug)]
pub struct Start<W: Work> {
    /// The joblet, to be named when it has ended.
    pub joblet: JobletId,
    /// Its kind.
    pub kind: Kind,
    /// The cores it holds until then, at least 1.
    pub cores: usize,
    /// What it does.
    pub work: W,
    /// The result it builds on.
    pub input: Option<W::Output>,
    /// It was suspended: its work goes on where it stands, on no more cores than before, and has its input.
    pub resumed: bool,
}

#[derive(Debug)]
pub(crate) struct Joblet<W: Work> {
    pub(crate) step: Step<W>,
    pub(crate) input: Option<W::Output>,
    /// The jobs that need its result, by importance. A waiting joblet stands in the scheduler at
    /// the rank of the first, so that a high job is never held up by a low one's place.
    pub(crate) waiters: Waiters,
    pub(crate) running: Option<Running>,
    /// It waits with its work begun, which stands still; the cores that it held.
    pub(crate) suspended: Option<usize>,
    /// What is counted for its fetch while it waits, and in which class.
    pub(crate) fetch: Option<(u8, Duration)>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Running {
    pub(crate) cores: usize,
    pub(crate) since: Duration,
    /// Asked to make room.
    pub(crate) asked: bool,
}

impl Running {
    pub(crate) fn new(cores: usize, since: Duration) -> Self {
        Self {
            cores,
            since,
            asked: false,
        }
    }

    /// Core time held so far.
    pub(crate) fn core_time(&self, now: Duration) -> Duration {
        let cores = u32::try_from(self.cores).unwrap_or(u32::MAX);
        now.saturating_sub(self.since).saturating_mul(cores)
    }
}
