// SPDX-License-Identifier: Apache-2.0
//! The latest changes in what a cache holds, for whoever asks again and again.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
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

/// The latest changes of a set of keys that somebody else holds.
#[derive(Debug)]
pub struct ChangeLog {
    /// The changes up to `version`, oldest first: key and whether it came.
    log: VecDeque<(Arc<str>, bool)>,
    limit: usize,
    version: u64,
    epoch: u64,
}

impl ChangeLog {
    /// Nothing has changed yet; `limit` changes will be remembered.
    #[must_use]
    pub fn new(limit: usize, epoch: u64) -> Self {
        Self {
            log: VecDeque::new(),
            limit,
            version: 0,
            epoch,
        }
    }

    /// A key that was not there is.
    pub fn came(&mut self, key: &Arc<str>) {
        self.remember(Arc::clone(key), true);
    }

    /// A key that was there is not.
    pub fn went(&mut self, key: &Arc<str>) {
        self.remember(Arc::clone(key), false);
    }

    /// What has changed since `version` of `epoch`. Everything, with `reset` set, if that is
    /// nothing this log can know: version 0, one of the future, another epoch, or one so old that
    /// its changes are forgotten. `here` and `all` tell what is there now.
    pub fn since<A: Iterator<Item = Arc<str>>>(
        &self,
        version: u64,
        epoch: Option<u64>,
        here: impl Fn(&str) -> bool,
        all: impl FnOnce() -> A,
    ) -> CacheChanges {
        let behind = self.version.checked_sub(version);
        let known = behind.and_then(|n| self.log.len().checked_sub(usize::try_from(n).ok()?));
        match known {
            Some(from) if version > 0 && epoch.is_none_or(|e| e == self.epoch) => {
                self.delta(from, here)
            }
            _ => CacheChanges {
                reset: true,
                added: all().collect(),
                ..self.nothing()
            },
        }
    }

    /// The net effect of the log from `from` on. A key's first change tells whether it was there
    /// before; `here` tells whether it is there now.
    fn delta(&self, from: usize, here: impl Fn(&str) -> bool) -> CacheChanges {
        let mut first: FxHashMap<&Arc<str>, bool> = FxHashMap::default();
        let mut changes = self.nothing();
        for (key, came) in self.log.range(from..) {
            if first.insert(key, *came).is_some() {
                continue;
            }
            match (*came, here(key)) {
                (true, true) => changes.added.push(Arc::clone(key)),
                (false, false) => changes.removed.push(Arc::clone(key)),
                _ => {}
            }
        }
        changes
    }

    fn nothing(&self) -> CacheChanges {
        CacheChanges {
            version: self.version,
            epoch: self.epoch,
            reset: false,
            added: Vec::new(),
            removed: Vec::new(),
        }
    }

    fn remember(&mut self, key: Arc<str>, came: bool) {
        self.version += 1;
        self.log.push_back((key, came));
        if self.log.len() > self.limit {
            self.log.pop_front();
        }
    }
}
