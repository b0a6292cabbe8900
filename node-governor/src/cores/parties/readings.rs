// SPDX-License-Identifier: Apache-2.0
//! Readings of slack between two decisions.

/// Their sum, their number and the last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Readings {
    sum: f64,
    count: u32,
    last: f64,
}

impl Readings {
    pub(super) fn add(&mut self, slack: f64) {
        self.sum += slack;
        self.count += 1;
        self.last = slack;
    }

    /// The last and the mean, where there was one; from here on there is none.
    pub(super) fn take(&mut self) -> Option<(f64, f64)> {
        let Self { sum, count, last } = std::mem::take(self);
        (count > 0).then(|| (last, sum / f64::from(count)))
    }
}
