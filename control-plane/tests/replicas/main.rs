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
#[allow(dead_code)] // Each group of tests uses a part of it.
#[path = "../stage/mod.rs"]
mod stage;
#[allow(dead_code)]
#[path = "../reloads/steady.rs"]
mod steady;

use stage::{client, config, http, load, process, sidecar, tools, waits, world};
