// SPDX-License-Identifier: Apache-2.0
//! The blocks that one host holds, and the names that are full where each of them ends.
//!
//! ```text
//!  (begin) ─> block ─> block ─> block      a block keeps where its text ends (a cursor) and the names that
//!                        └────> block      become full in it; a name is held while one block of it is
//! ```
//! A block whose parent is not known cannot be named, nor can those behind it: it is remembered as held, so that it
//! can be told from one that never was, until it is stored again behind a parent that is known.

mod copies;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use weir_policy::{KeyHash, Salt};
use xxhash_rust::xxh64::xxh64;

use crate::text::{Cursor, Names};
use crate::wire::{Hash, List, Place, Removed, Stored};
use copies::{Copies, Places};

/// How blocks are named.
#[derive(Clone, Debug)]
pub enum Naming {
    /// By the text of their tokens, as filters do.
    Text(Box<Names>),
    /// By the engine's own hash, as callers that know it do.
    Hash(Option<Salt>),
}

/// What came and went since it was asked last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// All that was there before went first.
    pub reset: bool,
    /// Names that came.
    pub added: Vec<KeyHash>,
    /// Names that went.
    pub removed: Vec<KeyHash>,
}

impl Changes {
    /// Whether nothing came or went.
    pub fn is_empty(&self) -> bool {
        !self.reset && self.added.is_empty() && self.removed.is_empty()
    }
}

/// What could not be named or kept, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks that came.
    pub stored: u64,
    /// Blocks that went.
    pub removed: u64,
    /// Times that all went.
    pub cleared: u64,
    /// Blocks behind one that is not known, with tokens that are not known, or for requests with something beside
    /// their text: they have no names.
    pub unnamed: u64,
    /// Blocks, or names of a block, for which there was no room.
    pub dropped: u64,
    /// Events of kinds that are not known here.
    pub unknown: u64,
}

impl Counts {
    /// Each by its name.
    pub fn by_kind(self) -> [(&'static str, u64); 6] {
        [
            ("stored", self.stored),
            ("removed", self.removed),
            ("cleared", self.cleared),
            ("unnamed", self.unnamed),
            ("dropped", self.dropped),
            ("unknown", self.unknown),
        ]
    }
}

/// The blocks of a host.
#[derive(Debug)]
pub struct Tree {
    naming: Naming,
    max_blocks: usize,
    blocks: HashMap<BlockId, Block>,
    /// How many of them have no name.
    nameless: usize,
    /// How many blocks each name is full in: the same text can be other tokens elsewhere.
    names: HashMap<KeyHash, u32>,
    places: Places,
    /// Names of which something is to be told: whether they are held now. At most twice as many as blocks.
    pending: HashMap<KeyHash, bool>,
    reset: bool,
    counts: Counts,
}

/// An engine's hash in 64 bits: two that are alike here are one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct BlockId(u64);

impl BlockId {
    fn of(hash: Hash<'_>) -> Self {
        match hash {
            Hash::Number(bits, _) => Self(bits),
            Hash::Bytes(bytes) => Self(xxh64(bytes, 0)),
        }
    }
}

#[derive(Debug)]
struct Block {
    copies: Copies,
    /// None: it could not be named.
    end: Option<Box<Cursor>>,
    names: Box<[KeyHash]>,
}

impl Block {
    fn is_nameless(&self) -> bool {
        self.end.is_none() && self.names.is_empty()
    }
}

impl Tree {
    /// A host of which nothing is known; of more than so many blocks, and of more than so many names, the rest is not.
    pub fn new(naming: Naming, max_blocks: usize) -> Self {
        Self {
            naming,
            max_blocks,
            blocks: HashMap::new(),
            nameless: 0,
            names: HashMap::new(),
            places: Places::default(),
            pending: HashMap::new(),
            reset: true,
            counts: Counts::default(),
        }
    }

