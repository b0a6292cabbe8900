// SPDX-License-Identifier: Apache-2.0
//! The recorded trace, made into prompts by weir-replay and cut into blocks again by the host.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use weir_llm_host::{BlockId, Engine, Key, Prompt, Sequence, Settings, Timing};
use weir_replay::excerpt::Excerpt;
use weir_replay::mooncake::{self, BLOCK_TOKENS, Made, Params, Report};
use weir_replay::table;

fn workload(minutes: u64, prefix_keys: bool) -> (Vec<Made>, Report) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let trace = table::open(&folder.join("../traces/mooncake_conversation_10min.csv.gz"));
    let params = Params {
        excerpt: Excerpt {
            from_minute: 0,
            minutes,
            speed_up: 1.0,
        },
        clock: Duration::from_secs(3),
        prefix_keys,
        decode_per_token: None,
        sample: 1.0,
        high_share: 0.0,
        seed: 1,
    };
    mooncake::convert(trace.unwrap(), &params).unwrap()
}

fn sequence(made: &Made, separator: Option<char>) -> Sequence {
    let body: Value = serde_json::from_str(&mooncake::body(&made.row, "m")).unwrap();
    Sequence {
        prompt: Prompt::of(body["prompt"].as_str().unwrap(), BLOCK_TOKENS),
        output_tokens: body["max_tokens"].as_u64().unwrap(),
        key: Some(Key::new(&made.request.key, separator)),
        read_by: None,
    }
}

/// Room for everything.
fn endless() -> Settings {
    Settings {
        slots: 1,
        max_queued: 1,
        capacity_blocks: 1_000_000,
        block_tokens: BLOCK_TOKENS,
        timing: Timing::new(8000.0, 25.0, 1.0),
        change_log: 100_000,
    }
}

#[test]
fn the_extract_is_what_its_readme_says() {
    let (made, report) = workload(10, false);
    assert_eq!((made.len(), report.common_blocks), (1750, 1));
    assert_eq!((report.findable_share * 100.0).round(), 29.0);
}

/// What a single host with room for everything finds is what the trace's own numbers promise, so
/// a hit is one of the recorded workload, although the text is made up.
#[test]
fn a_host_finds_the_blocks_of_the_trace() {
    let (made, report) = workload(1, false);
    let mut engine = Engine::new(endless(), 1);
    let mut names: HashMap<u64, BlockId> = HashMap::new();
    let (mut now, mut found) = (Duration::ZERO, 0);
    for made in &made {
        let sequence = sequence(made, None);
        assert_eq!(sequence.prompt.tokens, made.row.prompt_tokens);
        let full = made.row.full_blocks();
        assert_eq!(sequence.prompt.blocks.len(), full.len());
        for (id, block) in full.iter().zip(&sequence.prompt.blocks) {
            assert_eq!(names.entry(*id).or_insert(*block), block);
        }
        engine.submit(now, sequence).unwrap();
        now += Duration::from_secs(3600);
        found += engine.advance(now)[0].1.hit_tokens;
    }
    assert!(found > 0);
    assert_eq!(
        found as f64 / report.prompt_tokens as f64,
        report.findable_share
    );
    // Every session can be asked for by its key, but those whose own blocks nothing filled.
    let listed = engine.cache_changes(0, None).added.len();
    let own = made.iter().filter(|m| m.row.full_blocks().len() > 1);
    let mut keys: Vec<_> = own.map(|m| &m.request.key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(listed, keys.len());
}

/// Callers who list blocks hear of every block by the name that the trace has for it.
#[test]
fn listed_keys_are_told_block_by_block() {
    let (made, report) = workload(1, true);
    let mut engine = Engine::new(endless(), 1);
    let mut now = Duration::ZERO;
    for made in &made {
        engine.submit(now, sequence(made, Some(';'))).unwrap();
        now += Duration::from_secs(3600);
        engine.advance(now);
    }
    let told: BTreeSet<_> = engine.cache_changes(0, None).added.into_iter().collect();
    let blocks = made.iter().flat_map(|m| m.request.key.split(';'));
    let all: BTreeSet<_> = blocks.filter(|b| !b.is_empty()).map(Arc::from).collect();
    assert_eq!(told, all);
    assert_eq!(all.len(), report.distinct_blocks - report.common_blocks);
}
