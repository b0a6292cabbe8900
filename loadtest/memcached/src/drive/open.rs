// SPDX-License-Identifier: Apache-2.0
//! The intervals of a load under way.

use std::collections::VecDeque;

use anyhow::Result;

use crate::interval::Interval;
use crate::schedule::{Arrival, Step, Steps};

/// The intervals that have begun and are not told yet.
pub(super) struct Open {
    coming: Box<dyn Iterator<Item = Step>>,
    /// The next one begins then, or the last one ends.
    pub(super) next_ns: u64,
    first: u64,
    intervals: VecDeque<Interval>,
}

impl Open {
    pub(super) fn new(steps: &Steps) -> Self {
        Self {
            coming: Box::new(steps.intervals()),
            next_ns: 0,
            first: 0,
            intervals: VecDeque::new(),
        }
    }

    /// Opens those that have begun by now.
    pub(super) fn begin(&mut self, now_ns: u64) {
        while self.next_ns <= now_ns
            && let Some(step) = self.coming.next()
        {
            let number = self.first + self.intervals.len() as u64;
            self.intervals.push_back(Interval::new(number, step));
            self.next_ns = step.end_ns;
        }
    }

    /// Tells of those before `next` that are over, up to the first that is not.
    pub(super) fn end(
        &mut self,
        now_ns: u64,
        next: u64,
        tell: &mut impl FnMut(&Interval) -> Result<()>,
    ) -> Result<()> {
        while self.first < next
            && let Some(interval) = self.intervals.front()
            && interval.is_over(now_ns)
        {
            tell(interval)?;
            self.intervals.pop_front();
            self.first += 1;
        }
        Ok(())
    }

    pub(super) fn of(&mut self, arrival: Arrival) -> &mut Interval {
        &mut self.intervals[(arrival.interval - self.first) as usize]
    }
}
