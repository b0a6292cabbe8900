// SPDX-License-Identifier: Apache-2.0
//! What a block costs that an engine tells of: read, its tokens turned into text, named, kept.
//!
//! `cargo bench -p weir-kv-events`

use std::collections::BTreeMap;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use serde_json::json;
use weir_kv_events::host::{Host, Next};
use weir_kv_events::template::Template;
use weir_kv_events::text::Names;
use weir_kv_events::tree::Naming;
use weir_kv_events::vocabulary::Vocabulary;

/// As vLLM's default.
const BLOCK_TOKENS: usize = 16;
/// Of each event: a prompt of 1,024 tokens.
const BLOCKS: usize = 64;
/// In all, so that the tree is of the size of a large host's.
const PROMPTS: usize = 2048;
const VOCABULARY: u32 = 128_000;

fn main() {
    divan::main();
}

fn naming(is_text: bool) -> Naming {
    if !is_text {
        return Naming::Hash(None);
    }
    let vocab: BTreeMap<String, u32> = (0..VOCABULARY)
        .map(|id| (format!("{id:04x}"), id))
        .collect();
    let json = json!({"model": {"vocab": vocab}, "decoder": {"type": "ByteLevel"}});
    let vocabulary = Vocabulary::read(json.to_string().as_bytes()).unwrap();
    let names = Names::new(Arc::new(vocabulary), Template::None, "m", 1024, None);
    Naming::Text(Box::new(names.unwrap()))
}

/// Of one prompt: its blocks come, or go. Hashes are 32 bytes, as of SHA-256.
fn batch(prompt: usize, is_stored: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let out = &mut bytes;
    rmp::encode::write_array_len(out, 2).unwrap();
    rmp::encode::write_f64(out, 0.5).unwrap();
    rmp::encode::write_array_len(out, 1).unwrap();
    rmp::encode::write_map_len(out, if is_stored { 6 } else { 3 }).unwrap();
    let kind = if is_stored {
        "BlockStored"
    } else {
        "BlockRemoved"
    };
    for text in ["type", kind, "medium", "GPU", "block_hashes"] {
        rmp::encode::write_str(out, text).unwrap();
    }
    rmp::encode::write_array_len(out, BLOCKS as u32).unwrap();
    for block in 0..BLOCKS {
        let mut hash = [7; 32];
        hash[..8].copy_from_slice(&((prompt * BLOCKS + block) as u64).to_le_bytes());
        rmp::encode::write_bin(out, &hash).unwrap();
    }
    if is_stored {
        rmp::encode::write_str(out, "parent_block_hash").unwrap();
        rmp::encode::write_nil(out).unwrap();
        rmp::encode::write_str(out, "block_size").unwrap();
        rmp::encode::write_uint(out, BLOCK_TOKENS as u64).unwrap();
        rmp::encode::write_str(out, "token_ids").unwrap();
        rmp::encode::write_array_len(out, (BLOCKS * BLOCK_TOKENS) as u32).unwrap();
        for token in 0..BLOCKS * BLOCK_TOKENS {
            // Wherever in the vocabulary, as text is.
            let id = (prompt * 7919 + token * 104_729) % VOCABULARY as usize;
            rmp::encode::write_uint(out, id as u64).unwrap();
        }
    }
    bytes
}

/// All blocks come, and then go.
#[divan::bench(args = [true, false], sample_count = 20)]
fn blocks_named_by_text(bencher: Bencher, is_text: bool) {
    let naming = naming(is_text);
    let stored: Vec<_> = (0..PROMPTS).map(|prompt| batch(prompt, true)).collect();
    let removed: Vec<_> = (0..PROMPTS).map(|prompt| batch(prompt, false)).collect();
    bencher
        .counter(ItemsCount::new(2 * PROMPTS * BLOCKS))
        .with_inputs(|| {
            let mut host = Host::new(naming.clone(), 1 << 20);
            host.connected();
            host.no_replay();
            host
        })
        .bench_values(|mut host| {
            for (number, payload) in stored.iter().chain(&removed).enumerate() {
                assert_eq!(host.live(number as u64, payload), Next::Go);
                host.tree().take_changes();
            }
            assert_eq!(host.blocks(), 0);
            host
        });
}
