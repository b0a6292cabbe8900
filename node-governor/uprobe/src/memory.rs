// SPDX-License-Identifier: Apache-2.0
//! The lanes that the kernel side writes, read through a mapping.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use crate::Error;

/// How many threads can be watched at once, and how many events of each are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// 1 to 4096: one for each thread that has ever been in a hot function and lives.
    pub lanes: u32,
    /// A power of two, 16 to 65536.
    pub events_per_lane: u32,
}

/// Of the map that holds the lanes.
pub(crate) const PIECE: usize = 256;
const HEADER: usize = 4096;

impl Default for Lanes {
    fn default() -> Self {
        Self {
            lanes: 256,
            events_per_lane: 256,
        }
    }
}

impl Lanes {
    pub(crate) fn check(self) -> Result<Self, Error> {
        let refuse = |field, value: u32, reason| {
            Err(Error::Lanes {
                field,
                value: value.into(),
                reason,
            })
        };
        if !(1..=4096).contains(&self.lanes) {
            return refuse("lanes", self.lanes, "1 to 4096");
        }
        let events = self.events_per_lane;
        if !(16..=65536).contains(&events) || !events.is_power_of_two() {
            return refuse("events_per_lane", events, "a power of two, 16 to 65536");
        }
        Ok(self)
    }

    /// Of the whole memory, in bytes.
    pub(crate) fn length(self) -> usize {
        let (lanes, events) = (self.lanes as usize, self.events_per_lane as usize);
        HEADER + lanes * 256 + lanes * events * 16
    }

    pub(crate) fn pieces(self) -> u32 {
        (self.length() / PIECE) as u32
    }
}

/// The lanes, in the layout of `weir_events`. It can be read for as long as it is held, but nothing is written any
/// more once the [`Uprobes`](crate::Uprobes) that it came with are dropped.
#[derive(Debug)]
pub struct Memory {
    map: MmapRaw,
}

impl Memory {
    pub(crate) fn new(map: BorrowedFd<'_>, length: usize) -> Result<Self, Error> {
        let map = MmapOptions::new()
            .len(length)
            .map_raw(map.as_raw_fd())
            .map_err(Error::Map)?;
        Ok(Self { map })
    }

    /// Of the whole memory, in bytes.
    pub fn length(&self) -> u64 {
        self.map.len() as u64
    }

    /// Fills `to` with what is at `offset`. Both are whole words of 8 bytes; each word is one that was written as a
    /// whole, and none is older than those before it.
    pub fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(to.len() as u64);
        if !offset.is_multiple_of(8)
            || !to.len().is_multiple_of(8)
            || end.is_none_or(|end| end > self.length())
        {
            let text = format!("{} bytes at {offset} of {}", to.len(), self.length());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        for (index, word) in to.chunks_exact_mut(8).enumerate() {
            let value = self
                .word(offset as usize + index * 8)
                .load(Ordering::Acquire);
            word.copy_from_slice(&value.to_ne_bytes());
        }
        Ok(())
    }

    /// Calls that have not ended.
    pub(crate) fn running(&self, lanes: u32) -> impl Iterator<Item = Running> + '_ {
        (0..lanes).flat_map(move |lane| {
            let owner = self.word(head(lane)).load(Ordering::Acquire);
            let functions = if owner == 0 { 0..0 } else { 0..16 };
            functions.filter_map(move |function| {
                let since = self.word(since(lane, function)).load(Ordering::Acquire);
                (since != 0).then_some(Running {
                    lane,
                    process: owner as u32,
                    thread: (owner >> 32) as u32,
                    function,
                    since,
                })
            })
        })
    }

    /// Says that a call is over, unless the kernel side has said more of it by now.
    pub(crate) fn end(&self, call: &Running) {
        let word = self.word(since(call.lane, call.function));
        let _ = word.compare_exchange(call.since, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(
            at.is_multiple_of(8) && at + 8 <= self.map.len(),
            "within the memory"
        );
        // SAFETY: `at` was checked; the mapping is page aligned, lives as long as `self` and is of a kernel array,
        // which never shrinks. The kernel's writes are of whole words too.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }
}

/// A call that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) lane: u32,
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) function: usize,
    pub(crate) since: u64,
}

fn head(lane: u32) -> usize {
    HEADER + lane as usize * 256
}

fn since(lane: u32, function: usize) -> usize {
    head(lane) + 128 + function * 8
}
