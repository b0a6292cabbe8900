// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::template::Template;
use crate::vocabulary::Vocabulary;
use crate::wire::{Batch, Event};

/// A tree in which token `n` is the letter `a + n`, and blocks of text are one byte.
fn tree(max_blocks: usize) -> Tree {
    let json = json!({
        "model": {"vocab": {"a": 0, "b": 1, "c": 2, "d": 3}},
        "decoder": {"type": "ByteLevel"},
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}],
                           "special_tokens": {"<s>": {"ids": [9]}}},
        "added_tokens": [{"id": 9, "content": "<s>"}],
    });
    let vocabulary = Arc::new(Vocabulary::read(json.to_string().as_bytes()).unwrap());
    let names = Names::new(vocabulary, Template::None, "m", 1, None).unwrap();
    Tree::new(Naming::Text(Box::new(names)), max_blocks)
}

/// MessagePack of small numbers, short texts, lists and maps.
fn packed(value: &serde_json::Value) -> Vec<u8> {
    use serde_json::Value;
    match value {
        Value::Null => vec![0xc0],
        Value::Bool(is) => vec![0xc2 + u8::from(*is)],
        Value::Number(number) => vec![number.as_u64().unwrap() as u8],
        Value::String(text) => [&[0xa0 | text.len() as u8], text.as_bytes()].concat(),
        Value::Array(values) => {
            let mut bytes = vec![0x90 | values.len() as u8];
            bytes.extend(values.iter().flat_map(packed));
            bytes
        }
        Value::Object(pairs) => {
            let mut bytes = vec![0x80 | pairs.len() as u8];
            let pairs = pairs
                .iter()
                .map(|(name, value)| [packed(&json!(name)), packed(value)].concat());
            bytes.extend(pairs.flatten());
            bytes
        }
    }
}

fn apply(tree: &mut Tree, event: serde_json::Value) {
    let bytes = packed(&json!([0, [event]]));
    match Batch::read(&bytes).unwrap().next_event().unwrap().unwrap() {
        Event::Stored(stored) => tree.store(stored),
        Event::Removed(removed) => tree.remove(removed),
        Event::Cleared => tree.clear(),
        Event::Unknown => tree.pass_over(),
    }
}

/// Blocks of one token.
fn store(tree: &mut Tree, hashes: &[u8], parent: Option<u8>, tokens: &[u8]) {
    apply(
        tree,
        json!(["BlockStored", hashes, parent, tokens, 1, null]),
    );
}

fn remove(tree: &mut Tree, hash: u8) {
    apply(tree, json!(["BlockRemoved", [hash]]));
}

#[test]
fn a_block_behind_one_that_is_not_known_is_named_when_it_is_stored_again() {
    let mut tree = tree(100);
    store(&mut tree, &[2, 3], Some(1), &[1, 2]);
    assert_eq!((tree.blocks(), tree.names().count()), (2, 0));
    assert_eq!(tree.counts().unnamed, 2);
    store(&mut tree, &[1], None, &[0]);
    store(&mut tree, &[2, 3], Some(1), &[1, 2]);
    assert_eq!((tree.blocks(), tree.names().count()), (3, 3));
    // Two copies of each of those were stored.
    remove(&mut tree, 2);
    remove(&mut tree, 3);
    assert_eq!(tree.names().count(), 3);
    remove(&mut tree, 3);
    assert_eq!((tree.blocks(), tree.names().count()), (2, 2));
}

#[test]
fn behind_a_gap_no_block_is_named_by_another_ones_tokens() {
    let names = |tree: &Tree| tree.names().collect::<BTreeSet<_>>();
    let mut whole = tree(100);
    store(&mut whole, &[1, 2, 3, 4], None, &[0, 1, 2, 3]);
    let mut torn = tree(100);
    store(&mut torn, &[1, 2, 3], None, &[0, 1, 2]);
    remove(&mut torn, 1);
    remove(&mut torn, 2);
    // The first is not known again: its parent went.
    store(&mut torn, &[2, 3, 4], Some(1), &[1, 2, 3]);
    assert_eq!(names(&torn).len(), 2);
    assert!(names(&torn).is_subset(&names(&whole)));
    // Tokens of some alone: of which is not said.
    store(&mut torn, &[3, 5], Some(2), &[3]);
    assert_eq!(names(&torn).len(), 2);
}

#[test]
fn blocks_without_names_leave_room_for_those_that_have_some() {
    let mut tree = tree(4);
    store(&mut tree, &[2, 3, 4, 5], Some(1), &[0, 0, 0, 0]);
    assert_eq!((tree.blocks(), tree.counts().dropped), (2, 2));
    store(&mut tree, &[6, 7], None, &[1, 2]);
    assert_eq!((tree.blocks(), tree.names().count()), (4, 2));
}

