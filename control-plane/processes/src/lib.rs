// SPDX-License-Identifier: Apache-2.0
//! Other programs as processes, for tests, demonstrations and measurements: started with a log each, watched,
//! accounted for, and gone when the value is dropped.
//!
//! ```text
//! Command ─> Started, Processes ─> ports, pages (http)
//!                └───────────────> usage: CPU, memory
//! ```

pub mod apart;
pub mod bound;
pub mod command;
pub mod http;
pub mod interrupt;
pub mod kube;
pub mod ports;
pub mod process;
pub mod processes;
pub mod record;
pub mod usage;
