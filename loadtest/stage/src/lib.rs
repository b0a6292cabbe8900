// SPDX-License-Identifier: Apache-2.0
//! Whole processes for demonstrations and measurements: started with a log each, watched, accounted
//! for, and gone when the value is dropped.
//!
//! ```text
//! Command ─> Processes ─> ports, pages ─> what is being shown
//!                └──────> Usage (CPU, memory)      Busy (the machine's cores)
//! ```

pub mod bootstrap;
pub mod bound;
pub mod busy;
pub mod command;
pub mod control;
pub mod envoy;
pub mod exit;
pub mod http;
pub mod interrupt;
pub mod machine;
pub mod open_files;
pub mod ports;
pub mod processes;
pub mod record;
pub mod usage;
