// SPDX-License-Identifier: Apache-2.0
//! Experiments on real processes: ways side by side, round after round.
//!
//! ```text
//!  command line ──> Experiment::set_up ──> turns, in an order drawn from the seed
//!                                            │ each: Experiment::play ──> rounds
//!                                            v
//!  rounds.jsonl, table.md, report.html <── table, verdicts ──> a claim that does not hold fails the run
//! ```
//! A new experiment is a file with an [`Experiment`] in it and an arm in `main.rs`. What is alike for all is
//! [`driver`]'s: files, progress, the table and the verdicts.

pub mod bench;
mod callers;
pub mod cgroups;
pub mod colocation;
mod costs;
pub mod crashing_filter;
pub mod demo;
pub mod document001;
pub mod driver;
pub mod faults;
pub mod fleet;
pub mod governor;
mod hosts;
pub mod load;
mod origin;
pub mod programs;
mod progress;
mod replay;
mod sampler;
pub mod scan;
pub mod search;
pub mod shared_node;
pub mod sidecar;
pub mod soak;
pub mod static_plan;
pub mod variant;
pub mod verdict;
mod watched;

pub use crate::driver::{Experiment, Folder, Seeded};
