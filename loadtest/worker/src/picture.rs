// SPDX-License-Identifier: Apache-2.0
//! A host at a glance.

use weir_executor::Load;

/// What the host looks like now.
#[derive(Debug)]
pub struct Picture {
    /// The load.
    pub load: Load,
    /// Jobs whose callers still wait.
    pub unanswered: usize,
    /// Bytes in the cache.
    pub cache_bytes: u64,
    /// Results in the cache.
    pub cache_items: usize,
    /// Results evicted so far.
    pub cache_evictions: u64,
}
