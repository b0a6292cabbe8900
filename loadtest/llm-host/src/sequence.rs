// SPDX-License-Identifier: Apache-2.0
//! A request on its way through a host.

use std::net::SocketAddr;
use std::time::Duration;

use crate::key::Key;
use crate::prompt::Prompt;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Sequence {
    /// What is to be read first.
    pub prompt: Prompt,
    /// How much is to be written.
    pub output_tokens: u64,
    /// The caller's name for what it expects to be cached.
    pub key: Option<Key>,
    /// The host that has read the prompt for this one: all of its cache is here at once.
    pub read_by: Option<SocketAddr>,
}

/// Names a sequence within its host; later ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub(crate) u64);

/// Where the time of a sequence went, and what was found for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// When its prefill began.
    pub begun: Duration,
    /// In the queue.
    pub wait: Duration,
    /// Reading the part of the prompt that was not cached.
    pub prefill: Duration,
    /// Writing the answer.
    pub decode: Duration,
    /// Blocks of the prompt that were cached.
    pub hit_blocks: usize,
    /// The tokens in them.
    pub hit_tokens: u64,
}

/// Why a sequence was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Try later, or elsewhere.
    #[error("{0} requests wait already")]
    Full(usize),
    /// It will never fit.
    #[error("prompt and answer need {needed} blocks, the host has {capacity}")]
    TooLong {
        /// Blocks of the prompt and the answer.
        needed: usize,
        /// Blocks of the host.
        capacity: usize,
    },
}
