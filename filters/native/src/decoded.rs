// SPDX-License-Identifier: Apache-2.0
//! Cache contents that one VM of the process has decoded: the others use the same, for as long as any keeps them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_filter::host::{CacheShard, WeakShard};

/// By name, when a shard was written and its contents.
pub(crate) struct Decoded(Mutex<BTreeMap<String, (u64, WeakShard)>>);

impl Decoded {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The contents of a shard as of when it was written; by `decode` where nobody has them.
    pub(crate) fn get(
        &self,
        name: &str,
        written_ns: u64,
        decode: impl FnOnce() -> Option<CacheShard>,
    ) -> Option<CacheShard> {
        if let Some(known) = known(&self.lock(), name, written_ns) {
            return Some(known);
        }
        // Requests of other threads do not wait for it. They may decode the same meanwhile: the first counts.
        let decoded = decode()?;
        let mut shards = self.lock();
        if let Some(first) = known(&shards, name, written_ns) {
            return Some(first);
        }
        shards.retain(|_, (_, shard)| !shard.is_gone());
        shards.insert(name.into(), (written_ns, decoded.downgrade()));
        Some(decoded)
    }

    /// A panic elsewhere leaves no entry half written.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (u64, WeakShard)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn known(
    shards: &BTreeMap<String, (u64, WeakShard)>,
    name: &str,
    written_ns: u64,
) -> Option<CacheShard> {
    let (written, shard) = shards.get(name)?;
    (*written == written_ns).then(|| shard.upgrade()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_decoded_once_for_as_long_as_somebody_keeps_it() {
        let decoded = Decoded::new();
        let never = || -> Option<CacheShard> { panic!("somebody has it") };
        let first = decoded.get("a", 1, || Some(CacheShard::default())).unwrap();
        let second = decoded.get("a", 1, never).unwrap();
        drop(first);
        assert!(decoded.get("a", 1, never).is_some());
        // Written again, or another one.
        assert!(decoded.get("a", 2, || None).is_none());
        assert!(decoded.get("b", 1, || None).is_none());
        drop(second);
        assert!(decoded.get("a", 1, || None).is_none(), "nobody keeps it");
        let kept = decoded.get("b", 1, || Some(CacheShard::default()));
        assert_eq!(decoded.lock().len(), 1, "what is gone is forgotten");
        drop(kept);
    }
}
