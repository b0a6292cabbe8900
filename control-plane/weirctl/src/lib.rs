// SPDX-License-Identifier: Apache-2.0
//! Shows what Weir does and why, and finds the link that is broken.
//!
//! ```text
//!  weir-control's pages ─┐                 ┌─ status, hosts, levels, sidecars, explain, diff ─┐
//!                        ├─ page ─ answers ┤   (pure)                                          ├─ screen: table or JSON
//!  Envoys' admin pages ──┘                 └─ doctor: evidence ─ links ─ findings (pure) ─────┘
//! ```
//!
//! Everything is read; nothing is changed but by [`consul::apply`] and [`consul::remove`]. `collect` takes access logs that Envoys stream; `capture` makes a workload for
//! the simulator of them.

pub mod answers;
pub mod capture;
pub mod collect;
pub mod commands;
pub mod consul;
pub mod control;
pub mod doctor;
pub mod flags;
pub mod leading;
pub mod page;
pub mod screen;
