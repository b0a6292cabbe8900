// SPDX-License-Identifier: Apache-2.0
//! How often a block is in which part of the engine's memory.
//!
//! Engines tell of each copy: vLLM does not look whether a block that becomes full is there already, and tells of the
//! end of one copy though another is left. So copies are counted, and the block is held while one is.

use crate::wire::Place;

/// Parts of memory that are told apart; what is in more of them is not kept.
const MAX_PLACES: usize = 8;

/// The parts of an engine's memory, in the order in which it named them.
#[derive(Debug, Default)]
pub(super) struct Places(Vec<u64>);

impl Places {
    /// The number of a part; none where there are too many.
    pub(super) fn of(&mut self, place: Place<'_>) -> Option<usize> {
        self.known(place).or_else(|| {
            let new = self.0.len();
            (new < MAX_PLACES).then(|| {
                self.0.push(place.id());
                new
            })
        })
    }

    /// The number of a part that has been named.
    pub(super) fn known(&self, place: Place<'_>) -> Option<usize> {
        let id = place.id();
        self.0.iter().position(|known| *known == id)
    }
}

/// Copies of a block by part. What is beyond 255 is not counted, so a block may count as gone too early, and never
/// as there too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Copies([u8; MAX_PLACES]);

impl Copies {
    pub(super) fn one(place: usize) -> Self {
        let mut copies = Self::default();
        copies.add(place);
        copies
    }

    pub(super) fn add(&mut self, place: usize) {
        self.change(place, |copies| copies.saturating_add(1));
    }

    pub(super) fn remove(&mut self, place: usize) {
        self.change(place, |copies| copies.saturating_sub(1));
    }

    pub(super) fn set(&mut self, place: usize, left: u64) {
        self.change(place, |_| u8::try_from(left).unwrap_or(u8::MAX));
    }

    pub(super) fn is_none(self) -> bool {
        self.0 == [0; MAX_PLACES]
    }

    fn change(&mut self, place: usize, change: impl FnOnce(u8) -> u8) {
        if let Some(copies) = self.0.get_mut(place) {
            *copies = change(*copies);
        }
    }
}
