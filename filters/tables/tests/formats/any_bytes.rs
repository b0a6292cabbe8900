// SPDX-License-Identifier: Apache-2.0
//! Decoders never panic: a short run here, a long one by `cargo fuzz` (README.md).

use prost::Message;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use weir_tables::{decode_cache_shard, decode_host_table, v1};

use crate::samples::{CLUSTER, RECEIVED, SHARD, cache_shard, host_table, report};

const CASES: u64 = 20_000;

/// Decodes the bytes as everything they could be; says how much of it was accepted.
fn decode_all(bytes: &[u8]) -> usize {
    let table = decode_host_table(CLUSTER, bytes, RECEIVED).map(|_| ());
    let shard = decode_cache_shard(SHARD, bytes).map(|_| ());
    for refusal in [&table, &shard]
        .into_iter()
        .filter_map(|result| result.as_ref().err())
    {
        let line = refusal.to_string();
        assert!(line.len() < 1024 && !line.contains('\n'), "{line}");
    }
    let report = v1::Report::decode(bytes);
    usize::from(table.is_ok()) + usize::from(shard.is_ok()) + usize::from(report.is_ok())
}

fn below(rng: &mut SmallRng, n: usize) -> usize {
    (rng.next_u64() % n.max(1) as u64) as usize
}

/// Changes, inserts, drops or repeats a few bytes.
fn mutate(rng: &mut SmallRng, bytes: &mut Vec<u8>) {
    for _ in 0..=below(rng, 4) {
        let at = below(rng, bytes.len());
        let until = (at + 1 + below(rng, 8)).min(bytes.len());
        match below(rng, 6) {
            0 => bytes.insert(at, rng.next_u32() as u8),
            1 => drop(bytes.drain(at..until)),
            2 => bytes.truncate(at),
            3 => bytes.extend_from_within(at..until),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    // A bit, or the whole byte: lengths and tags of protobuf hang on both.
                    *byte ^= match below(rng, 2) {
                        0 => 1 << below(rng, 8),
                        _ => rng.next_u32() as u8,
                    };
                }
            }
        }
    }
}

#[test]
fn arbitrary_bytes_are_decoded_or_refused() {
    let mut rng = SmallRng::seed_from_u64(1);
    for _ in 0..CASES {
        let mut bytes = vec![0; below(&mut rng, 200)];
        rng.fill_bytes(&mut bytes);
        decode_all(&bytes);
    }
}

#[test]
fn damaged_messages_are_decoded_or_refused() {
    let sound = [
        host_table().encode_to_vec(),
        cache_shard().encode_to_vec(),
        report().encode_to_vec(),
    ];
    let mut rng = SmallRng::seed_from_u64(2);
    let mut accepted = 0;
    for _ in 0..CASES {
        let mut bytes = sound[below(&mut rng, sound.len())].clone();
        mutate(&mut rng, &mut bytes);
        accepted += decode_all(&bytes);
    }
    // Were nothing or everything accepted, the checks behind the decoder would not have been reached.
    let share = accepted as f64 / CASES as f64;
    assert!(
        (0.05..0.95).contains(&share),
        "{share:.2} of the damaged messages were accepted"
    );
}
