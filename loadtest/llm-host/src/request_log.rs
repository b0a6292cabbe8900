// SPDX-License-Identifier: Apache-2.0
//! A line for every answered request, for whoever counts again.

use std::fs::File;
use std::io::{self, LineWriter, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::prompt::Prompt;
use crate::sequence::Spent;

/// A request that was answered. Times are microseconds; `begun_us`, when its prefill began, counts
/// from the start of the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The address of the host.
    pub host: SocketAddr,
    /// See above.
    pub begun_us: u64,
    /// In the queue.
    pub wait_us: u64,
    /// Reading what was not cached.
    pub prefill_us: u64,
    /// Writing the answer.
    pub decode_us: u64,
    /// The caller's key, or nothing.
    pub key: Option<String>,
    /// The prompt's full blocks.
    pub blocks: Vec<String>,
    /// How many of these were cached.
    pub hit_blocks: usize,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// How many of these were cached.
    pub hit_tokens: u64,
    /// The host that read the prompt for this one, or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_by: Option<SocketAddr>,
}

impl Line {
    /// Of an answered request.
    #[must_use]
    pub fn new(
        host: SocketAddr,
        prompt: &Prompt,
        (key, read_by): (Option<&str>, Option<SocketAddr>),
        spent: &Spent,
    ) -> Self {
        let micros = |d: Duration| u64::try_from(d.as_micros()).unwrap_or(u64::MAX);
        Self {
            host,
            begun_us: micros(spent.begun),
            wait_us: micros(spent.wait),
            prefill_us: micros(spent.prefill),
            decode_us: micros(spent.decode),
            key: key.map(str::to_owned),
            blocks: prompt.blocks.iter().map(ToString::to_string).collect(),
            hit_blocks: spent.hit_blocks,
            prompt_tokens: prompt.tokens,
            hit_tokens: spent.hit_tokens,
            read_by,
        }
    }
}

/// The file. Each line is there as soon as it was written, as the process may be killed.
#[derive(Debug)]
pub struct RequestLog(Mutex<LineWriter<File>>);

impl RequestLog {
    /// Creates the file.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(file: &Path) -> io::Result<Self> {
        Ok(Self(Mutex::new(LineWriter::new(File::create(file)?))))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&text)
    }
}
