// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;

fn ids(numbers: &[u64]) -> Vec<BlockId> {
    numbers.iter().copied().map(BlockId).collect()
}

/// Reads a prompt as a lone sequence would, and lets it go; returns how much was found.
fn read(cache: &mut PrefixCache, prompt: &[BlockId], key: Option<&str>) -> usize {
    let found = cache.found(prompt);
    cache.pin(&prompt[..found]);
    assert!(cache.reserve(prompt.len() - found));
    cache.insert(prompt, key.map(|key| Key::new(key, None)).as_ref());
    cache.unpin(prompt);
    found
}

fn read_listed(cache: &mut PrefixCache, prompt: &[BlockId], list: &str) {
    let found = cache.found(prompt);
    cache.pin(&prompt[..found]);
    assert!(cache.reserve(prompt.len() - found));
    cache.insert(prompt, Some(&Key::new(list, Some(';'))));
    cache.unpin(prompt);
}

fn keys(cache: &PrefixCache) -> BTreeSet<String> {
    let changes = cache.changes_since(0, None);
    assert!(changes.reset);
    changes.added.iter().map(ToString::to_string).collect()
}

#[test]
fn the_longest_prefix_is_found_and_nothing_behind_a_gap() {
    let mut cache = PrefixCache::new(10, 10, 1);
    assert_eq!(read(&mut cache, &ids(&[1, 2, 3]), None), 0);
    assert_eq!(read(&mut cache, &ids(&[1, 2, 9]), None), 2);
    assert_eq!(cache.found(&ids(&[7, 2, 3])), 0);
}

#[test]
fn the_end_of_what_was_used_longest_ago_goes_first() {
    let mut cache = PrefixCache::new(6, 10, 1);
    read(&mut cache, &ids(&[1, 2, 3]), None);
    read(&mut cache, &ids(&[11, 12, 13]), None);
    read(&mut cache, &ids(&[21, 22]), None);
    assert_eq!(cache.found(&ids(&[1, 2, 3])), 1);
    assert_eq!(cache.found(&ids(&[11, 12, 13])), 3);
    assert_eq!((cache.evictions(), cache.len()), (2, 6));
}

#[test]
fn what_is_pinned_stays_and_too_little_room_evicts_nothing() {
    let mut cache = PrefixCache::new(4, 10, 1);
    read(&mut cache, &ids(&[1, 2]), None);
    read(&mut cache, &ids(&[3, 4]), None);
    cache.pin(&ids(&[1, 2]));
    assert!(!cache.reserve(3));
    assert_eq!(cache.len(), 4);
    assert!(cache.reserve(2));
    assert_eq!(cache.found(&ids(&[1, 2])), 2);
    assert_eq!((cache.found(&ids(&[3, 4])), cache.held()), (0, 4));
    cache.release(2);
    assert_eq!(cache.held(), 2);
}

#[test]
fn a_key_is_here_while_its_first_own_block_is() {
    let mut cache = PrefixCache::new(5, 10, 1);
    read(&mut cache, &ids(&[0, 1, 2]), Some("a"));
    read(&mut cache, &ids(&[0, 11, 12]), Some("b"));
    assert_eq!(keys(&cache), ["a", "b"].map(str::to_owned).into());
    let known = cache.changes_since(0, None).version;
    // The end of a's prompt goes, its first own block stays; then that goes too.
    read(&mut cache, &ids(&[0, 21]), None);
    assert!(keys(&cache).contains("a"));
    read(&mut cache, &ids(&[0, 31]), Some("c"));
    let changes = cache.changes_since(known, Some(1));
    assert_eq!(changes.removed, [Arc::from("a")]);
    assert_eq!(changes.added, [Arc::from("c")]);
}

#[test]
fn a_key_with_nothing_of_its_own_is_not_here() {
    let mut cache = PrefixCache::new(5, 10, 1);
    read(&mut cache, &ids(&[0]), Some("a"));
    assert_eq!(keys(&cache), ["a".to_owned()].into());
    read(&mut cache, &ids(&[0, 1]), Some("b"));
    assert_eq!(keys(&cache), ["b".to_owned()].into());
}

#[test]
fn keys_that_name_blocks_are_here_while_their_blocks_are() {
    let mut cache = PrefixCache::new(5, 10, 1);
    read_listed(&mut cache, &ids(&[0, 1, 2]), "one;two");
    read_listed(&mut cache, &ids(&[0, 1, 3]), "one;three");
    let all = ["one", "two", "three"].map(str::to_owned);
    assert_eq!(keys(&cache), all.into(), "block 0 has no name");
    read_listed(&mut cache, &ids(&[0, 9, 8]), "nine;eight");
    let left = ["one", "three", "nine", "eight"].map(str::to_owned);
    assert_eq!(keys(&cache), left.into());
}

/// The same cache written down naively: a list of blocks with the time of their last use, where
/// each eviction looks at all of them.
#[derive(Default)]
struct Naive {
    blocks: Vec<(BlockId, Option<BlockId>, usize)>,
}

impl Naive {
    fn read(&mut self, prompt: &[BlockId], capacity: usize, now: usize) -> usize {
        let here = |blocks: &[(BlockId, _, _)], id| blocks.iter().any(|block| block.0 == id);
        let mut found = 0;
        while found < prompt.len() && here(&self.blocks, prompt[found]) {
            found += 1;
        }
        while self.blocks.len() + prompt.len() - found > capacity {
            let blocks = &self.blocks;
            let may_go = |id| {
                !prompt[..found].contains(&id) && !blocks.iter().any(|block| block.1 == Some(id))
            };
            let leaves = (0..blocks.len()).filter(|n| may_go(blocks[*n].0));
            let oldest = leaves.min_by_key(|n| (blocks[*n].2, blocks[*n].0));
            self.blocks.remove(oldest.unwrap());
        }
        for (n, id) in prompt.iter().enumerate() {
            self.blocks.retain(|block| block.0 != *id);
            let parent = n.checked_sub(1).map(|before| prompt[before]);
            self.blocks.push((*id, parent, now));
        }
        found
    }
}

/// Prompts from a small tree, as chained ids make them: a block has one parent only.
fn prompts() -> impl Strategy<Value = Vec<Vec<BlockId>>> {
    let prompt = prop::collection::vec(0u64..3, 1..5).prop_map(|turns| {
        let chained = turns.iter().scan(1u64, |before, turn| {
            *before = *before * 4 + turn;
            Some(BlockId(*before))
        });
        chained.collect()
    });
    prop::collection::vec(prompt, 1..60)
}

proptest! {
    #[test]
    fn it_finds_what_a_naive_cache_finds(prompts in prompts(), capacity in 4usize..30) {
        let mut cache = PrefixCache::new(capacity, 1000, 1);
        let mut naive = Naive::default();
        let mut told = BTreeSet::new();
        let mut known = 0;
        for (now, prompt) in prompts.iter().enumerate() {
            let key = prompt.get(1).map(ToString::to_string);
            let found = read(&mut cache, prompt, key.as_deref());
            prop_assert_eq!(found, naive.read(prompt, capacity, now));
            prop_assert_eq!(cache.len(), naive.blocks.len());
            prop_assert!(cache.len() <= capacity && cache.held() == 0);
            let changes = cache.changes_since(known, Some(1));
            if changes.reset {
                told.clear();
            }
            told.extend(changes.added.iter().map(ToString::to_string));
            for key in &changes.removed {
                told.remove(&**key);
            }
            known = changes.version;
            prop_assert_eq!(&told, &keys(&cache));
        }
    }
}
