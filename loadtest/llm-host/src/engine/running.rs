// SPDX-License-Identifier: Apache-2.0
//! A sequence that has begun, and what it holds of the cache.

use std::sync::Arc;

use crate::key::Key;
use crate::prefix_cache::PrefixCache;
use crate::prompt::BlockId;
use crate::sequence::{Sequence, Spent};

#[derive(Debug)]
pub(super) struct Running {
    blocks: Vec<BlockId>,
    text: Arc<[u8]>,
    key: Option<Key>,
    /// How many of `blocks` are pinned: those found, and all from the end of the prefill on.
    pinned: usize,
    reserved: usize,
    spent: Spent,
}

/// What was found and reserved for a sequence.
pub(super) struct Begun {
    pub(super) hit_blocks: usize,
    reserved: usize,
}

impl Running {
    /// Finds and pins what is cached and reserves the rest of `blocks`, its blocks in all; `None`
    /// if that does not fit now.
    pub(super) fn begin(
        sequence: &Sequence,
        blocks: usize,
        cache: &mut PrefixCache,
    ) -> Option<Begun> {
        let prompt = &sequence.prompt.blocks;
        let hit_blocks = cache.found(prompt);
        let reserved = blocks - hit_blocks;
        // First, so that making room does not evict them.
        cache.pin(&prompt[..hit_blocks]);
        if !cache.reserve(reserved) {
            cache.unpin(&prompt[..hit_blocks]);
            return None;
        }
        Some(Begun {
            hit_blocks,
            reserved,
        })
    }

    pub(super) fn spent(&self) -> &Spent {
        &self.spent
    }

    /// The prompt has been read, and others can find it.
    pub(super) fn read(&mut self, cache: &mut PrefixCache, block_bytes: usize) {
        let found = cache.insert(&self.blocks, self.key.as_ref());
        let ends = [found, self.blocks.len()].map(|blocks| blocks.saturating_mul(block_bytes));
        let new = self.text.get(ends[0]..ends[1]).unwrap_or_default();
        cache.note_stored(&self.blocks, found, new);
        self.reserved -= self.blocks.len() - self.pinned;
        self.pinned = self.blocks.len();
    }

    /// Gives back what it holds.
    pub(super) fn leave(self, cache: &mut PrefixCache) {
        cache.unpin(&self.blocks[..self.pinned]);
        cache.release(self.reserved);
    }
}

impl Begun {
    pub(super) fn with(self, sequence: Sequence, spent: Spent) -> Running {
        Running {
            blocks: sequence.prompt.blocks,
            text: sequence.prompt.text,
            key: sequence.key,
            pinned: self.hit_blocks,
            reserved: self.reserved,
            spent,
        }
    }
}
