// SPDX-License-Identifier: Apache-2.0
//! Under a steady load hosts, keys, tables, VMs and callers come and go; who stays is weighed all the time, and
//! may not grow.
//!
//! ```text
//!  load ──> callers (Envoy, filter) ──> hosts (EMULATED)      churn ─> hosts, policies, VMs, callers
//!                  └── tables, reports ── weir-control          └──> samples ─> trend ─> verdicts, report
//! ```

mod churn;
mod load;
mod places;
mod report;
mod samples;
mod soak;
mod stage;
pub mod trend;
mod verdict;

pub use soak::{Outcome, Plan, Programs, run};
