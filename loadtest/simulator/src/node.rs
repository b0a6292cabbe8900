// SPDX-License-Identifier: Apache-2.0
//! One SIMULATED machine that answers searches: its cores, their frequencies, and the energy of a MODEL.
//!
//! ```text
//! Clients ─ a query ─> queue ─ its shards ─> Core (work at a frequency, or an idle state) ─> Tally
//!    ^                                        ^ │                                             ^
//!    └───────────── the last shard ends ──────┼─┤                              Chip: power ───┘
//!                                             │ └─ Sensed ─> weir_governor::planner::Planner ─┐
//!                                             └──────────────────── Plan ──────────────────┘
//! ```
//! The machine is that of Medeiros, *Profile-guided frequency scaling for search workloads* (document 002),
//! section 4.1. The planner is the governor's own code, called once a tick.

mod agent;
pub mod attributed;
pub mod beside_schedutil;
pub mod cell;
mod chip;
mod clairvoyant;
mod clients;
pub mod compared;
mod core;
pub mod document000;
pub mod document002;
mod governing;
mod idle;
mod load;
mod machine;
mod params;
mod queries;
pub mod report;
mod tally;

pub use agent::Agent;
pub use attributed::Attributed;
pub use chip::{MAX, MIN, steps};
pub use clairvoyant::Clairvoyant;
pub use idle::Allowed;
pub use load::{CLASSES, Load, Terms};
pub use machine::{Governor, Run, run};
pub use params::Params;
pub use tally::{Energy, Outcome};
