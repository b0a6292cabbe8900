// SPDX-License-Identifier: Apache-2.0
//! A lane's head, as it was read.

use crate::layout::{
    CORE, FUNCTIONS, HEAD_BYTES, OWNER, PID_NAMESPACE, SINCE_NS, THREAD_STARTED, WRITTEN,
};

/// One lane's words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) owner: u64,
    pub(super) thread_started: u64,
    pub(super) pid_namespace: u64,
    pub(super) written: u64,
    pub(super) core: Option<u32>,
    /// All 0 where nobody owns the lane.
    pub(super) since_ns: [u64; FUNCTIONS],
}

impl Head {
    pub(super) fn decode(bytes: &[u8; HEAD_BYTES as usize]) -> Head {
        let words = bytes.as_chunks().0;
        let word = |at: u64| u64::from_le_bytes(words[at as usize / 8]);
        let owner = word(OWNER);
        let since = |function| match owner {
            0 => 0,
            _ => word(SINCE_NS + 8 * function as u64),
        };
        Head {
            owner,
            thread_started: word(THREAD_STARTED),
            pid_namespace: word(PID_NAMESPACE),
            written: word(WRITTEN),
            core: u32::try_from(word(CORE)).ok(),
            since_ns: std::array::from_fn(since),
        }
    }
}
