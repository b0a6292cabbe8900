// SPDX-License-Identifier: Apache-2.0
//! Which key a block belongs to, and which keys have blocks.

use std::collections::HashMap;
use std::sync::Arc;

use weir_executor::{CacheChanges, ChangeLog};

use crate::prompt::BlockId;

/// A block belongs to the key that it was first read under, until it is read under another: then
/// it is a common beginning and belongs to nobody.
#[derive(Debug)]
pub(super) struct Owners {
    of: HashMap<BlockId, Arc<str>>,
    blocks: HashMap<Arc<str>, usize>,
    changes: ChangeLog,
}

impl Owners {
    pub(super) fn new(change_log: usize, epoch: u64) -> Self {
        Self {
            of: HashMap::new(),
            blocks: HashMap::new(),
            changes: ChangeLog::new(change_log, epoch),
        }
    }

    /// A block was read for the first time.
    pub(super) fn added(&mut self, block: BlockId, key: Option<&Arc<str>>) {
        let Some(key) = key else {
            return;
        };
        self.of.insert(block, Arc::clone(key));
        let blocks = self.blocks.entry(Arc::clone(key)).or_insert(0);
        *blocks += 1;
        if *blocks == 1 {
            self.changes.came(key);
        }
    }

    /// A block that is here was found under this key.
    pub(super) fn shared(&mut self, block: BlockId, key: Option<&Arc<str>>) {
        if key.is_some_and(|key| self.of.get(&block).is_some_and(|owner| owner != key)) {
            self.removed(block);
        }
    }

    /// A block is gone, or nobody's any more.
    pub(super) fn removed(&mut self, block: BlockId) {
        let Some(key) = self.of.remove(&block) else {
            return;
        };
        if let Some(blocks) = self.blocks.get_mut(&key) {
            *blocks -= 1;
            if *blocks == 0 {
                self.blocks.remove(&key);
                self.changes.went(&key);
            }
        }
    }

    pub(super) fn changes_since(&self, version: u64, epoch: Option<u64>) -> CacheChanges {
        let here = |key: &str| self.blocks.contains_key(key);
        let all = || self.blocks.keys().cloned();
        self.changes.since(version, epoch, here, all)
    }
}
