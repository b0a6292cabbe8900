// SPDX-License-Identifier: Apache-2.0
//! Data that the VMs of the process share, with the rules of the other shell's: each write of a key gives it another
//! number, and a write may ask that the number is still the one that was read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// By key, its number and value.
type Values = BTreeMap<String, (u32, Arc<[u8]>)>;

/// The data, which one thread at a time reads or writes.
pub(crate) struct Shared(Mutex<Values>);

impl Shared {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The value of a key, and its number; none where it was never written.
    pub(crate) fn get(&self, key: &str) -> Option<(Arc<[u8]>, u32)> {
        let (cas, value) = self.lock().get(key).cloned()?;
        Some((value, cas))
    }

    /// Every key, with its number and value.
    pub(crate) fn all(&self) -> Vec<(String, u32, Arc<[u8]>)> {
        let values = self.lock();
        let all = values
            .iter()
            .map(|(key, (cas, value))| (key.clone(), *cas, Arc::clone(value)));
        all.collect()
    }

    /// Writes a key: whatever it holds, or only where its number is `cas`. One that was never written is, whatever the
    /// `cas`. Says whether it did.
    pub(crate) fn set(&self, key: &str, value: &[u8], cas: Option<u32>) -> bool {
        let mut values = self.lock();
        let Some(there) = values.get_mut(key) else {
            values.insert(key.into(), (1, value.into()));
            return true;
        };
        if cas.is_some_and(|cas| cas != there.0) {
            return false;
        }
        // 0 is nobody's number, in the other shell too.
        *there = (there.0.wrapping_add(1).max(1), value.into());
        true
    }

    /// A panic elsewhere leaves no value half written.
    fn lock(&self) -> MutexGuard<'_, Values> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_asks_for_a_number_loses_to_any_write_in_between() {
        let shared = Shared::new();
        assert_eq!(shared.get("key"), None);
        // Never written: whatever is asked.
        assert!(shared.set("key", b"a", Some(77)));
        let (value, cas) = shared.get("key").unwrap();
        assert_eq!(&*value, b"a");
        assert!(shared.set("key", b"b", None));
        assert!(!shared.set("key", b"c", Some(cas)));
        let (value, cas) = shared.get("key").unwrap();
        assert_eq!(&*value, b"b");
        assert!(shared.set("key", b"c", Some(cas)));
        assert_eq!(&*shared.get("key").unwrap().0, b"c");
    }

    #[test]
    fn of_many_that_ask_for_one_number_one_writes() {
        let shared = Shared::new();
        shared.set("key", &[0], None);
        let (_, cas) = shared.get("key").unwrap();
        let written: usize = std::thread::scope(|scope| {
            let write = |by| usize::from(shared.set("key", &[by], Some(cas)));
            let threads: Vec<_> = (1..9).map(|by| scope.spawn(move || write(by))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(written, 1);
    }
}
