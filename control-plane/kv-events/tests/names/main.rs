// SPDX-License-Identifier: Apache-2.0
//! An engine's blocks have the names that filters read from the same requests, whatever the text, its tokens, the
//! blocks of either side, and the order in which blocks come and go.

mod engine;

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::{Engine, Form, Pieces};
use proptest::prelude::*;
use serde_json::json;
use weir_body::Body;
use weir_kv_events::host::{Host, Next};
use weir_kv_events::template::Template;
use weir_kv_events::text::Names;
use weir_kv_events::tree::{Changes, Naming};
use weir_kv_events::vocabulary::Vocabulary;
use weir_policy::{KeyHash, Salt};

const MODEL: &str = "m";

fn host(pieces: &Pieces, template: Template, block_bytes: usize, salt: Option<Salt>) -> Host {
    let json = pieces.tokenizer_json();
    let vocabulary = Vocabulary::read(json.to_string().as_bytes()).unwrap();
    let names = Names::new(Arc::new(vocabulary), template, MODEL, block_bytes, salt);
    Host::new(Naming::Text(Box::new(names.unwrap())), 100_000)
}

/// What a filter reads.
fn names(body: &serde_json::Value, block_bytes: usize) -> Vec<KeyHash> {
    let mut read = Body::prompt(block_bytes);
    read.read(body.to_string().as_bytes());
    read.end();
    read.names().iter().map(|name| KeyHash::of(name)).collect()
}

/// What weir-control knows by the changes that it was told.
#[derive(Default)]
struct Known(BTreeSet<KeyHash>);

impl Known {
    fn fold(&mut self, changes: &Changes) {
        if changes.reset {
            self.0.clear();
        }
        for name in &changes.added {
            assert!(self.0.insert(*name), "told twice");
        }
        for name in &changes.removed {
            assert!(self.0.remove(name), "was not there");
        }
    }

    fn is(&self, names: impl IntoIterator<Item = KeyHash>) {
        assert_eq!(self.0, names.into_iter().collect());
    }
}

fn live(host: &mut Host, number: u64, payload: &[u8]) {
    if number == 0 {
        host.connected();
        host.no_replay();
    }
    assert_eq!(host.live(number, payload), Next::Go);
    assert_eq!(host.take_malformed(), None);
}

/// Of the names of a prompt those that end behind its first blocks, and not behind the last.
fn ended(names: Vec<KeyHash>, first: usize, last: usize) -> impl Iterator<Item = KeyHash> {
    let ends = (1..=32)
        .chain((34..=48).step_by(2))
        .chain((52..=80).step_by(4))
        .chain((88..=144).step_by(8))
        .chain((160..=272).step_by(16));
    let pairs = names.into_iter().zip(ends);
    pairs.filter_map(move |(name, end)| (first < end && end <= last).then_some(name))
}

fn forms() -> impl Strategy<Value = Form> {
    prop_oneof![Just(Form::Array), Just(Form::Map)]
}

