// SPDX-License-Identifier: Apache-2.0
use std::sync::Arc;

use crate::KeyHash;

/// The most keys of a request that count. Of the requests of Mooncake's conversation trace (24.7 blocks of
/// 512 tokens on average) 93 % have no more, and of 98 % fewer were found again, however many caches there
/// are (measured over its first 40 minutes, one endless cache).
pub const MAX_KEYS: usize = 64;
/// Keys of a prompt that stand for a block each.
const SINGLE: usize = 32;
/// Behind them, each that many stand for twice as many blocks as those before.
const STEP: usize = 8;
/// Blocks of a prompt that all its keys together stand for.
pub const MAX_BLOCKS: usize = blocks(MAX_KEYS);

/// How many blocks of a prompt its first keys stand for: 1 to 32, then 34, 36 … 48, 52 … 80, 88 …, up to 272.
///
/// What tells prompts apart is mostly at their beginning, and how long one takes is what all of it takes: so a list
/// that is finest at the beginning says both.
const fn blocks(keys: usize) -> usize {
    let Some(behind) = keys.checked_sub(SINGLE) else {
        return keys;
    };
    let each = 2 << (behind / STEP);
    SINGLE + STEP * (each - 2) + behind % STEP * each
}

/// Whether a prompt's block with this number, from 1, is the last of those that a key stands for.
pub const fn ends_key(block: usize) -> bool {
    let Some(behind) = block.checked_sub(SINGLE + 1) else {
        return block > 0;
    };
    let each = 1 << (behind / STEP + 2).ilog2();
    (behind + 1 - STEP * (each - 2)).is_multiple_of(each)
}

/// What a host should have in its cache for a request: nothing, one key, or several in prefix order, each of
/// use only to a host that has all before it. What a language model keeps of prompts is like that.
///
/// A key is as good as any other, but for those of a prompt, which stand for more the later they come ([`ends_key`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(Repr);

/// One key, as nearly all requests have, is not worth an allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Repr {
    #[default]
    None,
    One(KeyHash),
    Several(Arc<[KeyHash]>),
    Prompt(Arc<[KeyHash]>),
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

    /// Those of a prompt, whose blocks have a key where [`ends_key`] says so.
    pub fn of_prompt(keys: impl IntoIterator<Item = KeyHash>) -> Self {
        match Self::new(keys).0 {
            Repr::Several(keys) => Self(Repr::Prompt(keys)),
            few => Self(few),
        }
    }

    /// How much of the data the first so many keys stand for; in keys, or in a prompt's blocks.
    pub fn share(&self, keys: usize) -> usize {
        match self.0 {
            Repr::Prompt(_) => blocks(keys),
            _ => keys,
        }
    }

    /// How much all of them stand for.
    pub fn size(&self) -> usize {
        self.share(self.as_slice().len())
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
            Repr::Several(keys) | Repr::Prompt(keys) => keys,
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

    #[test]
    fn keys_of_a_prompt_stand_for_more_the_later_they_come() {
        let each: Vec<_> = (0..MAX_KEYS).map(|n| blocks(n + 1) - blocks(n)).collect();
        assert!(each[..32].iter().all(|blocks| *blocks == 1), "{each:?}");
        for (step, blocks) in [2, 4, 8, 16].into_iter().enumerate() {
            let step = &each[32 + 8 * step..][..8];
            assert!(step.iter().all(|each| *each == blocks), "{each:?}");
        }
        assert_eq!(MAX_BLOCKS, each.iter().sum());
        let ends: Vec<_> = (0..=MAX_BLOCKS).filter(|block| ends_key(*block)).collect();
        assert_eq!(ends, (1..=MAX_KEYS).map(blocks).collect::<Vec<_>>());
        let keys = || (0..34).map(KeyHash);
        let (prompt, list) = (Keys::of_prompt(keys()), Keys::new(keys()));
        assert_eq!(prompt.as_slice(), list.as_slice());
        assert_eq!((prompt.share(33), prompt.size()), (34, 36));
        assert_eq!((list.share(33), list.size()), (33, 34));
        assert_eq!(Keys::of_prompt([KeyHash(7)]), KeyHash(7).into());
    }
}
