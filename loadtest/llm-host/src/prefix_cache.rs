// SPDX-License-Identifier: Apache-2.0
//! The prefix cache: blocks of prompts, found from the beginning on, evicted from the end.

mod owners;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use weir_executor::CacheChanges;

use crate::key::Key;
use crate::prompt::BlockId;
use owners::Owners;

/// Blocks that have been read and not evicted, as a forest: a block's parent is the one before it in
/// the prompt.
///
/// ```text
/// found ─> pin ─> reserve ─> insert ─> unpin          release
/// (longest prefix)  (room by eviction)  (may be evicted again)
/// ```
/// A block can be evicted when no running sequence has pinned it and no block follows it. Of these
/// goes the one that was used longest ago; of one prompt, the last. Room that is reserved is for
/// what is being read and written and cannot be found by others.
#[derive(Debug)]
pub struct PrefixCache {
    capacity: usize,
    reserved: usize,
    pinned: usize,
    blocks: HashMap<BlockId, Block>,
    /// Blocks that may be evicted, the one used longest ago first.
    leaves: BTreeSet<(u64, BlockId)>,
    /// Counts uses.
    clock: u64,
    owners: Owners,
    evictions: u64,
    /// What came and went, where somebody wants to know.
    changes: Option<Vec<Change>>,
}

/// What happened to blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// They came, each behind the one before it.
    Stored {
        /// The one before the first of them.
        parent: Option<BlockId>,
        /// In their order.
        blocks: Vec<BlockId>,
        /// Of all of them.
        text: Vec<u8>,
    },
    /// One went.
    Removed(BlockId),
}

#[derive(Debug)]
struct Block {
    parent: Option<BlockId>,
    children: usize,
    pins: usize,
    used: u64,
}

impl Block {
    fn may_go(&self) -> bool {
        self.pins == 0 && self.children == 0
    }
}

impl PrefixCache {
    /// An empty cache that remembers `change_log` changes of its keys.
    #[must_use]
    pub fn new(capacity: usize, change_log: usize, epoch: u64) -> Self {
        Self {
            capacity,
            reserved: 0,
            pinned: 0,
            blocks: HashMap::new(),
            leaves: BTreeSet::new(),
            clock: 0,
            owners: Owners::new(change_log, epoch),
            evictions: 0,
            changes: None,
        }
    }

    /// From now on it is noted what comes and goes, for [`take_changes`](Self::take_changes).
    pub fn note_changes(&mut self) {
        self.changes = Some(Vec::new());
    }

    /// What came and went since it was taken last, in order.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.changes
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Notes that of a prompt's blocks those behind the first `found` came just now.
    pub(crate) fn note_stored(&mut self, prompt: &[BlockId], found: usize, text: &[u8]) {
        let Some(changes) = &mut self.changes else {
            return;
        };
        let (before, blocks) = prompt.split_at(found.min(prompt.len()));
        if !blocks.is_empty() {
            changes.push(Change::Stored {
                parent: before.last().copied(),
                blocks: blocks.to_vec(),
                text: text.to_vec(),
            });
        }
    }

    /// How many of these blocks are here, counted from the first on.
    #[must_use]
    pub fn found(&self, blocks: &[BlockId]) -> usize {
        let here = |id: &&BlockId| self.blocks.contains_key(id);
        blocks.iter().take_while(here).count()
    }

    /// Keeps blocks, which must be here, from being evicted.
    pub fn pin(&mut self, blocks: &[BlockId]) {
        for id in blocks {
            if let Some(block) = self.blocks.get_mut(id) {
                self.leaves.remove(&(block.used, *id));
                self.pinned += usize::from(block.pins == 0);
                block.pins += 1;
            }
        }
    }

    /// Undoes one [`pin`](Self::pin) of these blocks, and notes that they were used just now.
    pub fn unpin(&mut self, blocks: &[BlockId]) {
        self.clock += 1;
        for id in blocks {
            if let Some(block) = self.blocks.get_mut(id) {
                block.pins -= 1;
                self.pinned -= usize::from(block.pins == 0);
                block.used = self.clock;
                if block.may_go() {
                    self.leaves.insert((block.used, *id));
                }
            }
        }
    }

    /// Makes room for so many blocks. False, and nothing is evicted, if pinned and reserved ones
    /// leave too little.
    #[must_use]
    pub fn reserve(&mut self, blocks: usize) -> bool {
        if self.pinned + self.reserved + blocks > self.capacity {
            return false;
        }
        while self.blocks.len() + self.reserved + blocks > self.capacity {
            self.evict();
        }
        self.reserved += blocks;
        true
    }

    /// Gives reserved room back.
    pub fn release(&mut self, blocks: usize) {
        self.reserved -= blocks;
    }

    /// A prompt has been read: those of its blocks that are not here yet take reserved room and are
    /// pinned. Those that are must have been found and pinned before.
    ///
    /// Returns how many of the first are.
    pub fn insert(&mut self, blocks: &[BlockId], key: Option<&Key>) -> usize {
        let found = self.found(blocks);
        let mut parent = None;
        for (place, id) in blocks.iter().enumerate() {
            let key = key.and_then(|key| key.of(place, blocks.len()));
            if self.blocks.contains_key(id) {
                self.owners.shared(*id, key);
            } else {
                self.add(*id, parent);
                self.owners.added(*id, key);
            }
            parent = Some(*id);
        }
        found
    }

    fn add(&mut self, id: BlockId, parent: Option<BlockId>) {
        if let Some(parent) = parent.and_then(|parent| self.blocks.get_mut(&parent)) {
            parent.children += 1;
        }
        let block = Block {
            parent,
            children: 0,
            pins: 1,
            used: self.clock,
        };
        self.blocks.insert(id, block);
        self.reserved -= 1;
        self.pinned += 1;
    }

    fn evict(&mut self) {
        let Some((_, id)) = self.leaves.pop_first() else {
            return;
        };
        self.evictions += 1;
        self.owners.removed(id);
        if let Some(changes) = &mut self.changes {
            changes.push(Change::Removed(id));
        }
        let parent = self.blocks.remove(&id).and_then(|block| block.parent);
        if let Some(id) = parent
            && let Some(parent) = self.blocks.get_mut(&id)
        {
            parent.children -= 1;
            if parent.may_go() {
                self.leaves.insert((parent.used, id));
            }
        }
    }

    /// Blocks that can be found.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether no block can be found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Blocks evicted so far.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Room that running sequences hold.
    #[must_use]
    pub fn held(&self) -> usize {
        self.pinned + self.reserved
    }

    /// Blocks that fit.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The keys that have come and gone since `version` of `epoch`. A key is here while a block is
    /// that was only ever read under this key: the first block that its prompts do not share with
    /// others goes last. Where keys name blocks, a key is here while its block is.
    #[must_use]
    pub fn changes_since(&self, version: u64, epoch: Option<u64>) -> CacheChanges {
        self.owners.changes_since(version, epoch)
    }
}
