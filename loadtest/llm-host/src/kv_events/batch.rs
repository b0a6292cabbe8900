// SPDX-License-Identifier: Apache-2.0
//! A batch of events, as msgspec writes vLLM's.

use std::collections::BTreeMap;
use std::io::Write;

use rmp::encode::{
    ValueWriteError, write_array_len, write_f64, write_map_len, write_nil, write_str, write_uint,
};
use serde_json::{Value, json};

use crate::chat::{END, START};
use crate::prefix_cache::Change;
use crate::prompt::{BYTES_PER_TOKEN, BlockId};

/// How an event is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A map of its fields, the kind under `type`: vLLM since June 2026.
    Map,
    /// The kind and the fields in their order: vLLM before that, and SGLang.
    Array,
}

type Written = Result<(), ValueWriteError>;

/// Writes changes. Blocks have `block_tokens` tokens of the emulated model, and of those that are told as many as bytes.
pub(super) fn of(changes: &[Change], at: f64, block_tokens: usize, form: Form) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Memory does not fail to be written to.
    let _ = write(
        &mut bytes,
        changes,
        at,
        block_tokens * BYTES_PER_TOKEN,
        form,
    );
    bytes
}

fn write(out: &mut Vec<u8>, changes: &[Change], at: f64, block_size: usize, form: Form) -> Written {
    write_array_len(out, 3)?;
    write_f64(out, at)?;
    write_array_len(out, changes.len() as u32)?;
    for change in changes {
        match change {
            Change::Stored {
                parent,
                blocks,
                text,
            } => stored(out, *parent, blocks, text, block_size, form)?,
            Change::Removed(block) => {
                begin(out, "BlockRemoved", 2, form)?;
                field(out, "block_hashes", form)?;
                hashes(out, &[*block])?;
                field(out, "medium", form)?;
                write_str(out, "GPU")?;
            }
        }
    }
    write_uint(out, 0)?;
    Ok(())
}

fn stored(
    out: &mut Vec<u8>,
    parent: Option<BlockId>,
    blocks: &[BlockId],
    text: &[u8],
    block_size: usize,
    form: Form,
) -> Written {
    begin(out, "BlockStored", 7, form)?;
    field(out, "block_hashes", form)?;
    hashes(out, blocks)?;
    field(out, "parent_block_hash", form)?;
    match parent {
        Some(BlockId(hash)) => write_uint(out, hash).map(drop)?,
        None => write_nil(out).map_err(ValueWriteError::InvalidMarkerWrite)?,
    }
    field(out, "token_ids", form)?;
    write_array_len(out, text.len() as u32)?;
    for byte in text {
        write_uint(out, (*byte).into())?;
    }
    field(out, "block_size", form)?;
    write_uint(out, block_size as u64)?;
    field(out, "lora_id", form)?;
    write_nil(out).map_err(ValueWriteError::InvalidMarkerWrite)?;
    field(out, "medium", form)?;
    write_str(out, "GPU")?;
    field(out, "lora_name", form)?;
    write_nil(out).map_err(ValueWriteError::InvalidMarkerWrite)?;
    Ok(())
}

fn begin(out: &mut impl Write, kind: &str, fields: u32, form: Form) -> Written {
    match form {
        Form::Map => {
            write_map_len(out, fields + 1)?;
            write_str(out, "type")?;
        }
        Form::Array => drop(write_array_len(out, fields + 1)?),
    }
    write_str(out, kind)
}

fn field(out: &mut impl Write, name: &str, form: Form) -> Written {
    match form {
        Form::Map => write_str(out, name),
        Form::Array => Ok(()),
    }
}

fn hashes(out: &mut impl Write, blocks: &[BlockId]) -> Written {
    write_array_len(out, blocks.len() as u32)?;
    for BlockId(hash) in blocks {
        write_uint(out, *hash)?;
    }
    Ok(())
}

/// The tokenizer of these tokens: 256, each a byte, in GPT-2's letters, but for a chat's marks.
#[must_use]
pub fn tokenizer_json() -> Value {
    let mut others = 0x100..;
    let mut letter = |byte: u8| match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => Some(char::from(byte)),
        _ => others.next().and_then(char::from_u32),
    };
    let marks = [START, END];
    let letters = (0..=u8::MAX).filter_map(|byte| Some((letter(byte)?.to_string(), byte)));
    let is_text = |(_, byte): &(String, u8)| marks.iter().all(|mark| mark.byte != *byte);
    let vocab: BTreeMap<String, u8> = letters.filter(is_text).collect();
    let added =
        marks.map(|mark| json!({ "id": mark.byte, "content": mark.written, "special": true }));
    json!({
        "version": "1.0",
        "added_tokens": added,
        "decoder": { "type": "ByteLevel" },
        "model": { "type": "BPE", "vocab": vocab, "merges": [] },
    })
}
