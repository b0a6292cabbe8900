// SPDX-License-Identifier: Apache-2.0
#![deny(clippy::disallowed_methods)]
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
//! Which host gets a request.
//!
//! ```text
//!  Table  (hosts, levels) ──┐
//!  CacheIndex (key → hosts) ├──> Cluster ── decide(request, now, rng) ──> Decision { outcome, reason }
//!  Feedback (what we sent, ─┘                 │            │
//!   what hosts answered)            overload/ │            │ selection/
//!                              level of a host: which    of the hosts that admit the
//!                              requests it admits        request, the best few
//! ```
//!
//! Everything is pure: time and randomness are arguments, so the filter, the simulator, the benchmarks
//! and `explain` run the same code. Times are [`std::time::Duration`]s since any origin that the caller
//! keeps to (the filter uses the proxy's monotonic clock).
//!
//! A new selection policy is a file in `selection/`, a variant of [`Selection`] and an arm in
//! `selection.rs`: it gets the hosts that admit the request and returns some of them, best first. A new
//! overload policy is a file in `overload/`, a variant of [`Overload`] and an arm in `overload.rs`: it gets
//! a host and returns its [`Level`].

mod account;
mod admission;
mod beside;
mod bouncing;
mod cache;
mod cluster;
mod decision;
mod every;
mod failed_keys;
mod feedback;
mod hashed;
mod health;
pub mod hedging;
pub mod holding;
mod host;
mod key;
mod keys;
mod level;
mod occupancy;
mod outlook;
pub mod overload;
mod places;
mod prefix;
mod ranked;
mod room;
mod salt;
pub mod selection;
mod standing;
mod table;
mod unread;
mod work;

pub use account::{Account, Has, Terms};
pub use beside::Beside;
pub use bouncing::BounceBudget;
pub use cache::{CacheIndex, CacheShard, Holder, ShardError, shard_of};
pub use cluster::{Answer, Cluster};
pub use decision::{Decision, Outcome, Reason, Request};
pub use feedback::Assignment;
pub use hedging::{Hedges, Hedging};
pub use holding::{Holding, Patience, Round, Ticket, WaitQueue};
pub use host::{Host, HostState, Load};
pub use key::{HostId, KeyHash, user_priority};
pub use keys::{Keys, MAX_BLOCKS, MAX_KEYS, ends_key};
pub use level::{CLASSES, Level, RANKS, Rank, USERS};
pub use occupancy::Occupancy;
pub use overload::{MovingLevel, Overload, dagor, steady};
pub use ranked::{MAX_RANKED, Ranked};
pub use room::{Claimant, Usage, fit};
pub use salt::Salt;
pub use selection::Selection;
pub use table::{MAX_CACHE_SHARDS, MAX_HOSTS, MAX_ZONES, Policy, Serves, Table, TableError};
pub use work::{Cost, Work};
