// SPDX-License-Identifier: Apache-2.0
//! The configuration entries and registrations by which a Consul mesh chooses hosts by Weir.
//!
//! ```text
//!  Weir: services, callers, module ─┐
//!                                   ├─ Share of each entry ─┬─ with(what stands there) ──> what to write
//!  Datacenter: name, trust domain ──┘                       └─ without(what stands there) ─> what is left
//! ```
//!
//! A [`Sidecar`] is how an instance is registered. An entry may hold more than Weir's share: that stays. No I/O: `weirctl consul` and the lab's mesh tell Consul.

mod normal;
mod parts;
mod registration;
mod share;
mod weir;

pub use parts::{Datacenter, is_ours};
pub use registration::{Calls, STATIC_CONTROL, Sidecar, StaticCluster, TRANSPARENT, Upstream};
pub use share::{Kind, Outcome, Refused, Share, Written, says_the_same};
pub use weir::{Control, Mistake, Module, Weir, merge};
