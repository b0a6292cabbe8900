// SPDX-License-Identifier: Apache-2.0
//! The file: `t_ms,keys,cost,size,cls`.

use crate::log::Timed;
use crate::mooncake::prompt::BLOCK_TOKENS;
use crate::table::{self, BadInput};

/// No model reads or writes more; a larger number is a broken file.
const MAX_TOKENS: u64 = 10_000_000;

/// One request of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// When it came, by the source's clock.
    pub t_ms: u64,
    /// Its blocks in order. Equal ids mean equal text, and equal text before it. Empty where the source does not tell.
    pub blocks: Vec<u64>,
    /// Length of the prompt.
    pub prompt_tokens: u64,
    /// Length of the answer.
    pub output_tokens: u64,
}

impl Row {
    /// As many as the prompt is long.
    pub(super) fn needed_blocks(&self) -> u64 {
        self.prompt_tokens.div_ceil(BLOCK_TOKENS as u64)
    }

    /// All blocks, but not the last one if the prompt ends within it.
    #[must_use]
    pub fn full_blocks(&self) -> &[u64] {
        let full = self.prompt_tokens / BLOCK_TOKENS as u64;
        &self.blocks[..self.blocks.len().min(full as usize)]
    }
}

impl Timed for Row {
    const COLUMNS: &'static [&'static str] = &["t_ms", "keys", "cost", "size", "cls"];
    fn parse(cells: &table::Row<'_>) -> Result<Self, BadInput> {
        let tokens = |column| match cells.whole(column)? {
            tokens @ 0..=MAX_TOKENS => Ok(tokens),
            _ => Err(cells.bad(column, format!("is more than {MAX_TOKENS} tokens"))),
        };
        let id = |text: &str| {
            let reason = || format!("{text:?} is not the number of a block");
            text.parse().map_err(|_| cells.bad("keys", reason()))
        };
        let row = Self {
            t_ms: cells.whole("t_ms")?,
            blocks: match cells.text("keys") {
                "" => vec![],
                keys => keys.split(';').map(id).collect::<Result<_, _>>()?,
            },
            prompt_tokens: tokens("size")?,
            output_tokens: tokens("cost")?,
        };
        let needed = row.needed_blocks();
        if !row.blocks.is_empty() && row.blocks.len() as u64 != needed {
            let (size, blocks) = (row.prompt_tokens, row.blocks.len());
            let reason = format!("{size} tokens are {needed} blocks, not the {blocks} of keys");
            return Err(cells.bad("size", reason));
        }
        Ok(row)
    }

    fn t_ms(&self) -> u64 {
        self.t_ms
    }
}
