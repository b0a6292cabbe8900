// SPDX-License-Identifier: Apache-2.0
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
//! The HTTP filter that picks the upstream host, and its shell of proxy-wasm. The other one is `weir-native`.
//!
//! ```text
//!                     one VM a worker thread, and one on the main thread
//!
//!  Envoy ─ callbacks.rs ─┬── root.rs: ticks, lease ──┬── control.rs ──streams── weir-control
//!        (proxy-wasm)    │          │                │        │  ^
//!                        │          │ release.rs     │        v  │ reports
//!                        │          v                └── shared.rs: tables, records of all VMs
//!                        └── exchange.rs: one request         │  ^      (reading.rs: the key in its body)
//!                               └── caller ── Vm::decide ── vm.rs ── feedback.rs: in flight, ORCA
//!
//!  everything but adapter.rs ──> host.rs: Host, RequestHost <── adapter.rs, or a fake proxy in tests
//! ```
//!
//! One VM of the proxy holds the lease and keeps the streams to weir-control; it writes what comes into
//! shared data, where every VM finds it on its next tick. A callback enters its VM once and hands `&mut Vm` on.
//! Only callbacks and adapter know proxy-wasm, and are tested as the built module, under weir-testkit and in Envoy. The
//! rest compiles for any target: what needs no proxy (configuration, lease, subscriptions, records, what answers say) is
//! plain code, and what does takes it as an argument, so that unit tests play it.

pub mod answer;
pub mod attempt;
pub mod bounce;
pub mod config;
pub mod contents;
pub mod destination;
pub mod disposition;
pub mod exchange;
pub mod handle;
pub mod headers;
pub mod heed;
pub mod host;
pub mod inbound;
pub mod index;
pub mod lease;
pub mod orca;
pub mod part;
pub mod plugin;
pub mod record;
pub mod report;
pub mod root;
pub mod stored;
pub mod stream;

mod abandoned;
#[cfg(target_arch = "wasm32")]
mod adapter;
#[cfg(target_arch = "wasm32")]
mod callbacks;
mod caller;
mod control;
#[cfg(feature = "crash-test")]
mod crash;
mod credits;
#[cfg(test)]
mod fake;
mod feedback;
mod hedge;
mod held;
mod in_flight;
#[cfg(test)]
mod interleavings;
mod metrics;
mod occupancy;
mod prefill;
mod rank_counts;
mod reading;
mod receipt;
mod release;
mod shared;
mod tries;
mod vm;
mod wanted;
mod watch;
