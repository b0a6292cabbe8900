// SPDX-License-Identifier: Apache-2.0
//! Puts every key into memcached before anything is measured.

use std::io::{BufRead, BufReader, Write};

use anyhow::{Context, Result, ensure};

use crate::keys::{KEY_BYTES, Keys};
use crate::target::Target;

/// Sent before answers are awaited. They fit into what the system holds, so neither side waits for
/// the other for ever.
const BATCH_BYTES: usize = 64 * 1024;

/// Stores all keys with their values.
///
/// # Errors
/// memcached is not there, or does not store one.
pub fn preload(target: Target, keys: &Keys) -> Result<()> {
    let mut stream = target.connect()?;
    let mut answers = BufReader::new(stream.try_clone()?);
    let batch = (BATCH_BYTES / (keys.value_bytes() + KEY_BYTES)).max(1);
    let numbers: Vec<u32> = (0..keys.count()).collect();
    let mut said = Vec::new();
    let mut answer = String::new();
    for numbers in numbers.chunks(batch) {
        said.clear();
        for &number in numbers {
            said.extend_from_slice(b"set ");
            said.extend_from_slice(keys.key(number));
            said.extend_from_slice(format!(" 0 0 {}\r\n", keys.value_bytes()).as_bytes());
            said.extend_from_slice(keys.value(number));
            said.extend_from_slice(b"\r\n");
        }
        stream
            .write_all(&said)
            .context("storing keys: memcached takes no more")?;
        for number in numbers {
            answer.clear();
            answers
                .read_line(&mut answer)
                .with_context(|| format!("storing key {number}: no answer"))?;
            ensure!(
                answer == "STORED\r\n",
                "storing key {number}: memcached says `{}`",
                answer.trim_end().escape_debug()
            );
        }
    }
    Ok(())
}
