// SPDX-License-Identifier: Apache-2.0
//! What happened to the service's cores and the jobs over time: a file of lines, and the page made of it.
//!
//! ```text
//!  SharesBook, Tail ── Recorder (what changed) ── thread ──> timeline.jsonl, 16 MB ──> timeline.1.jsonl
//!                                                                 └── page ──> one HTML file, whoever asks
//! ```

mod coarse;
mod history;
mod line;
pub mod page;
mod record;
mod tables;
mod write;

pub use record::Recorder;

/// In the folder of the jobs' logs.
pub const FILE: &str = "timeline.jsonl";
/// The one before it.
pub const OLD_FILE: &str = "timeline.1.jsonl";
