// SPDX-License-Identifier: Apache-2.0
//! The discovery server, standalone mode and envoy-config/ with the real Envoy.
//!
//! `cargo xtask test` names Envoy and the filter; see `tools.rs` for what is tried without it.

#[path = "../certificates/mod.rs"]
mod certificates;
mod configs;
mod control;
mod hosts;
mod http;
#[allow(dead_code)] // The tests of faults use more of it.
mod sidecar;
mod standalone;
mod tools;
