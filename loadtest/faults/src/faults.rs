// SPDX-License-Identifier: Apache-2.0
//! All faults: each file is one.

mod clock_stepped;
mod consul_agent_killed;
mod consul_gone;
mod consul_server_killed;
mod control_hung;
mod controls_gone;
mod disk_full;
mod host_killed;
mod largest_table;
mod leader_frozen;
mod leader_killed;
mod leader_partitioned;
mod leader_stopped;
mod prometheus_killed;
mod stream_blackholed;

use crate::fault::Fault;

/// In the order in which they are played: those that share a mesh first.
pub const FAULTS: &[Fault] = &[
    host_killed::FAULT,
    consul_agent_killed::FAULT,
    consul_server_killed::FAULT,
    consul_gone::FAULT,
    stream_blackholed::FAULT,
    control_hung::FAULT,
    prometheus_killed::FAULT,
    controls_gone::FAULT,
    leader_stopped::FAULT,
    leader_killed::FAULT,
    leader_frozen::FAULT,
    leader_partitioned::FAULT,
    clock_stepped::FAULT,
    disk_full::FAULT,
    largest_table::FAULT,
];
