// SPDX-License-Identifier: Apache-2.0
//! The production method of document 001, section 9.2.1: shuffle the eligible hosts with a generator
//! seeded by the key, and take the first. Its fault is kept: where a host joins, leaves or closes, the
//! shuffle of nearly every key changes.

use super::Candidates;
use crate::key::{scale, split_mix};
use crate::ranked::MAX_RANKED;
use crate::{KeyHash, Ranked};

/// The first places of a Fisher-Yates shuffle from the front, which needs no more of the list than it shows.
pub(super) fn select(candidates: &Candidates<'_>, key: KeyHash) -> Ranked {
    let mut state = key.0;
    shuffle_front(candidates, || split_mix(&mut state))
}

/// Names distinct eligible hosts as `next` (uniform 64-bit numbers) draws them.
pub(super) fn shuffle_front(candidates: &Candidates<'_>, mut next: impl FnMut() -> u64) -> Ranked {
    let eligible = candidates.eligible;
    let mut ranked = Ranked::default();
    // Swaps made so far: position → what now stands there. Later ones count.
    let mut swaps = [(usize::MAX, usize::MAX); MAX_RANKED];
    for step in 0..candidates.limit() {
        let at = |position: usize, swaps: &[(usize, usize)]| {
            swaps
                .iter()
                .rev()
                .find(|(from, _)| *from == position)
                .map_or(position, |(_, to)| *to)
        };
        let drawn = step + scale(next(), eligible.len() - step);
        let host = at(drawn, &swaps);
        let front = at(step, &swaps);
        if let Some(swap) = swaps.get_mut(step) {
            *swap = (drawn, front);
        }
        if let Some(host) = eligible.get(host) {
            ranked.push(*host);
        }
    }
    ranked
}
