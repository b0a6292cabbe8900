// SPDX-License-Identifier: Apache-2.0
//! The node's governor: gives each core the frequency that what runs on it needs, and puts everything back.
//!
//! ```text
//!  events, /proc, /sys ── sense ──> Sensed ── plan ──> Plan ── apply ──> cpufreq
//!                                             (pure)           (on change; remembers what it found)
//! ```
//!
//! [`planner`], [`frequency`] and [`cores`] have no clock, files or generators of their own: the simulator runs the
//! same code.

pub mod admin;
pub mod apply;
pub mod book;
pub mod check;
pub mod config;
#[deny(clippy::disallowed_methods)]
pub mod cores;
#[deny(clippy::disallowed_methods)]
pub mod energy;
mod file_error;
pub mod flags;
#[deny(clippy::disallowed_methods)]
pub mod frequency;
mod get;
pub mod jobs;
#[deny(clippy::disallowed_methods)]
mod learner;
pub mod metrics;
#[deny(clippy::disallowed_methods)]
pub mod node;
#[deny(clippy::disallowed_methods)]
pub mod plan;
#[deny(clippy::disallowed_methods)]
pub mod planner;
#[deny(clippy::disallowed_methods)]
pub mod pressure;
mod regular;
pub mod restore;
pub mod root;
pub mod run;
pub mod sense;
#[deny(clippy::disallowed_methods)]
pub mod sensed;
mod stat;
pub mod state;
mod supervisor;
pub mod timeline;
pub mod top;
pub mod watchdog;

pub use file_error::FileError;
