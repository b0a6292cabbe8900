// SPDX-License-Identifier: Apache-2.0
//! The executor of a rule-processing host: which joblet runs next, on how many cores, and what
//! stays in the cache (document 001, sections 3.3 to 3.5).
//!
//! ```text
//! submit ─> FeedSource ─> SharedOperators ─> Operators ─> OutputFeed ─> ended
//!             │  a joblet waits in the scheduler, then holds cores ─┐
//!             │                                                      v
//!             └── skipped where a later result is cached <──── cache: every result
//!                 shared where an equal joblet waits or runs
//! ```
//!
//! Nothing here reads a clock, spends time or knows what a joblet computes. The caller passes
//! `now` (monotonic, from any origin), runs what [`Executor::start`] hands out and says when it has
//! ended. [`Emulator`] does so from modelled durations; a host does it with real work.

pub mod cache;
pub mod changes;
pub mod costs;
pub mod delay;
pub mod emulator;
pub mod executor;
pub mod id;
pub mod job;
mod joblet;
pub mod kind;
pub mod load;
pub mod scheduler;
pub mod suspension;
#[cfg(test)]
mod tests;
mod waiters;
pub mod work;
pub mod workflow;

pub use cache::{Cache, Eviction};
pub use changes::{CacheChanges, ChangeLog};
pub use costs::Cost;
pub use delay::RecentDelay;
pub use emulator::{Emulator, Modelled, Timing};
pub use executor::{Executor, Full, Settings};
pub use id::{JobId, JobletId};
pub use job::{Event, Request, Source, Spent, Step};
pub use joblet::Start;
pub use kind::Kind;
pub use load::{CLASSES, Load};
pub use scheduler::Order;
pub use suspension::Unwanted;
pub use work::{Product, ResultId, Work};
pub use workflow::{Firing, Plan, Workflow};
