// SPDX-License-Identifier: Apache-2.0
//! Names with something each, and what they take.

use std::collections::BTreeMap;

/// Bytes that a name takes beside its letters: its place in the map and its allocation.
const PER_NAME: usize = 96;

/// What the name is counted as, in bytes.
fn weight(name: &str) -> usize {
    name.len() + PER_NAME
}

/// A map by name that knows its size.
#[derive(Debug)]
pub(super) struct Names<V> {
    of: BTreeMap<String, V>,
    bytes: usize,
}

impl<V> Names<V> {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.of.contains_key(name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&V> {
        self.of.get(name)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &String> {
        self.of.keys()
    }

    pub(super) fn insert(&mut self, name: &str, value: V) {
        if self.of.insert(name.to_owned(), value).is_none() {
            self.bytes += weight(name);
        }
    }

    /// Says whether it was there.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let was_there = self.of.remove(name).is_some();
        if was_there {
            self.bytes -= weight(name);
        }
        was_there
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.of.retain(|name, _| {
            let keep = keep(name);
            if !keep {
                self.bytes -= weight(name);
            }
            keep
        });
    }
}

impl<V: Default> Names<V> {
    pub(super) fn entry(&mut self, name: &str) -> &mut V {
        if !self.of.contains_key(name) {
            self.bytes += weight(name);
        }
        self.of.entry(name.to_owned()).or_default()
    }
}

impl<V> Default for Names<V> {
    fn default() -> Self {
        Self {
            of: BTreeMap::new(),
            bytes: 0,
        }
    }
}
