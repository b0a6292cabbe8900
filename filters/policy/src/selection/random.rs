// SPDX-License-Identifier: Apache-2.0
//! Any host (document 001, section 9.2.2).

use rand::Rng;

use super::Candidates;
use crate::Ranked;
use crate::key::scale;
use crate::ranked::MAX_RANKED;

/// The first places of a Fisher-Yates shuffle from the front, which needs no more of the list than it shows.
pub(super) fn select(candidates: &Candidates<'_>, rng: &mut impl Rng) -> Ranked {
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
        let drawn = step + scale(rng.next_u32(), eligible.len() - step);
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
