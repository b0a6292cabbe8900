// SPDX-License-Identifier: Apache-2.0
//! What a feed may cost.

/// Limits on one feed, each looked at while reading, before the memory is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedLimits {
    /// Bytes of the object, and bytes of the feed decoded from it, each alone.
    pub max_bytes: u64,
    /// Different fields over all items.
    pub max_columns: usize,
    /// Items.
    pub max_items: u64,
    /// Bytes of one value, and of one field's name.
    pub max_value_bytes: usize,
}

impl Default for FeedLimits {
    /// 4 GiB, 10,000 columns, 20 million items, 64 KiB a value. Document 001 (section 4.1.2) speaks
    /// of "millions of items"; the rest keeps one feed from taking a host's memory.
    fn default() -> Self {
        Self {
            max_bytes: 4 << 30,
            max_columns: 10_000,
            max_items: 20_000_000,
            max_value_bytes: 64 << 10,
        }
    }
}
