// SPDX-License-Identifier: Apache-2.0
//! All faults: each file is one.

mod all_drain;
mod bad_policy;
mod caller_disconnects;
mod certificate_expires;
mod clock_stepped;
mod connection_storm;
mod consul_agent_killed;
mod consul_gone;
mod consul_server_killed;
mod control_hung;
mod controls_gone;
mod disk_full;
mod host_failing;
mod host_frozen;
mod host_frozen_hedged;
mod host_killed;
mod host_slowed;
mod largest_table;
mod leader_frozen;
mod leader_killed;
mod leader_partitioned;
mod leader_stopped;
mod liar;
mod memory_budget;
mod owner_panics;
mod poison_key;
mod prometheus_killed;
mod resets;
mod sidecar_killed;
mod stream_blackholed;

use crate::faults::fault::Fault;

/// In the order in which they are played: those that share a mesh first. Before all others the frozen host: who has
/// had a burst has many idle connections.
pub const FAULTS: &[Fault] = &[
    host_frozen::FAULT,
    host_killed::FAULT,
    host_slowed::FAULT,
    host_failing::FAULT,
    sidecar_killed::FAULT,
    poison_key::FAULT,
    caller_disconnects::FAULT,
    connection_storm::FAULT,
    consul_agent_killed::FAULT,
    consul_server_killed::FAULT,
    consul_gone::FAULT,
    stream_blackholed::FAULT,
    control_hung::FAULT,
    host_frozen_hedged::FAULT,
    owner_panics::FAULT,
    resets::FAULT,
    prometheus_killed::FAULT,
    certificate_expires::FAULT,
    controls_gone::FAULT,
    leader_stopped::FAULT,
    leader_killed::FAULT,
    leader_frozen::FAULT,
    leader_partitioned::FAULT,
    clock_stepped::FAULT,
    disk_full::FAULT,
    all_drain::FAULT,
    largest_table::FAULT,
    liar::FAULT,
    memory_budget::FAULT,
    bad_policy::FAULT,
];
