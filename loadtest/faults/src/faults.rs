// SPDX-License-Identifier: Apache-2.0
//! All faults: each file is one.

mod caller_disconnects;
mod connection_storm;
mod host_failing;
mod host_frozen;
mod host_killed;
mod host_slowed;
mod owner_panics;
mod sidecar_killed;

use crate::fault::Fault;

/// In the order in which they are played: those that share a mesh first. Before all others the frozen host: who has
/// had a burst has many idle connections.
pub const FAULTS: &[Fault] = &[
    host_frozen::FAULT,
    host_killed::FAULT,
    host_slowed::FAULT,
    host_failing::FAULT,
    sidecar_killed::FAULT,
    caller_disconnects::FAULT,
    connection_storm::FAULT,
    owner_panics::FAULT,
];
