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
pub mod headers;
pub mod heed;
pub mod index;
pub mod lease;
pub mod orca;
pub mod record;
pub mod report;
pub mod stream;

#[cfg(target_arch = "wasm32")]
mod caller;
#[cfg(target_arch = "wasm32")]
mod control;
#[cfg(all(target_arch = "wasm32", feature = "crash-test"))]
mod crash;
#[cfg(target_arch = "wasm32")]
mod hedge;
#[cfg(target_arch = "wasm32")]
mod held;
#[cfg(target_arch = "wasm32")]
mod hostcalls;
#[cfg(target_arch = "wasm32")]
mod in_flight;
#[cfg(target_arch = "wasm32")]
mod metrics;
#[cfg(target_arch = "wasm32")]
mod refusal;
#[cfg(target_arch = "wasm32")]
mod request;
#[cfg(target_arch = "wasm32")]
mod root;
#[cfg(target_arch = "wasm32")]
mod shared;
#[cfg(target_arch = "wasm32")]
mod vm;

#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code, missing_docs)] // The SDK's macro exports the module's entry point.
mod entry {
    proxy_wasm::main! {{
        proxy_wasm::set_root_context(|id| Box::new(crate::root::Root::new(id)));
    }}
}
