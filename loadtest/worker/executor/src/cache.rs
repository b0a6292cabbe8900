// SPDX-License-Identifier: Apache-2.0
//! The cache: limited in bytes; what it evicts first is chosen; and it remembers its latest changes.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::Kind;
use crate::changes::{CacheChanges, ChangeLog};
use crate::work::ResultId;

/// What leaves a cache that is full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Eviction {
    /// What was stored first (document 001, section 3.5).
    #[default]
    Oldest,
    /// What nobody used for [`WINDOW`], and then the largest: after LIFE of PACMan (Ananthanarayanan et al., "PACMan:
    /// Coordinated Memory Caching for Parallel Jobs", NSDI 2012), which shortens small jobs, of which there are most. A
    /// file there has parts on many hosts, and incomplete ones go first; here a project's items are whole, on one.
    Largest,
    /// What nobody used for [`WINDOW`], and then what was used least often: after LFU-F of the same.
    LeastUsed,
}

impl FromStr for Eviction {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "oldest" => Ok(Self::Oldest),
            "largest" => Ok(Self::Largest),
            "least-used" => Ok(Self::LeastUsed),
            _ => Err("expected oldest, largest or least-used".to_owned()),
        }
    }
}

/// PACMan evicts what was not used for a while whatever its size, lest a cache fills with what was wanted once. Its
/// length here is an assumption.
pub const WINDOW: Duration = Duration::from_secs(3600);

/// Place in the order in which results leave, the first first, and by when they were stored.
type Place = (u64, u64);

/// Results of joblets. The keys whose items are here, results of [`Kind::FeedSource`], are what
/// callers are told.
#[derive(Debug)]
pub struct Cache<T> {
    limit: u64,
    eviction: Eviction,
    bytes: u64,
    items: FxHashMap<ResultId, Item<T>>,
    order: BTreeMap<Place, ResultId>,
    /// By their last use, where that counts.
    used: BTreeMap<(Duration, u64), ResultId>,
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
    /// How many were stored before.
    number: u64,
    uses: u64,
    used: Duration,
}

impl<T> Item<T> {
    fn place(&self, eviction: Eviction) -> Place {
        let first = match eviction {
            Eviction::Oldest => 0,
            Eviction::Largest => u64::MAX - self.bytes,
            Eviction::LeastUsed => self.uses,
        };
        (first, self.number)
    }
}

impl<T> Cache<T> {
    /// An empty cache of `limit` bytes that remembers `log_limit` changes.
    #[must_use]
    pub fn new(limit: u64, eviction: Eviction, log_limit: usize, epoch: u64) -> Self {
        Self {
            limit,
            eviction,
            bytes: 0,
            items: FxHashMap::default(),
            order: BTreeMap::new(),
            used: BTreeMap::new(),
            keys: FxHashMap::default(),
            changes: ChangeLog::new(log_limit, epoch),
            evictions: 0,
            stored: 0,
        }
    }

    /// A result that is wanted now, if it is here.
    pub fn take_up(&mut self, now: Duration, result: &ResultId) -> Option<&T> {
        let item = self.items.get_mut(result)?;
        if self.eviction == Eviction::Oldest {
            return Some(&item.output);
        }
        let (place, used) = (item.place(self.eviction), item.used);
        item.uses += 1;
        item.used = now;
        if let Some(result) = self.order.remove(&place) {
            self.order.insert(item.place(self.eviction), result);
        }
        if let Some(result) = self.used.remove(&(used, item.number)) {
            self.used.insert((now, item.number), result);
        }
        Some(&item.output)
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

    /// Stores a result, evicting others until it fits. One larger than the whole cache is not
    /// kept; one that is here already stays as it is. New items of a key replace older ones.
    pub fn insert(&mut self, now: Duration, result: ResultId, output: T, bytes: u64) {
        if bytes > self.limit || self.items.contains_key(&result) {
            return;
        }
        if result.kind == Kind::FeedSource {
            self.drop_older(&result.key);
        }
        while self.bytes > self.limit - bytes {
            self.evict(now);
        }
        self.bytes += bytes;
        let item = Item {
            output,
            bytes,
            number: self.stored,
            uses: 1,
            used: now,
        };
        self.stored += 1;
        self.order.insert(item.place(self.eviction), result.clone());
        if self.eviction != Eviction::Oldest {
            self.used.insert((now, item.number), result.clone());
        }
        if result.kind == Kind::FeedSource {
            self.keys.insert(Arc::clone(&result.key), result.version);
            self.changes.came(&result.key);
        }
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

    /// The keys whose items are here, what leaves first first.
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

    fn evict(&mut self, now: Duration) {
        let long_ago = |used: Duration| now.saturating_sub(used) > WINDOW;
        let unused = self.used.first_key_value();
        let unused = unused.filter(|((used, _), _)| long_ago(*used));
        let first = || self.order.first_key_value().map(|(_, result)| result);
        let Some(result) = unused.map(|(_, result)| result).or_else(first).cloned() else {
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
        self.order.remove(&item.place(self.eviction));
        self.used.remove(&(item.used, item.number));
        if result.kind == Kind::FeedSource {
            self.keys.remove(&result.key);
            self.changes.went(&result.key);
        }
    }
}
