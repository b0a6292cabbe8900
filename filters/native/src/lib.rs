// SPDX-License-Identifier: Apache-2.0
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
//! The filter of `weir-filter` in its second shell: a dynamic module that Envoy loads into itself.
//!
//! ```text
//!  Envoy ── hooks.rs ──┬── worker.rs: one VM a thread, its configurations, its requests ── weir-filter
//!    ^   (catch_unwind) │          ^ ticks
//!    │                  │      bells.rs: a thread that wakes Envoy's threads
//!    └── abi.rs <── native.rs: Host ── process.rs: shared.rs, metrics.rs ── streams.rs (gRPC on the main thread)
//!              <── request.rs: RequestHost ── trailers_only.rs
//! ```
//!
//! VMs are as in the other shell: one a worker thread and one on the main thread, which alone opens streams and so has
//! the lease. What Wasm VMs share through Envoy they share here through the process, decoded cache contents too. A
//! worker without a request gets no ticks, as Envoy gives a filter no timers: it publishes its record when its last
//! request ends, and the main thread renews that until the next one comes.
//!
//! A panic is caught in the hook and logged; Envoy chooses for the request. Two do not go on: one that had just come is
//! answered 500 by Envoy, and one that a tick was to let go on waits for its time-out. A crash ends Envoy: that is the
//! price of this shell.

mod abi;
mod bells;
mod grpc;
pub mod hooks;
mod installed;
mod metrics;
mod native;
#[doc(hidden)]
pub mod played;
mod process;
mod request;
mod shared;
mod streams;
mod tested;
mod trailers_only;
mod worker;
