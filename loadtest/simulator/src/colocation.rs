// SPDX-License-Identifier: Apache-2.0
//! A latency-critical service and batch jobs on the same cores: document 004 (*Cloud Computing Architecture*,
//! semester project report: memcached and six PARSEC jobs), SIMULATED.
//!
//! ```text
//!   load (steps) ──> memcached's curves ──> p95 of each interval
//!                         │ use, p95            ^ cores
//!                         v                     │
//!                        Seen ──> weir_governor::cores ──> CorePlan ──> jobs' progress
//! ```
//! The plan is the governor's own code, tick by tick. What is modelled is the load, how memcached's use and
//! latency follow from load and cores, and how fast jobs are on how many cores.

mod batch;
mod chance;
mod fit;
pub mod history;
mod jobs;
mod load;
mod memcached;
mod params;
pub mod part3;
pub mod part4;
pub mod plots;
pub mod published;
pub mod report;
mod search;
mod several;
pub mod waste;

pub use fit::fit;
pub use params::Params;
