// SPDX-License-Identifier: Apache-2.0
//! Gathers load and cache contents of hosts and pushes them to sidecars.

pub mod config;
pub mod server;
pub mod snapshot;
pub mod xds;
