// SPDX-License-Identifier: Apache-2.0
//! The file: `t_ms,keys,cost,size,cls`.

use std::io::BufRead;
use std::ops::Range;

use crate::mooncake::prompt::BLOCK_TOKENS;
use crate::rng::SplitMix64;
use crate::table::{self, BadInput, read_csv};

const COLUMNS: [&str; 5] = ["t_ms", "keys", "cost", "size", "cls"];
/// The source's clock stands still for so long.
const CLOCK_MS: u64 = 3000;
/// No model reads or writes more; a larger number is a broken file.
const MAX_TOKENS: u64 = 10_000_000;

/// One request of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// When it came, by a clock that stands still for three seconds.
    pub t_ms: u64,
    /// Its blocks in order. Equal ids mean equal text, and equal text before it.
    pub blocks: Vec<u64>,
    /// Length of the prompt.
    pub prompt_tokens: u64,
    /// Length of the answer.
    pub output_tokens: u64,
}

impl Row {
    /// All blocks, but not the last one if the prompt ends within it.
    #[must_use]
    pub fn full_blocks(&self) -> &[u64] {
        let full = self.prompt_tokens / BLOCK_TOKENS as u64;
        &self.blocks[..self.blocks.len().min(full as usize)]
    }
}

/// The requests of some minutes. The whole file is checked.
pub(super) fn read(trace: impl BufRead, minutes: Range<u64>) -> Result<Vec<Row>, BadInput> {
    let mut rows = Vec::new();
    let mut last_ms = 0;
    read_csv(trace, &COLUMNS, |cells| {
        let row = parse(cells)?;
        if row.t_ms < last_ms {
            let reason = format!("{} is before {last_ms} of the line above", row.t_ms);
            return Err(cells.bad("t_ms", reason));
        }
        last_ms = row.t_ms;
        if minutes.contains(&(row.t_ms / 60_000)) {
            rows.push(row);
        }
        Ok(())
    })?;
    Ok(rows)
}

fn parse(cells: &table::Row<'_>) -> Result<Row, BadInput> {
    let tokens = |column| match cells.whole(column)? {
        tokens @ 0..=MAX_TOKENS => Ok(tokens),
        _ => Err(cells.bad(column, format!("is more than {MAX_TOKENS} tokens"))),
    };
    let id = |text: &str| {
        let reason = || format!("{text:?} is not the number of a block");
        text.parse().map_err(|_| cells.bad("keys", reason()))
    };
    let row = Row {
        t_ms: cells.whole("t_ms")?,
        blocks: cells
            .text("keys")
            .split(';')
            .map(id)
            .collect::<Result<_, _>>()?,
        prompt_tokens: tokens("size")?,
        output_tokens: tokens("cost")?,
    };
    let needed = row.prompt_tokens.div_ceil(BLOCK_TOKENS as u64);
    if row.blocks.len() as u64 != needed {
        let (size, blocks) = (row.prompt_tokens, row.blocks.len());
        let reason = format!("{size} tokens are {needed} blocks, not the {blocks} of keys");
        return Err(cells.bad("size", reason));
    }
    Ok(row)
}

/// When each request came, in microseconds of the source: those of one tick of its clock are
/// spread over it, uniform at random, in the order of the source.
pub(super) fn moments_us(rows: &[Row], rng: &mut SplitMix64) -> Vec<u64> {
    let mut moments = Vec::with_capacity(rows.len());
    for tick in rows.chunk_by(|a, b| a.t_ms == b.t_ms) {
        let mut places: Vec<f64> = tick.iter().map(|_| rng.unit()).collect();
        places.sort_by(f64::total_cmp);
        let within = |place: f64| (place * (CLOCK_MS * 1000) as f64) as u64;
        moments.extend(
            tick.iter()
                .zip(places)
                .map(|(row, p)| row.t_ms * 1000 + within(p)),
        );
    }
    // A tick that is a millisecond short of the next one's distance may reach into that.
    moments.sort_unstable();
    moments
}
