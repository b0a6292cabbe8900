// SPDX-License-Identifier: Apache-2.0
//! A rule-processing host (document 001, sections 3.1 to 3.6), real or emulated.
//!
//! ```text
//! HTTP (server) ──Request──> host: one task owns the Engine ──News──> HTTP
//!   │ /metrics /cache /ready            │
//!   │                                   ├── rules::cores: threads that fetch feeds and apply rules
//!   └── rules | emulated: jobs          └── Emulator: modelled time, no CPU and no data
//! ```
//!
//! Both engines run the same [`weir_executor::Executor`], which neither knows nor cares.

pub mod engine;
pub mod host;
pub mod metrics;
pub mod orca;
mod patience;
pub mod picture;
pub mod priorities;
#[cfg(feature = "rules")]
pub mod rules;
pub mod server;
pub mod utilisation;
