// SPDX-License-Identifier: Apache-2.0
//! What demonstrations and measurements put on a stage: Envoys and weir-controls as processes, and the machine that
//! they share. Processes themselves are `weir-processes`'.
//!
//! ```text
//! Command ─> Processes ─> ports, pages ─> what is being shown
//!                └──────> Usage (CPU, memory)      Busy (the machine's cores)
//! ```

pub mod bootstrap;
pub mod busy;
pub mod control;
pub mod envoy;
pub mod exit;
pub mod machine;
pub mod open_files;
pub mod worker;

pub use weir_processes::{
    apart, bound, command, http, interrupt, kube, ports, process, processes, record, usage,
};
