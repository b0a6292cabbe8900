// SPDX-License-Identifier: Apache-2.0
//! The cache: limited in bytes, evicts what was stored first, and remembers its latest changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::Kind;
use crate::changes::{CacheChanges, ChangeLog};
use crate::work::ResultId;

/// Results of joblets. The keys whose items are here, results of [`Kind::FeedSource`], are what
/// callers are told.
#[derive(Debug)]
pub struct Cache<T> {
    limit: u64,
    bytes: u64,
    items: FxHashMap<ResultId, Item<T>>,
    /// Results from the oldest on.
    order: BTreeMap<u64, ResultId>,
    /// The version of the items of every key that is here.
    keys: FxHashMap<Arc<str>, u128>,
    changes: ChangeLog,
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
            items: FxHashMap::default(),
            order: BTreeMap::new(),
            keys: FxHashMap::default(),
            changes: ChangeLog::new(log_limit, epoch),
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
            self.changes.came(&result.key);
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

    /// See [`ChangeLog::since`].
    #[must_use]
    pub fn changes_since(&self, version: u64, epoch: Option<u64>) -> CacheChanges {
        let here = |key: &str| self.contains(key);
        self.changes.since(version, epoch, here, || self.sources())
    }

    /// The keys whose items are here, the oldest first.
    fn sources(&self) -> impl Iterator<Item = Arc<str>> {
        let all = self.order.values();
        let sources = all.filter(|result| result.kind == Kind::FeedSource);
        sources.map(|result| Arc::clone(&result.key))
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
            self.changes.went(&result.key);
        }
    }
}
