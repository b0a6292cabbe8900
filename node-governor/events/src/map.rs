// SPDX-License-Identifier: Apache-2.0
//! The file in this process's memory. All unsafe code of the crate is here.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use crate::words::Words;

/// The whole file, shared with all who have it mapped.
#[derive(Debug)]
pub(crate) struct Map {
    memory: MmapRaw,
}

impl Map {
    pub(crate) fn new(file: &File, bytes: u64) -> io::Result<Map> {
        let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
        let memory = MmapOptions::new().len(bytes).map_raw(file)?;
        Ok(Map { memory })
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        let offset = offset as usize;
        assert!(offset.is_multiple_of(8) && offset < self.memory.len() - 7);
        // SAFETY: mapped, readable and writable, for as long as `self` lives; within its length and aligned, as
        // the page that it begins with; every process that has it mapped uses atomic words alone.
        unsafe { AtomicU64::from_ptr(self.memory.as_mut_ptr().add(offset).cast()) }
    }
}

impl Words for Map {
    fn load(&self, offset: u64) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    fn store(&self, offset: u64, word: u64) {
        self.word(offset).store(word, Ordering::Release);
    }

    fn claim(&self, offset: u64, word: u64) -> bool {
        self.word(offset)
            .compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

static FORKS: AtomicU64 = AtomicU64::new(0);

/// How many forks are between this process and the one that first asked: what a thread owned before one belongs
/// to its twin in the parent.
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
