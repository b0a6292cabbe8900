// SPDX-License-Identifier: Apache-2.0
//! Faults as a caller sees them: weir-control, hosts, a real Envoy and load, all on loopback.
//!
//! A file a fault. Counts and orders are asserted, never times; every wait has a generous end.

mod bodies;
mod bounces;
mod control_loss;
mod crash;
mod credits;
mod envoy_restart;
mod failing_host;
mod floor;
mod headers;
mod hedging;
mod holding;
mod hosts;
mod hosts_lost;
mod overload;
mod panics;
mod plugin;
mod poison_key;
mod resets;
mod slots;
mod stats;
mod streams;
mod tls;
mod zones;

#[path = "../certificates/mod.rs"]
mod certificates;
#[allow(dead_code)] // Each group of tests uses a part of it.
#[path = "../stage/mod.rs"]
mod stage;

use stage::{client, config, http, load, process, sidecar, tools, waits, world};
