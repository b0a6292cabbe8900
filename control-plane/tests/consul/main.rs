// SPDX-License-Identifier: Apache-2.0
//! weir-control with hosts from Consul: from a fake one, which does as a test wants, and from the real one.
//!
//! `cargo xtask test` names the program in `WEIR_CONSUL`; without it the tests of `real.rs` are skipped.

mod agent;
#[path = "../certificates/mod.rs"]
mod certificates;
mod control;
mod fake;
#[path = "../envoy/http.rs"]
mod http;
#[allow(dead_code)] // Other tests use more of it.
#[path = "../inside/mod.rs"]
mod inside;
mod real;
#[allow(dead_code)] // Other tests use more of it.
#[path = "../waits/mod.rs"]
mod waits;
