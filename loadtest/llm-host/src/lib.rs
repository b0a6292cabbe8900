// SPDX-License-Identifier: Apache-2.0
//! EMULATED hosts of a language model: what a host would have found in its prefix cache, how long
//! its requests would have waited and taken. Nothing is generated and no GPU is there.
//!
//! ```text
//! prompt ─hash─> blocks ─> queue (FIFO) ─> prefill (one at a time) ─> decode (many) ─> answer
//!                             │                 │ longest cached prefix    │
//!                             └── slots, room ──┴────── PrefixCache ───────┘
//! ```
//!
//! [`Engine`] is the model: it reads no clock and does no I/O, the caller passes `now` (monotonic,
//! from any origin). [`server`] puts HTTP around it, in the manner of vLLM.

pub mod chat;
pub mod engine;
pub mod host;
pub mod key;
pub mod kv_events;
pub mod load;
pub mod metrics;
pub mod prefix_cache;
pub mod prompt;
mod rate;
pub mod request_log;
pub mod sequence;
pub mod server;
pub mod timing;

pub use engine::{Engine, Settings};
pub use key::Key;
pub use load::Load;
pub use prefix_cache::PrefixCache;
pub use prompt::{BlockId, Prompt};
pub use sequence::{Refused, Sequence, SequenceId, Spent};
pub use timing::Timing;
