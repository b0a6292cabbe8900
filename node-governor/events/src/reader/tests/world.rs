// SPDX-License-Identifier: Apache-2.0
//! Shared memory in which each store is a step of its own, and what is true about it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;

use crate::Memory;
use crate::layout::{
    Event, FUNCTIONS, Geometry, HEAD_BYTES, HEADER_BYTES, OWNER, SINCE_NS, WRITTEN,
};
use crate::words::Words;

/// Stores that a thread has yet to do.
pub(super) type Pending = VecDeque<(u64, u64)>;

/// The memory, the threads' stores that are on their way to it, and what has been true of it.
#[derive(Debug)]
pub(super) struct World {
    pub(super) geometry: Geometry,
    words: RefCell<Vec<u64>>,
    /// For each thread.
    pub(super) pending: RefCell<Vec<Pending>>,
    /// Of each lane: all events ever written, by number.
    pub(super) events: RefCell<Vec<Vec<Event>>>,
    /// Of each word of the heads: what it has been since [`World::mark`].
    held: RefCell<Vec<Vec<u64>>>,
    random: Cell<u64>,
    /// Of 256 words that the reader reads, so many come after a step of some thread.
    pub(super) haste: u8,
    /// Whether the words that are read at once are read in any order.
    pub(super) shuffled: bool,
    /// How many words the reader may write until it is killed.
    pub(super) writes_left: Cell<u32>,
}

impl World {
    pub(super) fn new(geometry: Geometry, threads: usize, seed: u64) -> World {
        let lanes = geometry.lanes() as usize;
        World {
            geometry,
            words: RefCell::new(super::words(geometry)),
            pending: RefCell::new(vec![Pending::new(); threads]),
            events: RefCell::new(vec![Vec::new(); lanes]),
            held: RefCell::new(vec![Vec::new(); lanes * HEAD_BYTES as usize / 8]),
            random: Cell::new(seed | 1),
            haste: 0,
            shuffled: false,
            writes_left: Cell::new(u32::MAX),
        }
    }

    pub(super) fn word(&self, offset: u64) -> u64 {
        self.words.borrow()[offset as usize / 8]
    }

    /// Xorshift: Marsaglia, 2003.
    pub(super) fn random(&self, below: usize) -> usize {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        (x >> 8) as usize % below
    }

    /// One store, by whomever.
    pub(super) fn put(&self, offset: u64, word: u64) {
        self.words.borrow_mut()[offset as usize / 8] = word;
        let lane = (offset - HEADER_BYTES) / HEAD_BYTES;
        if lane >= u64::from(self.geometry.lanes()) {
            return;
        }
        self.held.borrow_mut()[(offset - HEADER_BYTES) as usize / 8].push(word);
        if offset == self.geometry.head(lane as u32) + WRITTEN {
            let events = &mut self.events.borrow_mut()[lane as usize];
            assert_eq!(word, events.len() as u64 + 1, "counts go up by one");
            let slot = self.geometry.event(lane as u32, word - 1);
            let event = Event::decode([self.word(slot), self.word(slot + 8)]);
            events.push(event.expect("a producer writes events"));
        }
    }

    /// Some thread's next store; `false` if none has any.
    pub(super) fn step(&self) -> bool {
        let threads = self.pending.borrow().len();
        let first = self.random(threads);
        (0..threads).any(|next| self.step_of((first + next) % threads))
    }

    /// This thread's next store; `false` if it has none.
    pub(super) fn step_of(&self, thread: usize) -> bool {
        let next = self.pending.borrow_mut()[thread].pop_front();
        let Some((offset, word)) = next else {
            return false;
        };
        self.put(offset, word);
        true
    }

    /// From now on it counts what the heads have been.
    pub(super) fn mark(&self) {
        let words = self.words.borrow();
        let heads = &words[HEADER_BYTES as usize / 8..];
        for (held, word) in self.held.borrow_mut().iter_mut().zip(heads) {
            held.clear();
            held.push(*word);
        }
    }

    fn has_held(&self, offset: u64, word: u64) -> bool {
        self.held.borrow()[(offset - HEADER_BYTES) as usize / 8].contains(&word)
    }

    /// Whether the lane has been without owner since the mark.
    pub(super) fn was_free(&self, lane: u32) -> bool {
        self.has_held(self.geometry.head(lane) + OWNER, 0)
    }

    /// Whether the function has run since then, or not at all for 0, at some time since the mark.
    pub(super) fn has_run(&self, lane: u32, function: usize, since: u64) -> bool {
        assert!(function < FUNCTIONS);
        let offset = self.geometry.head(lane) + SINCE_NS + 8 * function as u64;
        self.has_held(offset, since) || since == 0 && self.was_free(lane)
    }
}

/// The reader's access: threads go on between any two words.
impl Memory for &World {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        assert!(offset.is_multiple_of(8) && buffer.len().is_multiple_of(8));
        let words = buffer.as_chunks_mut().0;
        let count = words.len();
        // Coprime with every count of words here, so that each is read once.
        let stride = if self.shuffled { 1009 } else { 1 };
        let start = if self.shuffled { self.random(count) } else { 0 };
        for step in 0..count {
            if self.random(256) < usize::from(self.haste) {
                self.step();
            }
            let index = (start + step * stride) % count;
            words[index] = self.word(offset + 8 * index as u64).to_le_bytes();
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        for (index, word) in bytes.as_chunks().0.iter().enumerate() {
            let left = self.writes_left.get();
            let left = left.checked_sub(1).ok_or(io::ErrorKind::Interrupted)?;
            self.writes_left.set(left);
            self.step();
            self.put(offset + 8 * index as u64, u64::from_le_bytes(*word));
        }
        Ok(())
    }
}

/// A thread's access: it sees its own stores at once, others when they are done.
pub(super) struct View<'a> {
    pub(super) world: &'a World,
    pub(super) thread: usize,
}

impl Words for View<'_> {
    fn load(&self, offset: u64) -> u64 {
        let pending = &self.world.pending.borrow()[self.thread];
        let mine = pending.iter().rev().find(|(at, _)| *at == offset);
        mine.map_or_else(|| self.world.word(offset), |(_, word)| *word)
    }

    fn store(&self, offset: u64, word: u64) {
        self.world.pending.borrow_mut()[self.thread].push_back((offset, word));
    }

    fn claim(&self, offset: u64, word: u64) -> bool {
        let free = self.world.word(offset) == 0;
        if free {
            self.world.put(offset, word);
        }
        free
    }
}
