// SPDX-License-Identifier: Apache-2.0
//! Somebody who knows each shard's work when it begins: to compare with.
//!
//! With known work one frequency is better than several, as power grows faster than speed. It is the lowest that
//! brings the shard to its end in time, but none below the one at which work takes least energy. What is given to a
//! query of the few that may be late is the latter.

use weir_governor::frequency::Khz;

use super::chip::Chip;

/// What it wants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clairvoyant {
    /// No shard gets less.
    pub floor: Khz,
    /// A shard that would need more gets the floor.
    pub most: Khz,
    /// From the query on, in seconds.
    pub within_s: f64,
    /// For the work of other threads.
    pub aside: Khz,
}

impl Clairvoyant {
    /// For a shard whose query is `passed` nanoseconds old.
    pub(super) fn step(&self, chip: &Chip, work_ns: f64, passed: u64) -> usize {
        let left_ns = self.within_s * 1e9 - passed as f64;
        let (floor, most) = (chip.step(self.floor), chip.step(self.most));
        let in_time = |step: &usize| work_ns <= left_ns * chip.speed[*step];
        (floor..=most).find(in_time).unwrap_or(floor)
    }
}
