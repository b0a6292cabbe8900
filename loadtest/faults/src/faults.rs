// SPDX-License-Identifier: Apache-2.0
//! All faults: each file is one.

mod host_killed;

use crate::fault::Fault;

/// In the order in which they are played: those that share a mesh first.
pub const FAULTS: &[Fault] = &[host_killed::FAULT];
