// SPDX-License-Identifier: Apache-2.0
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
//! What an engine of language models says of its prefix cache, as the names that filters read from requests.
//!
//! ```text
//!  bytes ──> zmtp: frames ──> stream: in order? ──> wire: events ──> tree: blocks ──> names that came and went
//!                                │                                    │ text of tokens: vocabulary, template
//!                                └── a gap: ask again, or forget      └ chains as weir-body has them
//! ```
//! There is no I/O and no clock here. KV_EVENTS.md beside weir-control says what engines send.

pub mod host;
pub mod stream;
pub mod template;
pub mod text;
pub mod tree;
pub mod vocabulary;
pub mod wire;
pub mod zmtp;
