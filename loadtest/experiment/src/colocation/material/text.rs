// SPDX-License-Identifier: Apache-2.0
//! A file that a compressor has work with: words of a vocabulary, few of them often.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use weir_replay::rng::SplitMix64;

const WORDS: usize = 20_000;

/// Writes so many bytes.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, bytes: u64, seed: u64) -> Result<()> {
    let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    let mut out = BufWriter::new(file);
    words(&mut out, bytes, seed)
        .and_then(|()| out.flush())
        .with_context(|| format!("writing {}", path.display()))
}

fn words(out: &mut impl Write, bytes: u64, seed: u64) -> std::io::Result<()> {
    let mut random = SplitMix64::new(seed);
    let vocabulary: Vec<Vec<u8>> = (0..WORDS)
        .map(|_| {
            let letters = 2 + random.next_u64() % 9;
            let letter = |_| b'a' + (random.next_u64() % 26) as u8;
            (0..letters).map(letter).chain([b' ']).collect()
        })
        .collect();
    let mut left = bytes;
    while left > 0 {
        // The cube of a uniform number: a tenth of the words are drawn nearly half of the time.
        let at = random.unit().powi(3) * WORDS as f64;
        let word = &vocabulary[at as usize];
        let length = left.min(word.len() as u64);
        out.write_all(&word[..length as usize])?;
        left -= length;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_its_length_is_the_same_for_a_seed_and_repeats_words() {
        let made = |bytes, seed| {
            let mut text = Vec::new();
            words(&mut text, bytes, seed).unwrap();
            String::from_utf8(text).unwrap()
        };
        let text = made(1_000_000, 3);
        assert_eq!(text.len(), 1_000_000);
        assert!(text == made(1_000_000, 3) && text != made(1_000_000, 4));
        let different: std::collections::BTreeSet<&str> = text.split(' ').collect();
        assert!(different.len() * 2 < text.split(' ').count());
    }
}
