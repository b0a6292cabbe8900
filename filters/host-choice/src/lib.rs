// SPDX-License-Identifier: Apache-2.0
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
//! The proxy-wasm HTTP filter that picks the upstream host.
//!
//! ```text
//!                 one VM a worker thread, and one on the main thread
//!  weir-control ──stream── root.rs (lease) ── control.rs ──> shared.rs ──> vm.rs ── decide ──> request.rs
//!        ^                                                      ^            │                    │
//!        └──────────────────── reports ─────────────────────────┴── record ──┴──── in flight, ORCA┘
//!                                                  root.rs, every tick ── held.rs ──┘ who waits
//! ```
//!
//! One VM of the proxy holds the lease and keeps the streams to weir-control; it writes what comes into
//! shared data, where every VM finds it on its next tick. What needs no host (configuration, lease,
//! subscriptions, records, what answers say) is plain code with unit tests here; what does is tested on the built
//! module, under weir-testkit and in Envoy.

pub mod answer;
pub mod config;
pub mod disposition;
pub mod exchange;
pub mod handle;
pub mod headers;
pub mod heed;
pub mod host;
pub mod index;
pub mod lease;
pub mod orca;
pub mod plugin;
pub mod record;
pub mod report;
pub mod root;
pub mod stream;

mod abandoned;
#[cfg(target_arch = "wasm32")]
mod adapter;
mod caller;
mod control;
#[cfg(feature = "crash-test")]
mod crash;
mod destination;
#[cfg(test)]
mod fake;
mod feedback;
mod hedge;
mod held;
mod in_flight;
mod metrics;
mod release;
mod shared;
mod vm;
