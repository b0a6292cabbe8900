// SPDX-License-Identifier: Apache-2.0
//! The built module under weir-testkit: a fake Envoy of several VMs, with the tests in weir-control's place.

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
mod interrupted;
mod lease;
mod reference;
mod refusals;
mod releases;
mod reports;
mod tables;
