// SPDX-License-Identifier: Apache-2.0
//! The cache: limited in bytes, evicts what was stored first, and remembers its latest changes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;

use crate::Kind;
use crate::work::ResultId;

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

/// Results of joblets. The keys whose items are here, results of [`Kind::FeedSource`], are what
/// callers are told.
#[derive(Debug)]
pub struct Cache<T> {
    limit: u64,
    bytes: u64,
    items: HashMap<ResultId, Item<T>>,
    /// Results from the oldest on.
    order: BTreeMap<u64, ResultId>,
    /// The version of the items of every key that is here.
    keys: HashMap<Arc<str>, u128>,
    /// The changes up to `version`, oldest first: key and whether it came.
    log: VecDeque<(Arc<str>, bool)>,
    log_limit: usize,
    version: u64,
    epoch: u64,
    evictions: u64,
    stored: u64,
}

#[derive(Debug)]
struct Item<T> {
    output: T,
    bytes: u64,
    place: u64,
}

impl<T> Cache<T> {
    /// An empty cache of `limit` bytes that remembers `log_limit` changes.
    #[must_use]
    pub fn new(limit: u64, log_limit: usize, epoch: u64) -> Self {
        Self {
            limit,
            bytes: 0,
            items: HashMap::new(),
            order: BTreeMap::new(),
            keys: HashMap::new(),
            log: VecDeque::new(),
            log_limit,
            version: 0,
            epoch,
            evictions: 0,
            stored: 0,
        }
    }

    /// A result, if it is here.
    #[must_use]
    pub fn get(&self, result: &ResultId) -> Option<&T> {
        self.items.get(result).map(|item| &item.output)
    }

    /// Whether the items of a key are here, in whatever version.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    /// Stores a result, evicting the oldest until it fits. One larger than the whole cache is not
    /// kept; one that is here already stays as it is. New items of a key replace older ones.
    pub fn insert(&mut self, result: ResultId, output: T, bytes: u64) {
        if bytes > self.limit || self.items.contains_key(&result) {
            return;
        }
        if result.kind == Kind::FeedSource {
            self.drop_older(&result.key);
        }
        while self.bytes > self.limit - bytes {
            self.evict_oldest();
        }
        self.bytes += bytes;
        let place = self.stored;
        self.stored += 1;
        self.order.insert(place, result.clone());
        if result.kind == Kind::FeedSource {
            self.keys.insert(Arc::clone(&result.key), result.version);
            self.remember(Arc::clone(&result.key), true);
        }
        let item = Item {
            output,
            bytes,
            place,
        };
        self.items.insert(result, item);
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Results held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Results evicted so far.
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
                added: self.sources().collect(),
                removed: Vec::new(),
            },
        }
    }

    /// The keys whose items are here, the oldest first.
    fn sources(&self) -> impl Iterator<Item = Arc<str>> {
        let all = self.order.values();
        let sources = all.filter(|result| result.kind == Kind::FeedSource);
        sources.map(|result| Arc::clone(&result.key))
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

    fn drop_older(&mut self, key: &Arc<str>) {
        let Some(version) = self.keys.get(key).copied() else {
            return;
        };
        self.drop_result(&ResultId {
            kind: Kind::FeedSource,
            key: Arc::clone(key),
            version,
        });
    }

    fn evict_oldest(&mut self) {
        let Some((_, result)) = self.order.pop_first() else {
            return;
        };
        self.evictions += 1;
        self.drop_result(&result);
    }

    fn drop_result(&mut self, result: &ResultId) {
        let Some(item) = self.items.remove(result) else {
            return;
        };
        self.bytes -= item.bytes;
        self.order.remove(&item.place);
        if result.kind == Kind::FeedSource {
            self.keys.remove(&result.key);
            self.remember(Arc::clone(&result.key), false);
        }
    }

    fn remember(&mut self, key: Arc<str>, came: bool) {
        self.version += 1;
        self.log.push_back((key, came));
        if self.log.len() > self.log_limit {
            self.log.pop_front();
        }
    }
}
