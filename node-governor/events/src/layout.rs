// SPDX-License-Identifier: Apache-2.0
//! Where each word of the shared memory is, version 1. Every producer and every reader keeps to this.
//!
//! ```text
//!  header, 4096 bytes             lane heads, 256 bytes each          events, 16 bytes each
//!   0 u64 magic "WEIREVT1"         0 u64 owner, 0 = free               0 u64 time_ns
//!   8 u32 version 1                8 u64 thread_started                8 u64 word:
//!  12 u32 lanes                   16 u64 pid_namespace                   bits  0..32 low bits of its number
//!  16 u32 events_per_lane         64 u64 written                         bits 32..40 kind
//!  20 u32 functions 16            72 u64 core                            bits 40..48 function
//!  24 u64 state                  128 u64 since_ns[16]                    bits 48..64 core
//!  32 u64 created_unix_ms
//! ```
//!
//! The heads follow the header, the events of all lanes follow the heads. All numbers are little endian, all
//! times `CLOCK_MONOTONIC`. A word belongs to the lane's owner alone, who stores each with release order and in
//! this order for an event: time, word, since, core, written.
//!
//! `written` counts the lane's events and never goes back: the next owner goes on from there, so that what the
//! last one wrote is still read, or counted as lost. Whoever gives a lane back (its thread at its end, the
//! governor for a dead one) sets `since_ns`, `thread_started` and `pid_namespace` to 0, then `owner`.

#[cfg(target_endian = "big")]
compile_error!("the shared memory of weir-events is little endian");

mod event;
mod header;

pub use event::{Event, FunctionId, Kind, event_number};
pub use header::{Geometry, Header, HeaderError};

/// The first eight bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"WEIREVT1");
/// Of the layout.
pub const VERSION: u32 = 1;
/// Hot functions are told apart by numbers below this.
pub const FUNCTIONS: usize = 16;

/// Bytes of the header: one page.
pub const HEADER_BYTES: u64 = 4096;
/// Bytes of a lane's head.
pub const HEAD_BYTES: u64 = 256;
/// Bytes of an event.
pub const EVENT_BYTES: u64 = 16;

/// In the header: [`LIVE`] or [`RETIRED`].
pub const STATE: u64 = 24;
/// Producers may write.
pub const LIVE: u64 = 1;
/// The governor has replaced this file: producers attach again at their next call.
pub const RETIRED: u64 = 2;

/// In a head: whose lane it is, see [`Owner`].
pub const OWNER: u64 = 0;
/// In a head: field 22 of `/proc/PID/task/TID/stat`, which tells a thread from a later one with its id.
pub const THREAD_STARTED: u64 = 8;
/// In a head: inode of `/proc/self/ns/pid`.
pub const PID_NAMESPACE: u64 = 16;
/// In a head: events ever written to this lane.
pub const WRITTEN: u64 = 64;
/// In a head: the core at the last event.
pub const CORE: u64 = 72;
/// In a head: since when each function runs, 0 = it does not.
pub const SINCE_NS: u64 = 128;

/// In a head's [`CORE`]: the producer cannot know.
pub const UNKNOWN_CORE: u64 = u64::MAX;

/// The thread a lane belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
}

impl Owner {
    /// As it is in a head; `None` for a free lane.
    pub fn from_word(word: u64) -> Option<Owner> {
        let (pid, tid) = (word as u32, (word >> 32) as u32);
        (word != 0).then_some(Owner { pid, tid })
    }

    /// As it is in a head.
    pub const fn word(self) -> u64 {
        (self.tid as u64) << 32 | self.pid as u64
    }
}

#[cfg(test)]
mod tests;
