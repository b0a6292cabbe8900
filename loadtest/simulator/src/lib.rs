// SPDX-License-Identifier: Apache-2.0
//! SIMULATED fleets in modelled time: seeded, deterministic, as fast as the machine allows.
//!
//! ```text
//!             ┌────────────────────── Agenda (events in order of time) ──────────────────────┐
//! Workload ──>│ Caller (weir_policy::Cluster, decide) ──> Host (weir_executor::Emulator)      │──> Ended
//!             │    ^  └── reports ──> Control (weir_fleet's state) <── polls ──┘             │
//!             │    └───────────── tables ───┘                                                 │
//!             └───────────────────────────────────────────────────────────────────────────────┘
//! ```
//! The decision is the filter's own code, the tables and admission levels are weir-control's, the
//! hosts are the executor that real hosts run, or the EMULATED engine of a language model. What is modelled is only time: network, polls,
//! pushes, run and fetch times.

mod agenda;
mod at_once;
mod caller;
pub mod cell;
pub mod colocation;
mod control;
mod deal;
pub mod document001;
mod draws;
mod ended;
mod host;
pub mod host_loads;
mod joblets;
mod levels;
mod machine;
pub mod node;
pub mod overload;
mod params;
mod pending;
pub mod plan;
mod prompt;
pub mod scenario;
mod simulation;
mod stock;
pub mod tally;
pub mod what_if;
pub mod workload;

pub use at_once::at_once;
pub use ended::{Ended, Sample};
pub use levels::Levels;
pub use scenario::{Impossible, Scenario};
pub use simulation::{simulate, simulate_watched};
pub use workload::Workload;
