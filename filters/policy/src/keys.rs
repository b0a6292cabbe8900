// SPDX-License-Identifier: Apache-2.0
use std::sync::Arc;

use crate::KeyHash;

/// The most keys of a request that count. Of the requests of Mooncake's conversation trace (24.7 blocks of
/// 512 tokens on average) 93 % have no more, and of 98 % fewer were found again, however many caches there
/// are (measured over its first 40 minutes, one endless cache).
pub const MAX_KEYS: usize = 64;

/// What a host should have in its cache for a request: nothing, one key, or several in prefix order, each of
/// use only to a host that has all before it. What a language model keeps of prompts is like that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(Repr);

/// One key, as nearly all requests have, is not worth an allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Repr {
    #[default]
    None,
    One(KeyHash),
    Several(Arc<[KeyHash]>),
}

impl Keys {
    /// In their order; those beyond [`MAX_KEYS`] are left out.
    pub fn new(keys: impl IntoIterator<Item = KeyHash>) -> Self {
        let mut keys = keys.into_iter().take(MAX_KEYS);
        let Some(first) = keys.next() else {
            return Self::default();
        };
        let Some(second) = keys.next() else {
            return first.into();
        };
        Self(Repr::Several(
            [first, second].into_iter().chain(keys).collect(),
        ))
    }

    /// The last key: who has it has all.
    pub fn last(&self) -> Option<KeyHash> {
        self.as_slice().last().copied()
    }

    /// The keys, in prefix order.
    pub fn as_slice(&self) -> &[KeyHash] {
        match &self.0 {
            Repr::None => &[],
            Repr::One(key) => std::slice::from_ref(key),
            Repr::Several(keys) => keys,
        }
    }
}

impl From<KeyHash> for Keys {
    fn from(key: KeyHash) -> Self {
        Self(Repr::One(key))
    }
}

impl From<Option<KeyHash>> for Keys {
    fn from(key: Option<KeyHash>) -> Self {
        Self(key.map_or(Repr::None, Repr::One))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_so_many_keys_count_and_their_order_stays() {
        for count in [0, 1, 2, MAX_KEYS as u64, MAX_KEYS as u64 + 1] {
            let all: Vec<_> = (0..count).map(KeyHash).collect();
            let keys = Keys::new(all.iter().copied());
            assert_eq!(keys.as_slice(), &all[..all.len().min(MAX_KEYS)]);
        }
        assert_eq!(Keys::new([KeyHash(7)]), KeyHash(7).into());
        assert_eq!(Keys::default(), None.into());
    }
}