#[test]
fn what_depends_on_more_than_text_has_no_name() {
    let stored = |more: serde_json::Value| {
        let mut event = json!({
            "type": "BlockStored", "block_hashes": [1, 2], "parent_block_hash": null, "token_ids": [0, 1], "block_size": 1,
        });
        let fields = event.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        let mut tree = tree(100);
        apply(&mut tree, event);
        (tree.blocks(), tree.names().count())
    };
    assert_eq!(stored(json!({})), (2, 2));
    assert_eq!(stored(json!({"extra_keys": [null, null]})), (2, 2));
    assert_eq!(stored(json!({"extra_keys": [null, ["image"]]})), (2, 1));
    assert_eq!(stored(json!({"extra_keys": [["salt"], null]})), (2, 0));
    assert_eq!(stored(json!({"cache_salt": "s"})), (2, 0));
    assert_eq!(stored(json!({"lora_id": 1})), (2, 0));
    assert_eq!(
        stored(json!({"lora_id": 1, "lora_name": "l", "extra_keys": [["l"], ["l"]]})),
        (2, 2)
    );
    assert_eq!(
        stored(json!({"token_ids": []})),
        (2, 0),
        "as from where blocks are offloaded"
    );
    assert_eq!(stored(json!({"token_ids": [0]})), (2, 0));
    assert_eq!(
        stored(json!({"token_ids": [0, 8]})),
        (2, 1),
        "there is no token 8"
    );
    assert_eq!(
        stored(json!({"token_ids": [9, 0]})),
        (2, 1),
        "the tokenizer put it there"
    );
    assert_eq!(stored(json!({"kv_cache_spec_sliding_window": 16})), (0, 0));
}

#[test]
fn a_block_is_held_while_it_is_in_any_memory() {
    let mut tree = tree(100);
    let event = |kind: &str, medium: &str, tokens: &[u8]| json!({"type": kind, "block_hashes": [1], "parent_block_hash": null, "token_ids": tokens, "block_size": 1, "medium": medium});
    apply(&mut tree, event("BlockStored", "GPU", &[0]));
    apply(&mut tree, event("BlockStored", "CPU", &[]));
    apply(&mut tree, event("BlockRemoved", "GPU", &[]));
    apply(&mut tree, event("BlockRemoved", "disk", &[]));
    assert_eq!(tree.names().count(), 1);
    apply(&mut tree, event("BlockStored", "CPU", &[]));
    apply(
        &mut tree,
        json!({"type": "BlockRemoved", "block_hashes": [1], "medium": "CPU", "remaining_copy_counts": [0]}),
    );
    assert_eq!((tree.blocks(), tree.names().count()), (0, 0));
    assert_eq!(
        tree.take_changes(),
        Changes {
            reset: true,
            ..Changes::default()
        }
    );
}

#[test]
fn beyond_the_limit_blocks_are_not_known_and_counted() {
    let mut tree = tree(2);
    store(&mut tree, &[1, 2, 3], None, &[0, 1, 2]);
    assert_eq!(
        (tree.blocks(), tree.names().count(), tree.counts().dropped),
        (2, 2, 1)
    );
    remove(&mut tree, 2);
    store(&mut tree, &[4], Some(3), &[3]);
    assert_eq!((tree.blocks(), tree.names().count()), (2, 1));
    apply(&mut tree, json!(["AllBlocksCleared"]));
    assert_eq!((tree.blocks(), tree.counts().cleared), (0, 1));
}

#[test]
fn without_a_tokenizer_the_hash_is_the_name() {
    let mut tree = Tree::new(Naming::Hash(None), 10);
    store(&mut tree, &[7], Some(1), &[0]);
    let changes = tree.take_changes();
    assert_eq!(
        (changes.reset, changes.added),
        (true, vec![KeyHash::of(b"7")])
    );
    remove(&mut tree, 7);
    let changes = tree.take_changes();
    assert_eq!(
        (changes.reset, changes.removed),
        (false, vec![KeyHash::of(b"7")])
    );
    assert!(!tree.has_changes());
}

#[test]
fn changes_that_nobody_takes_are_bounded() {
    const MAX_BLOCKS: usize = 4;
    for is_first in [true, false] {
        let mut tree = Tree::new(Naming::Hash(None), MAX_BLOCKS);
        if !is_first {
            tree.take_changes();
        }
        for hash in 0..100 {
            store(&mut tree, &[hash], None, &[0]);
            let pending = tree.pending.len();
            assert!(pending <= 2 * MAX_BLOCKS, "{pending} after {hash}");
            if hash >= 2 {
                remove(&mut tree, hash - 2);
            }
            let pending = tree.pending.len();
            assert!(pending <= 2 * MAX_BLOCKS, "{pending} after {hash}");
        }
        let changes = tree.take_changes();
        assert!(changes.reset && changes.removed.is_empty());
        let told: BTreeSet<KeyHash> = changes.added.into_iter().collect();
        assert_eq!(told, tree.names().collect());
        assert_eq!(told.len(), 2);
    }
}
