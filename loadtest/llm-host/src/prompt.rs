// SPDX-License-Identifier: Apache-2.0
//! What a prompt is made of.

use std::fmt;
use std::sync::Arc;

use xxhash_rust::xxh64::xxh64;

/// There is no tokeniser: so many bytes of text count as a token, as the endpoint picker of the
/// Kubernetes inference gateway assumes, too.
pub const BYTES_PER_TOKEN: usize = 4;

/// The name of a block: a hash of its text and of all text before it, so that equal names mean
/// equal prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u64);

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A prompt as the cache sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Its full blocks in order. The rest at its end is never cached, as with vLLM.
    pub blocks: Vec<BlockId>,
    /// All its tokens.
    pub tokens: u64,
    /// What was cut, where somebody is told of it; else nothing.
    pub text: Arc<[u8]>,
}

impl Prompt {
    /// Cuts a text into blocks of so many tokens.
    #[must_use]
    pub fn of(text: impl AsRef<[u8]>, block_tokens: usize) -> Self {
        let text = text.as_ref();
        let pieces = text.chunks_exact(block_tokens.max(1) * BYTES_PER_TOKEN);
        let mut before = 0;
        let chained = pieces.map(|piece| {
            before = xxh64(piece, before);
            BlockId(before)
        });
        Self {
            text: text.into(),
            blocks: chained.collect(),
            tokens: text.len().div_ceil(BYTES_PER_TOKEN) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_beginnings_have_equal_blocks_and_a_difference_changes_all_that_follow() {
        let text = |parts: &[&str]| parts.iter().map(|part| part.repeat(8)).collect::<String>();
        let one = Prompt::of(text(&["a", "b", "c"]), 2);
        let other = Prompt::of(text(&["a", "x", "c"]), 2);
        assert_eq!(one.blocks.len(), 3);
        assert_eq!(one.blocks[0], other.blocks[0]);
        assert!(one.blocks[1] != other.blocks[1] && one.blocks[2] != other.blocks[2]);
    }

    #[test]
    fn what_does_not_fill_a_block_counts_as_tokens_only() {
        let prompt = Prompt::of("12345678901", 2);
        assert_eq!((prompt.blocks.len(), prompt.tokens), (1, 3));
        let empty = Prompt::of("", 2);
        assert_eq!((empty.blocks.len(), empty.tokens), (0, 0));
    }
}
