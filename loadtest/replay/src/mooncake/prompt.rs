// SPDX-License-Identifier: Apache-2.0
//! Text for blocks of which only the number is known.

use serde_json::json;

use crate::mooncake::trace::Row;
use crate::rng::SplitMix64;

/// Tokens of a block of the trace.
pub const BLOCK_TOKENS: usize = 512;
/// Bytes of text that stand for a token, as many as the emulated hosts count.
pub const BYTES_PER_TOKEN: usize = 4;

const BLOCK_BYTES: usize = BLOCK_TOKENS * BYTES_PER_TOKEN;
/// Letters, and spaces in between.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz      ";

/// The completion request of a row: its prompt is the text of its blocks, cut to its length.
#[must_use]
pub fn body(row: &Row, model: &str) -> String {
    let mut prompt = String::with_capacity(row.blocks.len() * BLOCK_BYTES);
    for block in &row.blocks {
        write_block(&mut prompt, *block);
    }
    prompt.truncate(row.prompt_tokens as usize * BYTES_PER_TOKEN);
    json!({ "model": model, "prompt": prompt, "max_tokens": row.output_tokens }).to_string()
}

/// The number of the block decides its text, and begins it.
fn write_block(out: &mut String, block: u64) {
    let end = out.len() + BLOCK_BYTES;
    out.push_str(&format!("{block} "));
    let mut rng = SplitMix64::new(block);
    while out.len() < end {
        let letters = rng.next_u64().to_le_bytes();
        let letters = letters.map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
        out.extend(letters);
    }
    out.truncate(end);
}
