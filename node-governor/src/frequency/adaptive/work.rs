// SPDX-License-Identifier: Apache-2.0
//! How much work calls of a hot function are.

/// Work is counted in seconds at the node's highest frequency, in buckets whose ends are a factor apart.
pub(super) const BUCKETS: usize = 96;
/// End of the first bucket: 100 µs.
const FIRST: f64 = 1e-4;
/// Buckets a factor of two: the last ends at 1400 s.
const EACH_DOUBLING: f64 = 4.0;
/// Calls that are remembered; then each counts for half.
const REMEMBERED: f64 = 2000.0;
/// Fewer say nothing about the tail.
const ENOUGH: f64 = 50.0;

/// Where so much work is counted.
pub(super) fn bucket(work: f64) -> usize {
    let place = (EACH_DOUBLING * (work / FIRST).log2()).ceil();
    // Not a number, and what is below the first, become 0.
    (place as usize).min(BUCKETS - 1)
}

/// Where a bucket ends.
pub(super) fn end(bucket: usize) -> f64 {
    FIRST * (bucket as f64 / EACH_DOUBLING).exp2()
}

/// Calls that have ended, by their work.
#[derive(Clone, Debug)]
pub(super) struct Works {
    counts: [f64; BUCKETS],
    sum: f64,
}

impl Default for Works {
    fn default() -> Self {
        Self {
            counts: [0.0; BUCKETS],
            sum: 0.0,
        }
    }
}

impl Works {
    pub(super) fn add(&mut self, work: f64) {
        self.counts[bucket(work)] += 1.0;
        self.sum += 1.0;
        if self.sum >= REMEMBERED {
            self.counts.iter_mut().for_each(|count| *count /= 2.0);
            self.sum /= 2.0;
        }
    }

    /// Share of the calls that are still running when a bucket's work begins; nothing where too few are known.
    pub(super) fn survivors(&self) -> Option<[f64; BUCKETS]> {
        if self.sum < ENOUGH {
            return None;
        }
        let mut left = self.sum;
        Some(self.counts.map(|count| {
            let before = left;
            left -= count;
            (before / self.sum).clamp(0.0, 1.0)
        }))
    }
}
