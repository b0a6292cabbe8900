// SPDX-License-Identifier: Apache-2.0
//! Certificates: which are shown, until when, and what the names in them allow.

mod authorization;
mod hosts;
mod renewal;
mod sidecar;

#[allow(dead_code)] // Other tests use more of it.
#[path = "../certificates/mod.rs"]
mod certificates;
#[allow(dead_code)] // The tests of threats use more of it.
#[path = "../threats/program.rs"]
mod program;
#[allow(dead_code)] // Other tests use more of it.
#[path = "../waits/mod.rs"]
mod waits;
