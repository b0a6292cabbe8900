// SPDX-License-Identifier: Apache-2.0
//! Several weir-control with a lock in the real Consul: who leads, what the others serve, and what is lost when
//! one of them goes. Processes on loopback; a file a kind of thing that happens.

mod filter;
mod group;
mod lock;
mod losses;
mod measure;
mod metered;
mod reports;
mod sidecar_kept;
mod tls;

#[allow(dead_code)] // The tests of discovery use more of it.
#[path = "../consul/agent.rs"]
mod agent;
#[allow(dead_code)]
#[path = "../certificates/mod.rs"]
mod certificates;
#[allow(dead_code)]
#[path = "../faults/client.rs"]
mod client;
#[allow(dead_code)]
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
#[allow(dead_code)]
#[path = "../reloads/steady.rs"]
mod steady;
#[path = "../envoy/tools.rs"]
mod tools;
#[allow(dead_code)]
#[path = "../faults/world.rs"]
mod world;
