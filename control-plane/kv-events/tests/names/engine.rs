// SPDX-License-Identifier: Apache-2.0
//! An engine that tells of its blocks, and a tokenizer whose tokens are whatever a text is cut into.

use std::collections::{BTreeMap, HashMap};

use proptest::sample::Index;
use serde_json::{Value, json};
use weir_kv_events::template::Template;

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As before June 2026, and by SGLang.
    Array,
    Map,
}

/// Pieces of text that have become tokens.
#[derive(Default)]
pub(crate) struct Pieces {
    ids: HashMap<Vec<u8>, u32>,
    marks: BTreeMap<&'static str, u32>,
}

impl Pieces {
    pub(crate) fn with_marks(template: Template) -> Self {
        let marks = template.marks().iter().copied().zip(100_000..).collect();
        Self {
            marks,
            ..Self::default()
        }
    }

    pub(crate) fn mark(&self, mark: &str) -> u32 {
        self.marks[mark]
    }

    /// Cut wherever `cuts` say, which need not be between characters.
    pub(crate) fn tokens(&mut self, mut text: &[u8], cuts: &[usize]) -> Vec<u32> {
        let mut tokens = Vec::new();
        for cut in cuts.iter().cycle() {
            if text.is_empty() {
                break;
            }
            let (piece, rest) = text.split_at((*cut).min(text.len()));
            let next = self.ids.len() as u32;
            tokens.push(*self.ids.entry(piece.to_vec()).or_insert(next));
            text = rest;
        }
        tokens
    }

    pub(crate) fn text(&self, tokens: &[u32]) -> Vec<u8> {
        let by_id: HashMap<u32, &Vec<u8>> = self.ids.iter().map(|(text, id)| (*id, text)).collect();
        tokens
            .iter()
            .flat_map(|token| by_id[token].clone())
            .collect()
    }

    pub(crate) fn len(&self, token: u32) -> usize {
        self.text(&[token]).len()
    }

    pub(crate) fn tokenizer_json(&self) -> Value {
        let vocab: BTreeMap<String, u32> = self
            .ids
            .iter()
            .map(|(text, id)| (text.iter().map(|byte| letter(*byte)).collect(), *id))
            .collect();
        let marks = self.marks.iter();
        let added: Vec<_> = marks
            .map(|(content, id)| json!({"id": id, "content": content, "special": true}))
            .collect();
        json!({"model": {"type": "BPE", "vocab": vocab}, "decoder": {"type": "ByteLevel"}, "added_tokens": added})
    }
}

/// GPT-2's, written from its description: printable bytes are themselves, the rest in their order from U+0100 on.
fn letter(byte: u8) -> char {
    let own = |byte: u8| (33..=126).contains(&byte) || (161..=172).contains(&byte) || byte >= 174;
    match own(byte) {
        true => char::from(byte),
        false => {
            let place = (0..byte).filter(|byte| !own(*byte)).count() as u32;
            char::from_u32(256 + place).unwrap()
        }
    }
}

pub(crate) struct Block {
    /// Its own.
    pub(crate) tokens: Vec<u32>,
    /// All up to its end.
    pub(crate) before: Vec<u32>,
    copies: usize,
    /// Its parent was there when it was stored.
    named: bool,
}

/// By hash. Like vLLM it has a copy of each block that it stores, whether there is one or not.
pub(crate) struct Engine {
    block_tokens: usize,
    form: Form,
    blocks: BTreeMap<u64, Block>,
}

impl Engine {
    pub(crate) fn new(block_tokens: usize, form: Form) -> Self {
        Self {
            block_tokens,
            form,
            blocks: BTreeMap::new(),
        }
    }

    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn named(&self) -> impl Iterator<Item = &Block> {
        self.blocks.values().filter(|block| block.named)
    }

