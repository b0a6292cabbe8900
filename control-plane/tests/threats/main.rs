// SPDX-License-Identifier: Apache-2.0
//! Liars and attackers: each line of the threat model in `envoy-config/THREAT_MODEL.md` names a test, of which these are
//! those that are about nothing else. Damage is asserted by count, never by time.

mod bombs;
mod budget;
mod cage;
mod crowds;
mod handshakes;
mod liars;
mod model;
mod network;
mod program;
mod sidecars;
mod subscribers;

#[allow(dead_code)] // Other tests use more of it.
#[path = "../certificates/mod.rs"]
mod certificates;
#[path = "../reports/mod.rs"]
mod reports;
#[allow(dead_code)] // Other tests use more of it.
#[path = "../waits/mod.rs"]
mod waits;
