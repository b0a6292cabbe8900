// SPDX-License-Identifier: Apache-2.0
//! Sends a workload open-loop and measures every answer.
//!
//! ```text
//! extract ── azure, mooncake, nasa, flash_crowd ──┐             bodies ──┐
//!   index ── feeds ────────────┴──> workload file ──> workload ──> dispatch ──at its offset──> exchange (attempts, back-off) ──> Record
//!                                                                                                                      │
//!                                                            progress line, --out, summary  <── recorder (a thread) <──┘
//! ```
//!
//! Open-loop: a request is sent at its offset whatever became of those before it, and its duration
//! counts from that offset, so a replayer or a server that falls behind shows in the figures.

pub mod arrivals;
pub mod azure;
pub mod backoff;
pub mod bodies;
pub mod dispatch;
pub mod excerpt;
pub mod exchange;
pub mod feeds;
pub mod flash_crowd;
mod log;
pub mod mooncake;
pub mod nasa;
pub mod popularity;
pub mod record;
pub mod recorder;
pub mod rng;
pub mod scenario;
pub mod summary;
pub mod table;
pub mod units;
pub mod workload;
