// SPDX-License-Identifier: Apache-2.0
//! The filter under weir-testkit: a fake Envoy of several VMs, with the tests in weir-control's place. The VMs run the
//! built module; where `WEIR_FILTER_NATIVE` is set, the filter's other shell.

mod answers;
mod any_events;
mod bodies;
mod configuration;
mod contents;
mod cost;
mod decisions;
mod failing;
mod headers;
mod hedging;
mod heed;
mod holding;
mod lease;
mod prefill;
mod reference;
mod refusals;
mod reports;
mod tables;
mod wasm;
