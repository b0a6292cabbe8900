// SPDX-License-Identifier: Apache-2.0
//! Hot functions of programs that cannot be changed: any symbol of a running program or of a library that it
//! loads, in all its threads.
//!
//! ```text
//!  binary, symbol ── symbol ──> Site ── kernel ──> uprobe at entry, uretprobe at return (probe.bpf.c)
//!                                                        │ one lane for each thread
//!                                  the governor <── Memory (the lanes of weir_events, mapped)
//! ```
//!
//! A probe is for a file and not for a process: a program that is started again is covered, and a file that is
//! replaced is looked up and attached anew. Everything ends when [`Uprobes`] is dropped, or its process ends.

mod doctor;
mod error;
mod kernel;
mod memory;
mod sweep;
mod symbol;
mod uprobes;

pub use doctor::doctor;
pub use error::Error;
pub use memory::Memory;
pub use symbol::{Ends, Functions, Pace, Site, as_written, find};
pub use uprobes::{Change, Counts, Probe, Uprobes};
