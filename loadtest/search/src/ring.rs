// SPDX-License-Identifier: Apache-2.0
//! The ring that an engine's agent writes: made for it where no governor does, and read back.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

const LANES: usize = 256;
const EVENTS: usize = 256;
const HEADER: usize = 4096;
const HEAD: usize = 256;

/// Makes a live ring.
///
/// # Errors
/// It cannot be written.
pub fn create(path: &Path) -> Result<()> {
    let mut bytes = vec![0; HEADER + LANES * HEAD + LANES * EVENTS * 16];
    bytes[..8].copy_from_slice(b"WEIREVT1");
    for (at, value) in [(8, 1), (12, LANES), (16, EVENTS), (20, 16), (24, 1)] {
        bytes[at..at + 4].copy_from_slice(&u32::to_ne_bytes(value as u32));
    }
    fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}

/// How many events the ring has seen.
///
/// # Errors
/// It cannot be read, or a thread is within a hot function.
pub fn written_and_at_rest(path: &Path) -> Result<u64> {
    let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let word = |at: usize| {
        let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
        word.map(u64::from_ne_bytes).context("the ring is cut")
    };
    let mut written = 0;
    for lane in 0..LANES {
        let head = HEADER + lane * HEAD;
        written += word(head + 64)?;
        for function in 0..16 {
            ensure!(
                word(head + 128 + 8 * function)? == 0,
                "lane {lane} is left within function {function}"
            );
        }
    }
    Ok(written)
}