    /// Stores what is missing of a prompt behind the first blocks that are there, and says so in one event.
    pub(crate) fn store(&mut self, prompt: &[u32]) -> Vec<u8> {
        let chunks: Vec<&[u32]> = prompt.chunks_exact(self.block_tokens).collect();
        let before = |n: usize| &prompt[..n * self.block_tokens];
        let found = (0..chunks.len())
            .take_while(|n| self.blocks.contains_key(&hash(before(n + 1))))
            .count();
        let hashes: Vec<u64> = (found..chunks.len()).map(|n| hash(before(n + 1))).collect();
        let parent = (found > 0).then(|| hash(before(found)));
        let mut named = parent.is_none_or(|parent| self.blocks[&parent].named);
        for (n, id) in (found..chunks.len()).zip(&hashes) {
            let block = self.blocks.entry(*id).or_insert_with(|| Block {
                tokens: chunks[n].to_vec(),
                before: before(n + 1).to_vec(),
                copies: 0,
                named: false,
            });
            block.copies += 1;
            // One that is named already names those behind it.
            block.named |= named;
            named = block.named;
        }
        let tokens = &prompt[found * self.block_tokens..chunks.len() * self.block_tokens];
        let mut bytes = Vec::new();
        begin(&mut bytes, u32::from(!hashes.is_empty()));
        if !hashes.is_empty() {
            let size = self.block_tokens as u64;
            match self.form {
                Form::Array => {
                    rmp::encode::write_array_len(&mut bytes, 6).unwrap();
                    text(&mut bytes, "BlockStored");
                    list(&mut bytes, &hashes);
                    optional(&mut bytes, parent);
                    list(&mut bytes, tokens);
                    number(&mut bytes, size);
                    optional(&mut bytes, None);
                }
                Form::Map => {
                    rmp::encode::write_map_len(&mut bytes, 9).unwrap();
                    for (name, value) in [
                        ("type", "BlockStored"),
                        ("medium", "GPU"),
                        ("later", "field"),
                    ] {
                        text(&mut bytes, name);
                        text(&mut bytes, value);
                    }
                    text(&mut bytes, "block_hashes");
                    list(&mut bytes, &hashes);
                    text(&mut bytes, "parent_block_hash");
                    optional(&mut bytes, parent);
                    text(&mut bytes, "token_ids");
                    list(&mut bytes, tokens);
                    text(&mut bytes, "block_size");
                    number(&mut bytes, size);
                    for name in ["lora_id", "lora_name"] {
                        text(&mut bytes, name);
                        optional(&mut bytes, None);
                    }
                }
            }
        }
        number(&mut bytes, 0);
        bytes
    }

    /// Removes a copy of any block.
    pub(crate) fn remove_one(&mut self, which: Index) -> Vec<u8> {
        let ids: Vec<u64> = self.blocks.keys().copied().collect();
        let mut bytes = Vec::new();
        begin(&mut bytes, u32::from(!ids.is_empty()));
        if !ids.is_empty() {
            let id = *which.get(&ids);
            let block = self.blocks.get_mut(&id).unwrap();
            block.copies -= 1;
            if block.copies == 0 {
                self.blocks.remove(&id);
            }
            match self.form {
                Form::Array => {
                    rmp::encode::write_array_len(&mut bytes, 2).unwrap();
                    text(&mut bytes, "BlockRemoved");
                    list(&mut bytes, &[id]);
                }
                Form::Map => {
                    rmp::encode::write_map_len(&mut bytes, 3).unwrap();
                    text(&mut bytes, "medium");
                    text(&mut bytes, "GPU");
                    text(&mut bytes, "type");
                    text(&mut bytes, "BlockRemoved");
                    text(&mut bytes, "block_hashes");
                    list(&mut bytes, &[id]);
                }
            }
        }
        number(&mut bytes, 0);
        bytes
    }
}

fn hash(tokens: &[u32]) -> u64 {
    let bytes: Vec<u8> = tokens
        .iter()
        .flat_map(|token| token.to_le_bytes())
        .collect();
    xxhash_rust::xxh64::xxh64(&bytes, 0)
}

fn begin(bytes: &mut Vec<u8>, events: u32) {
    rmp::encode::write_array_len(bytes, 3).unwrap();
    rmp::encode::write_f64(bytes, 1.5).unwrap();
    rmp::encode::write_array_len(bytes, events).unwrap();
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    rmp::encode::write_str(bytes, text).unwrap();
}

fn number(bytes: &mut Vec<u8>, number: u64) {
    rmp::encode::write_uint(bytes, number).unwrap();
}

fn optional(bytes: &mut Vec<u8>, value: Option<u64>) {
    match value {
        Some(value) => number(bytes, value),
        None => rmp::encode::write_nil(bytes).unwrap(),
    }
}

fn list<T: Copy + Into<u64>>(bytes: &mut Vec<u8>, values: &[T]) {
    rmp::encode::write_array_len(bytes, values.len() as u32).unwrap();
    values
        .iter()
        .for_each(|value| number(bytes, (*value).into()));
}