proptest! {
    #[test]
    fn names_are_those_that_filters_read(
        text in "\\PC{0,200}",
        cuts in prop::collection::vec(1usize..7, 1..40),
        block_tokens in 1usize..9,
        block_bytes in 1usize..40,
        form in forms(),
    ) {
        let mut pieces = Pieces::default();
        let tokens = pieces.tokens(text.as_bytes(), &cuts);
        let mut host = host(&pieces, Template::None, block_bytes, None);
        let mut engine = Engine::new(block_tokens, form);
        let batch = engine.store(&tokens);
        live(&mut host, 0, &batch);
        let read = names(&json!({"model": MODEL, "prompt": text}), block_bytes);
        let held: usize = tokens.chunks_exact(block_tokens).flatten().map(|token| pieces.len(*token)).sum();
        let mut known = Known::default();
        known.fold(&host.tree().take_changes());
        known.is(ended(read, 0, held / block_bytes));
    }

    /// Prompts that begin alike, whose blocks are stored and removed one by one in any order: a name is held while a
    /// block in which it becomes full is, and after what is stored is stored again all is as if nothing had gone.
    #[test]
    fn names_come_and_go_with_the_blocks_that_complete_them(
        texts in prop::collection::vec("[ab]{0,60}", 1..6),
        block_tokens in 1usize..5,
        block_bytes in 1usize..9,
        doings in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..60),
        form in forms(),
    ) {
        let mut pieces = Pieces::default();
        let prompts: Vec<_> = texts.iter().map(|text| pieces.tokens(text.as_bytes(), &[2, 1])).collect();
        let mut host = host(&pieces, Template::None, block_bytes, None);
        let mut engine = Engine::new(block_tokens, form);
        let mut known = Known::default();
        for (number, (stores, index)) in doings.iter().enumerate() {
            let batch = match stores {
                true => engine.store(&prompts[index.index(prompts.len())]),
                false => engine.remove_one(*index),
            };
            live(&mut host, number as u64, &batch);
            known.fold(&host.tree().take_changes());
            let mut held = BTreeSet::new();
            for block in engine.named() {
                let text = String::from_utf8(pieces.text(&block.before)).unwrap();
                let begins = pieces.text(&block.before).len() - pieces.text(&block.tokens).len();
                let read = names(&json!({"model": MODEL, "prompt": text}), block_bytes);
                let (first, last) = (begins / block_bytes, text.len() / block_bytes);
                held.extend(ended(read, first, last));
            }
            known.is(held);
            prop_assert_eq!(host.blocks(), engine.blocks());
        }
        // Somebody has lost all that was told.
        host.tree().tell_all_again();
        let mut again = Known::default();
        again.fold(&host.tree().take_changes());
        prop_assert_eq!(again.0, known.0);
    }

    #[test]
    fn chats_have_the_names_of_their_messages(
        messages in prop::collection::vec(("system|user|assistant", "[a-zé \"{}]{0,30}([a-z\n]{1,30}[a-z])?"), 1..6),
        cuts in prop::collection::vec(1usize..5, 1..10),
        block_tokens in 1usize..5,
        block_bytes in 1usize..30,
        is_llama in any::<bool>(),
        form in forms(),
    ) {
        let template = match is_llama { true => Template::Llama3, false => Template::Chatml };
        let mut pieces = Pieces::with_marks(template);
        let mut tokens = vec![];
        for (role, content) in &messages {
            match is_llama {
                true => {
                    tokens.push(pieces.mark("<|start_header_id|>"));
                    tokens.extend(pieces.tokens(role.as_bytes(), &cuts));
                    tokens.push(pieces.mark("<|end_header_id|>"));
                    tokens.extend(pieces.tokens(format!("\n\n{content}").as_bytes(), &cuts));
                    tokens.push(pieces.mark("<|eot_id|>"));
                }
                false => {
                    tokens.push(pieces.mark("<|im_start|>"));
                    tokens.extend(pieces.tokens(format!("{role}\n{content}").as_bytes(), &cuts));
                    tokens.push(pieces.mark("<|im_end|>"));
                    tokens.extend(pieces.tokens(b"\n", &cuts));
                }
            }
        }
        let mut host = host(&pieces, template, block_bytes, None);
        let mut engine = Engine::new(block_tokens, form);
        let batch = engine.store(&tokens);
        live(&mut host, 0, &batch);
        let listed: Vec<_> = messages.iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
        // serde_json sorts members, and here their order counts.
        let listed: Vec<String> = listed.iter().map(|one| format!(r#"{{"role":{},"content":{}}}"#, one["role"], one["content"])).collect();
        let body = format!(r#"{{"model":"{MODEL}","messages":[{}]}}"#, listed.join(","));
        let mut read = Body::prompt(block_bytes);
        read.read(body.as_bytes());
        read.end();
        let read: Vec<KeyHash> = read.names().iter().map(|name| KeyHash::of(name)).collect();
        let mut known = Known::default();
        known.fold(&host.tree().take_changes());
        // All that is told are first ones of those; where the last block of tokens is whole, all but for the last bracket.
        let told: Vec<KeyHash> = read.iter().copied().filter(|name| known.0.contains(name)).collect();
        prop_assert_eq!(told.len(), known.0.len(), "names that no filter reads");
        prop_assert_eq!(&told[..], &read[..told.len()], "a gap");
        if tokens.len() % block_tokens == 0 && block_bytes > 1 {
            prop_assert!(read.len() - told.len() <= 1, "{} of {}", told.len(), read.len());
        }
    }
}

#[test]
fn salted_names_are_the_filters() {
    let salt = Salt::parse("000102030405060708090a0b0c0d0e0f").unwrap();
    let mut pieces = Pieces::default();
    let tokens = pieces.tokens(b"abcdefgh", &[3]);
    let mut host = host(&pieces, Template::None, 4, Some(salt.clone()));
    let batch = Engine::new(1, Form::Map).store(&tokens);
    live(&mut host, 0, &batch);
    let mut read = Body::prompt(4);
    read.read(br#"{"model":"m","prompt":"abcdefgh"}"#);
    let names: Vec<KeyHash> = read
        .names()
        .iter()
        .map(|name| KeyHash::under(Some(&salt), name))
        .collect();
    let mut known = Known::default();
    known.fold(&host.tree().take_changes());
    assert_eq!(names.len(), 2);
    known.is(names);
}
