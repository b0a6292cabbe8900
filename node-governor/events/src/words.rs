// SPDX-License-Identifier: Apache-2.0
//! The shared memory as a producer sees it.

use std::sync::atomic::Ordering;

/// Aligned words of 64 bits, by their offset in the file.
pub(crate) trait Words {
    /// What is read later is not older than this.
    fn load(&self, offset: u64) -> u64;
    /// Seen by others after everything stored before it.
    fn store(&self, offset: u64, word: u64);
    /// Stores the word if there is 0, and says whether it did.
    fn claim(&self, offset: u64, word: u64) -> bool;
}

/// Of [`Words::load`].
pub(crate) const LOAD: Ordering = Ordering::Acquire;
/// Of [`Words::store`].
pub(crate) const STORE: Ordering = Ordering::Release;
/// Of [`Words::claim`] where it stores: the next owner goes on from what the last one has stored.
pub(crate) const CLAIM: Ordering = Ordering::AcqRel;
