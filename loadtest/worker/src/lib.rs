// SPDX-License-Identifier: Apache-2.0
//! A host for tests, demonstrations and measurements: cores, a priority queue and a cache.
//!
//! ```text
//! HTTP (server) ──Command──> host: one task owns the Emulator ──Answer──> HTTP
//!      │  /metrics /cache /ready            │
//!      └── jobs: any other path             └── executor: pure, `now` passed in
//! ```
//!
//! Today its work is **emulated**: a job holds a core for the time its request says, asleep. The
//! executor neither knows nor cares.

pub mod executor;
pub mod host;
pub mod metrics;
pub mod orca;
pub mod request;
pub mod server;
