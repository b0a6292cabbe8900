// SPDX-License-Identifier: Apache-2.0
//! What a caller sees when something breaks: weir-control, hosts, a real Envoy and load, all on loopback.
//!
//! A file a fault. Counts and orders are asserted, never times; every wait has a generous end.

mod client;
mod config;
mod control_loss;
mod crash;
mod envoy_restart;
mod failing_host;
mod floor;
mod headers;
mod hedging;
mod holding;
mod hosts;
mod hosts_lost;
mod load;
mod overload;
mod plugin;
mod poison_key;
mod process;
mod resets;
mod stats;
mod tls;
#[allow(dead_code)] // The tests of reloads use more of it.
mod world;

#[path = "../certificates/mod.rs"]
mod certificates;
#[path = "../envoy/http.rs"]
mod http;
#[allow(dead_code)] // The tests of discovery use more of it.
#[path = "../envoy/sidecar.rs"]
mod sidecar;
#[path = "../envoy/tools.rs"]
mod tools;
