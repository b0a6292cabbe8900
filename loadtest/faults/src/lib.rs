// SPDX-License-Identifier: Apache-2.0
//! What happens when parts of a mesh die, lie or hang: faults under steady load.
//!
//! ```text
//! Fault ── plan ──> Mesh            load ──open-loop──> callers ──> hosts (note what they execute)
//!   └───── run ───> Stage ─harm─>     │                                │
//!                                  Records ──> Figures ──> Verdict <── Executions, in-flight counters
//! ```
//!
//! A fault is one small file in `faults/`: what is harmed, how long, and what is expected then. The rest is the
//! same for all: a calm phase, the harm and its end under the same load, a calm phase, the checks.

mod crashing_filter;
pub mod executions;
pub mod fault;
mod faults;
pub mod figures;
mod front;
pub mod in_flight;
pub mod load;
pub mod outcome;
pub mod record;
pub mod run;
pub mod signs;
pub mod stage;
pub mod table;
pub mod verdict;

pub use crate::faults::FAULTS;
