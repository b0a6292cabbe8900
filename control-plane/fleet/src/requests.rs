// SPDX-License-Identifier: Apache-2.0
//! Requests that all callers have under way at a host, by their reports.

use std::time::Duration;

/// Reports that make up a sum are up to so old: the filter's default `report_interval`. Requests that a caller sends
/// after that it counts itself.
pub(crate) const SPAN: Duration = Duration::from_millis(100);

/// The mean of requests is of about so long: five reports of each caller.
const WHILE: Duration = Duration::from_millis(500);

/// What a report changes of a host's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// So many are more under way, or fewer.
    pub by: i64,
    /// So many have ended since the report before.
    pub ended: u64,
    /// They were under way before, unknown here: the first record of a VM.
    pub is_found: bool,
}

/// Those of all callers, by the newest record of every VM.
#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) newest: i64,
    /// Their mean over the last [`WHILE`], and how many ended a second.
    mean: f64,
    ended: f64,
    /// When these were true.
    at: Duration,
}

impl Requests {
    pub(crate) fn none(now: Duration) -> Self {
        Self {
            newest: 0,
            mean: 0.0,
            ended: 0.0,
            at: now,
        }
    }

    pub(crate) fn take(&mut self, change: Change, now: Duration) {
        (self.mean, self.ended) = self.means(now);
        self.at = self.at.max(now);
        self.newest = self.newest.saturating_add(change.by);
        self.ended += change.ended as f64 / WHILE.as_secs_f64();
        if change.is_found {
            self.mean += change.by as f64;
        }
    }

    /// Both means by now: until the next report as many are taken to be under way as the newest told.
    fn means(&self, now: Duration) -> (f64, f64) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        let kept = (-passed / WHILE.as_secs_f64()).exp();
        let newest = self.newest as f64;
        (newest + kept * (self.mean - newest), kept * self.ended)
    }

    /// Those that are under way, as reports are half a [`SPAN`] old on average. Of the newest the part that has not
    /// ended since, as times are spread where ends come at random (exponential, their mean by Little's law), and
    /// the mean of all in place of the rest: what a host that answers in a millisecond had at one moment says nothing
    /// of a tenth of a second.
    pub(crate) fn expected(&self, now: Duration) -> f64 {
        let (mean, ended) = self.means(now);
        let newest = self.newest as f64;
        // That have ended since, of those that were under way.
        let ends = ended * SPAN.as_secs_f64() / 2.0 / mean.max(f64::MIN_POSITIVE);
        mean + (-ends).exp() * (newest - mean)
    }
}
