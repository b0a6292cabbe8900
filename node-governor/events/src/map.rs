// SPDX-License-Identifier: Apache-2.0
//! The file in this process's memory, and what is asked of the system for each event. All unsafe code is here.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::slice;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use crate::words::{CLAIM, LOAD, STORE, Words};

/// The whole file, shared with all who have it mapped.
#[derive(Debug)]
pub(crate) struct Map {
    /// Of `memory`: not to be given away for longer than `self` lives.
    words: &'static [AtomicU64],
    /// Unmaps it when dropped.
    _memory: MmapRaw,
}

impl Map {
    /// The first bytes of the file, which must be that long.
    pub(crate) fn new(file: &File, bytes: u64) -> io::Result<Map> {
        let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
        MmapOptions::new().len(bytes).map_raw(file).map(Map::over)
    }

    /// All of it.
    fn over(memory: MmapRaw) -> Map {
        let (start, words) = (memory.as_ptr().cast(), memory.len() / 8);
        // SAFETY: mapped, readable and writable, for as long as `memory` is kept, which is as long as the slice;
        // aligned as the page it begins with; every process that has it mapped uses atomic words alone.
        let words = unsafe { slice::from_raw_parts(start, words) };
        Map {
            words,
            _memory: memory,
        }
    }

    #[inline]
    fn word(&self, offset: u64) -> &AtomicU64 {
        &self.words[offset as usize / 8]
    }
}

impl Words for Map {
    #[inline]
    fn load(&self, offset: u64) -> u64 {
        self.word(offset).load(LOAD)
    }

    #[inline]
    fn store(&self, offset: u64, word: u64) {
        self.word(offset).store(word, STORE);
    }

    fn claim(&self, offset: u64, word: u64) -> bool {
        self.word(offset)
            .compare_exchange(0, word, CLAIM, Ordering::Relaxed)
            .is_ok()
    }
}

/// `CLOCK_MONOTONIC`, which every Linux has.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: there is room for what is written; a timespec may be all zeros, should nothing be.
    let now = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, now.as_mut_ptr());
        now.assume_init()
    };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The core that this thread runs on.
#[inline]
pub(crate) fn core() -> Option<u16> {
    // SAFETY: it takes nothing and returns a number.
    u16::try_from(unsafe { libc::sched_getcpu() }).ok()
}

static FORKS: AtomicU64 = AtomicU64::new(0);

/// How many forks are between this process and the one that first asked: what a thread owned before one belongs
/// to its twin in the parent.
#[inline]
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// From now on forks are counted.
pub(crate) fn count_forks() {
    extern "C" fn forked() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: all that the handler does in the child is to add to an atomic. That it could not be registered
        // for want of memory is no reason to harm the program.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
}

#[cfg(test)]
mod tests;
