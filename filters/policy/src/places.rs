// SPDX-License-Identifier: Apache-2.0
//! The best few of the hosts that a decision looks at, each as one number.

use crate::Ranked;
use crate::ranked::MAX_RANKED;
use crate::table::MAX_HOSTS;

/// Smaller is better. The last 16 bits are the host's index in the table; the others are the selection's own.
pub(crate) type Score = u64;

/// The host of a score.
pub(crate) const HOST: Score = (1 << 16) - 1;
/// Worse than every host.
const NOBODY: Score = Score::MAX;

const _: () = assert!((MAX_HOSTS as Score) < HOST);

/// The best hosts so far, in order.
#[derive(Debug)]
pub(crate) struct Places {
    /// How many are to be named.
    limit: usize,
    scores: [Score; MAX_RANKED],
    /// Of the last place: what a host has to be better than.
    worst: Score,
}

impl Places {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            scores: [NOBODY; MAX_RANKED],
            worst: NOBODY,
        }
    }

    /// Considers a host. One that is among them already is no better the second time, and keeps its place.
    #[inline]
    pub(crate) fn consider(&mut self, score: Score) {
        // Most hosts end here.
        if score < self.worst {
            self.place(score);
        }
    }

    fn place(&mut self, score: Score) {
        let (mut moved, mut worst) = (score, NOBODY);
        for place in self.scores.iter_mut().take(self.limit) {
            // It is named already: no worse, so before its new place. Or nobody is left to be moved.
            if (*place ^ moved) & HOST == 0 {
                return;
            }
            (*place, moved) = (moved.min(*place), moved.max(*place));
            worst = *place;
        }
        self.worst = worst;
    }

    /// The score of the first; more than any host's where there is none.
    pub(crate) fn first(&self) -> Score {
        let [first, ..] = self.scores;
        first
    }

    /// The score of the last; more than any host's where a place is free.
    pub(crate) fn worst(&self) -> Score {
        self.worst
    }

    /// The hosts, best first.
    pub(crate) fn hosts(&self) -> Ranked {
        let named = self.scores.iter().take_while(|score| **score != NOBODY);
        Ranked::of(named.map(|score| (score & HOST) as u32))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_best_are_named_in_order_and_each_once(
            hosts in prop::collection::vec((0u64..12, 0u64..40), 0..40), limit in 1..=MAX_RANKED,
        ) {
            let mut places = Places::new(limit);
            // A host that comes again is no better.
            let mut scores: Vec<Score> = Vec::new();
            for (host, merit) in hosts {
                let known = scores.iter().find(|score| **score & HOST == host).copied();
                let score = (merit << 16 | host).max(known.unwrap_or(0));
                places.consider(score);
                if known.is_none() {
                    scores.push(score);
                }
            }
            scores.sort_unstable();
            let best: Vec<u32> = scores.iter().take(limit).map(|score| (score & HOST) as u32).collect();
            let named = places.hosts();
            prop_assert_eq!(named.as_slice(), best.as_slice());
            prop_assert_eq!(places.first(), scores.first().copied().unwrap_or(NOBODY));
            prop_assert_eq!(places.worst(), scores.get(limit - 1).copied().unwrap_or(NOBODY));
        }
    }
}
