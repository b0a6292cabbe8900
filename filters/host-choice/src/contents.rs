// SPDX-License-Identifier: Apache-2.0
//! Cache contents of a process whose VMs can hand them to each other: as they were decoded when they came.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_policy::CacheShard;

/// The newest contents of each shard, by its name.
#[derive(Debug)]
pub struct Contents(Mutex<BTreeMap<String, CacheShard>>);

impl Contents {
    /// None of any shard.
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Those of a shard; a copy shares them.
    pub fn get(&self, name: &str) -> Option<CacheShard> {
        self.lock().get(name).cloned()
    }

    /// Replaces those of a shard; by none, forgets it.
    pub fn set(&self, name: &str, contents: Option<CacheShard>) {
        let mut shards = self.lock();
        let before = match contents {
            Some(contents) => shards.insert(name.into(), contents),
            None => shards.remove(name),
        };
        // Nobody waits while they are freed.
        drop(shards);
        drop(before);
    }

    /// A panic elsewhere leaves no entry half written.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, CacheShard>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Contents {
    fn default() -> Self {
        Self::new()
    }
}
