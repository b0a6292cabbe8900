// SPDX-License-Identifier: Apache-2.0
//! What a caller sees while something is replaced: nothing. Real Envoys, weir-control and hosts under a steady load.
//!
//! A file a kind of reload. In each no request fails, all go on being chosen by a table, and the reload is
//! seen to have taken effect.

mod control_upgrade;
mod hot_restart;
mod module;
mod plugin;
mod policy;
mod start;
mod steady;
mod watched;

// The tests of faults use more of these.
#[allow(dead_code)]
#[path = "../faults/client.rs"]
mod client;
#[path = "../faults/config.rs"]
mod config;
#[path = "../envoy/http.rs"]
mod http;
#[allow(dead_code)]
#[path = "../faults/load.rs"]
mod load;
#[allow(dead_code)]
#[path = "../faults/process.rs"]
mod process;
#[allow(dead_code)]
#[path = "../envoy/sidecar.rs"]
mod sidecar;
#[path = "../envoy/tools.rs"]
mod tools;
#[allow(dead_code)]
#[path = "../faults/world.rs"]
mod world;
