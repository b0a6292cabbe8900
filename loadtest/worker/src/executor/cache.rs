// SPDX-License-Identifier: Apache-2.0
//! The cache: limited in bytes, evicts what was stored first, and remembers its latest changes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;

/// What changed in a cache, as `GET /cache` answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CacheChanges {
    /// Number of changes since the epoch began.
    pub version: u64,
    /// The life of the cache that `version` counts in.
    pub epoch: u64,
    /// True if `added` is everything, and whatever was known before is void.
    pub reset: bool,
    /// Keys that have come.
    pub added: Vec<Arc<str>>,
    /// Keys that have gone.
    pub removed: Vec<Arc<str>>,
}

/// Keys and sizes of what is held.
#[derive(Debug)]
pub struct Cache {
    limit: u64,
    bytes: u64,
    items: HashMap<Arc<str>, u64>,
    /// Keys from the oldest on.
    order: VecDeque<Arc<str>>,
    /// The changes up to `version`, oldest first: key and whether it came.
    log: VecDeque<(Arc<str>, bool)>,
    log_limit: usize,
    version: u64,
    epoch: u64,
    evictions: u64,
}

impl Cache {
    /// An empty cache of `limit` bytes that remembers `log_limit` changes.
    #[must_use]
    pub fn new(limit: u64, log_limit: usize, epoch: u64) -> Self {
        Self {
            limit,
            bytes: 0,
            items: HashMap::new(),
            order: VecDeque::new(),
            log: VecDeque::new(),
            log_limit,
            version: 0,
            epoch,
            evictions: 0,
        }
    }

    /// Whether the data of a key is here.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.items.contains_key(key)
    }

    /// Stores data, evicting the oldest until it fits. Data larger than the whole cache is not
    /// kept; data that is here already stays as it is.
    pub fn insert(&mut self, key: Arc<str>, bytes: u64) {
        if bytes > self.limit || self.items.contains_key(&key) {
            return;
        }
        while self.bytes > self.limit - bytes {
            self.evict_oldest();
        }
        self.bytes += bytes;
        self.items.insert(Arc::clone(&key), bytes);
        self.order.push_back(Arc::clone(&key));
        self.remember(key, true);
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Items held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Items evicted so far.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// What has changed since `version` of `epoch`. Everything, with `reset` set, if that is
    /// nothing this cache can know: version 0, one of the future, another epoch, or one so old
    /// that its changes are forgotten.
    #[must_use]
    pub fn changes_since(&self, version: u64, epoch: Option<u64>) -> CacheChanges {
        let behind = self.version.checked_sub(version);
        let known = behind.and_then(|n| self.log.len().checked_sub(usize::try_from(n).ok()?));
        match known {
            Some(from) if version > 0 && epoch.is_none_or(|e| e == self.epoch) => self.delta(from),
            _ => CacheChanges {
                version: self.version,
                epoch: self.epoch,
                reset: true,
                added: self.order.iter().cloned().collect(),
                removed: Vec::new(),
            },
        }
    }

    /// The net effect of the log from `from` on. A key's first change tells whether it was here
    /// before; the items tell whether it is here now.
    fn delta(&self, from: usize) -> CacheChanges {
        let mut first: HashMap<&Arc<str>, bool> = HashMap::new();
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for (key, came) in self.log.range(from..) {
            if first.insert(key, *came).is_some() {
                continue;
            }
            match (*came, self.contains(key)) {
                (true, true) => added.push(Arc::clone(key)),
                (false, false) => removed.push(Arc::clone(key)),
                _ => {}
            }
        }
        CacheChanges {
            version: self.version,
            epoch: self.epoch,
            reset: false,
            added,
            removed,
        }
    }

    fn evict_oldest(&mut self) {
        let Some(key) = self.order.pop_front() else {
            return;
        };
        self.bytes -= self.items.remove(&key).unwrap_or(0);
        self.evictions += 1;
        self.remember(key, false);
    }

    fn remember(&mut self, key: Arc<str>, came: bool) {
        self.version += 1;
        self.log.push_back((key, came));
        if self.log.len() > self.log_limit {
            self.log.pop_front();
        }
    }
}