    /// Blocks that are known.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Names that are held.
    pub fn names(&self) -> impl Iterator<Item = KeyHash> {
        self.names.keys().copied()
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What came and went since it was taken last. The first time, and where all was forgotten, it begins anew.
    pub fn take_changes(&mut self) -> Changes {
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for (name, is_held) in self.pending.drain() {
            match is_held {
                true => added.push(name),
                false => removed.push(name),
            }
        }
        let reset = std::mem::take(&mut self.reset);
        if reset {
            removed.clear();
        }
        Changes {
            reset,
            added,
            removed,
        }
    }

    /// Whether something came or went since it was taken last.
    pub fn has_changes(&self) -> bool {
        self.reset || !self.pending.is_empty()
    }

    /// What was taken is lost: the next changes are all that is held.
    pub fn tell_all_again(&mut self) {
        self.reset = true;
        self.pending = self.names.keys().map(|name| (*name, true)).collect();
    }

    /// Nothing of what was said counts any more.
    pub fn forget(&mut self) {
        self.blocks = HashMap::new();
        self.nameless = 0;
        self.names = HashMap::new();
        self.pending = HashMap::new();
        self.places = Places::default();
        self.reset = true;
    }

    /// All blocks went.
    pub fn clear(&mut self) {
        self.counts.cleared += 1;
        self.forget();
    }

    /// An event that is not known was passed over.
    pub fn pass_over(&mut self) {
        self.counts.unknown += 1;
    }

    /// Blocks went.
    pub fn remove(&mut self, removed: Removed<'_>) {
        let place = self.places.known(removed.place);
        let (mut hashes, mut left) = (removed.hashes, removed.copies_left);
        while let Some(hash) = hashes.next_hash() {
            self.counts.removed += 1;
            let left = left.as_mut().and_then(List::next_count);
            let (Some(place), Entry::Occupied(mut entry)) =
                (place, self.blocks.entry(BlockId::of(hash)))
            else {
                continue;
            };
            match left {
                Some(left) => entry.get_mut().copies.set(place, left),
                None => entry.get_mut().copies.remove(place),
            }
            if entry.get().copies.is_none() {
                let block = entry.remove();
                self.nameless -= usize::from(block.is_nameless());
                self.lose(&block.names);
            }
        }
    }

    /// Blocks came.
    pub fn store(&mut self, stored: Stored<'_>) {
        let blocks = stored.hashes.len() as u64;
        self.counts.stored += blocks;
        if stored.slides {
            // Of no use without the layers that keep all tokens, which tell of themselves.
            return;
        }
        let Some(place) = self.places.of(stored.place) else {
            self.counts.dropped += blocks;
            return;
        };
        match &self.naming {
            Naming::Hash(_) => self.store_hashes(stored.hashes, place),
            Naming::Text(_) => self.store_text(stored, place),
        }
    }

    fn store_hashes(&mut self, mut hashes: List<'_>, place: usize) {
        while let Some(hash) = hashes.next_hash() {
            let id = BlockId::of(hash);
            if self.count_copy(id, place) {
                continue;
            }
            let name = match &self.naming {
                Naming::Hash(salt) => KeyHash::under(salt.as_ref(), hash.to_string().as_bytes()),
                Naming::Text(_) => return,
            };
            self.insert(id, place, None, &[name]);
        }
    }

    fn store_text(&mut self, stored: Stored<'_>, place: usize) {
        let Stored {
            mut hashes,
            mut tokens,
            mut extra_keys,
            block_tokens,
            ..
        } = stored;
        let are_whole = stored.has_tokens_of_all();
        let mut cursor = self.cursor_before(&stored).filter(|_| are_whole);
        let mut names = Vec::new();
        while let Some(hash) = hashes.next_hash() {
            if let Some(extra_keys) = &mut extra_keys
                && !extra_keys.next_has_no_key_but(stored.adapter)
            {
                cursor = None;
            }
            let id = BlockId::of(hash);
            let known = self.blocks.get(&id).and_then(|block| block.end.as_deref());
            let known = known.cloned();
            names.clear();
            match known {
                // It is the same text: the hash is of all tokens so far.
                Some(end) => {
                    tokens.pass_over(block_tokens);
                    cursor = Some(end);
                }
                None => self.pass_block(&mut cursor, &mut tokens, block_tokens, &mut names),
            }
            self.put(id, place, cursor.as_ref(), &names);
            // Otherwise it is not known which of the tokens are the next one's.
            cursor = cursor.filter(|_| are_whole);
        }
    }

    /// Where the first of the blocks begins; none where that is not known.
    fn cursor_before(&mut self, stored: &Stored<'_>) -> Option<Cursor> {
        if stored.is_salted {
            return None;
        }
        if let Some(parent) = stored.parent {
            return self
                .blocks
                .get(&BlockId::of(parent))?
                .end
                .as_deref()
                .cloned();
        }
        match &mut self.naming {
            // Which adapter is named by a number alone is not known.
            Naming::Text(_) if stored.has_adapter_id && stored.adapter.is_none() => None,
            Naming::Text(names) => Some(names.begin(stored.adapter)),
            Naming::Hash(_) => None,
        }
    }

    fn pass_block(
        &self,
        cursor: &mut Option<Cursor>,
        tokens: &mut List<'_>,
        block_tokens: usize,
        names: &mut Vec<KeyHash>,
    ) {
        for left in (0..block_tokens).rev() {
            let (Some(place), Naming::Text(naming)) = (cursor.as_mut(), &self.naming) else {
                // The next block may be known, and its tokens come behind these.
                return tokens.pass_over(left + 1);
            };
            let token = tokens.next_token();
            let is_known = token.is_some_and(|token| naming.pass(place, token, |n| names.push(n)));
            if !is_known {
                names.clear();
                *cursor = None;
            }
        }
    }

    /// One more copy of a block, known or not.
    fn put(&mut self, id: BlockId, place: usize, end: Option<&Cursor>, names: &[KeyHash]) {
        let is_known = self.count_copy(id, place);
        if end.is_none() {
            self.counts.unnamed += 1;
        }
        if !is_known {
            self.insert(id, place, end.cloned(), names);
        } else if let Some(end) = end
            && let Some(block) = self.blocks.get_mut(&id)
            && block.end.is_none()
        {
            self.nameless -= usize::from(block.is_nameless());
            block.end = Some(Box::new(end.clone()));
            let names = self.gain(names);
            if let Some(block) = self.blocks.get_mut(&id) {
                block.names = names;
            }
        }
    }

    /// Counts a copy of a block that is known. False where it is not.
    fn count_copy(&mut self, id: BlockId, place: usize) -> bool {
        let block = self.blocks.get_mut(&id);
        block.map(|block| block.copies.add(place)).is_some()
    }

    fn insert(&mut self, id: BlockId, place: usize, end: Option<Cursor>, names: &[KeyHash]) {
        // Blocks behind one for which there was no room have no names: they are not to take the place of those that have.
        let is_nameless = end.is_none() && names.is_empty();
        let is_full = self.blocks.len() >= self.max_blocks;
        if is_full || is_nameless && self.nameless >= self.max_blocks / 2 {
            self.counts.dropped += 1;
            return;
        }
        let names = self.gain(names);
        let end = end.map(Box::new);
        let copies = Copies::one(place);
        let block = Block { copies, end, names };
        self.nameless += usize::from(block.is_nameless());
        self.blocks.insert(id, block);
    }

    /// Those of the names for which there is room are held once more.
    fn gain(&mut self, names: &[KeyHash]) -> Box<[KeyHash]> {
        let mut gained = Vec::with_capacity(names.len());
        for name in names {
            let is_full = self.names.len() >= self.max_blocks;
            match self.names.entry(*name) {
                Entry::Occupied(mut held) => *held.get_mut() = held.get().saturating_add(1),
                Entry::Vacant(_) if is_full => {
                    self.counts.dropped += 1;
                    continue;
                }
                Entry::Vacant(new) => {
                    new.insert(1);
                    self.note(*name, true);
                }
            }
            gained.push(*name);
        }
        gained.into_boxed_slice()
    }

    fn lose(&mut self, names: &[KeyHash]) {
        for name in names {
            let Entry::Occupied(mut held) = self.names.entry(*name) else {
                continue;
            };
            match held.get().checked_sub(1) {
                Some(left @ 1..) => *held.get_mut() = left,
                _ => {
                    held.remove();
                    self.note(*name, false);
                }
            }
        }
    }

    /// A name came or went. Where changes are not taken they would grow with each name that ever was: from some
    /// length on, all that is held is shorter.
    fn note(&mut self, name: KeyHash, is_held: bool) {
        if self.reset && !is_held {
            // What is told next begins without it.
            self.pending.remove(&name);
            return;
        }
        self.pending.insert(name, is_held);
        if self.pending.len() > self.max_blocks.saturating_mul(2) {
            self.tell_all_again();
        }
    }
}

impl Place<'_> {
    /// What a place of the engine's memory is known by.
    fn id(self) -> u64 {
        let medium = self.medium.unwrap_or_default().as_bytes();
        xxh64(medium, self.group.map_or(0, |group| group.wrapping_add(1)))
    }
}
