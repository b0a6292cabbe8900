// SPDX-License-Identifier: Apache-2.0
//! Damages bytes as transport and malice do, in small steps: the short run of `cargo test`.

use rand::Rng;

/// Changes, inserts, drops or repeats a few bytes.
pub fn mutate(rng: &mut impl Rng, bytes: &mut Vec<u8>) {
    for _ in 0..=below(rng, 4) {
        let at = below(rng, bytes.len());
        let until = (at + 1 + below(rng, 8)).min(bytes.len());
        match below(rng, 7) {
            0 => bytes.insert(at, rng.next_u32() as u8),
            1 => drop(bytes.drain(at..until)),
            2 => bytes.truncate(at),
            3 => bytes.extend_from_within(at..until),
            // What texts are made of.
            4 => {
                let digits = b"0123456789-.eE{}[]\":,\n ";
                let byte = digits.get(below(rng, digits.len()));
                if let (Some(place), Some(byte)) = (bytes.get_mut(at), byte) {
                    *place = *byte;
                }
            }
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

/// A number below `n`, or 0.
pub fn below(rng: &mut impl Rng, n: usize) -> usize {
    (rng.next_u64() % n.max(1) as u64) as usize
}
