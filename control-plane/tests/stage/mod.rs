// SPDX-License-Identifier: Apache-2.0
//! The stage for tests of faults, reloads and replicas: weir-control, hosts, a real Envoy and load, all on loopback.

pub(crate) mod client;
pub(crate) mod config;
#[path = "../envoy/http.rs"]
pub(crate) mod http;
pub(crate) mod load;
pub(crate) mod process;
#[path = "../envoy/sidecar.rs"]
pub(crate) mod sidecar;
#[path = "../envoy/tools.rs"]
pub(crate) mod tools;
#[path = "../waits/mod.rs"]
pub(crate) mod waits;
pub(crate) mod world;
