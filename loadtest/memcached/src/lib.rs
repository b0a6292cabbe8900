// SPDX-License-Identifier: Apache-2.0
//! Asks memcached open-loop, at a rate that steps, and tells latency by interval.
//!
//! ```text
//! Steps ──> Arrivals (when) ─┐                            ┌─> Interval ──> Figures ──> table, JSON lines
//! seed ───> keys (what) ─────┴─> Load ───> Connection ────┘     (each answer counts where it was due)
//!                                 ^ one thread, poll(2)  └──> memcached  └─> page of metrics
//! ```
//!
//! Open loop: a request is due when the schedule says so, whatever became of those before it, and
//! its latency counts from then. A server that stands still, or a client that is late, shows.

mod answer;
mod connection;
pub mod drive;
pub mod interval;
pub mod keys;
pub mod page;
pub mod preload;
pub mod schedule;
pub mod server;
pub mod table;
pub mod target;
pub mod total;
