// SPDX-License-Identifier: Apache-2.0
//! Tells the node's governor which hot function runs on which thread, and since when.
//!
//! ```text
//!  thread ── Ring::enter ──> its lane ┐                         ┌─> since when each function runs
//!  thread ── Ring::enter ──> its lane ┼─ file, shared memory ── Reader ─> events since the last tick
//!  C, Java, eBPF ──────────> a lane   ┘                         └─> how many of them were lost
//! ```
//!
//! A lane has one writer, who never waits. Its head holds the truth, which is since when each function has been
//! running; behind it is a ring of the last events. A reader that falls behind loses events, which it counts, and
//! never the truth: no lost "leave" leaves a function running.
//!
//! A program needs one line where the hot function begins:
//!
//! ```
//! const SCORE: weir_events::FunctionId = weir_events::FunctionId::new(3).unwrap();
//!
//! fn score() {
//!     let _hot = weir_events::hot(SCORE);
//!     // What is left of the function is hot, also if it panics.
//! }
//! # score();
//! ```

#[cfg(test)]
mod account;
mod file_error;
mod lane;
pub mod layout;
mod map;
mod memory;
mod problem;
mod reader;
mod ring;
mod words;

pub use file_error::FileError;
pub use layout::{Event, FunctionId, Geometry, Kind, Owner};
pub use memory::Memory;
pub use problem::Problem;
pub use reader::{Lane, Opened, ReadError, Reader, Tick};
pub use ring::{DEFAULT_RING, Hot, RING_VARIABLE, Ring, hot};
