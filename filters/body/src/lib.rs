// SPDX-License-Identifier: Apache-2.0
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
//! What a request's JSON body says of the data that it needs, read as the body comes.
//!
//! ```text
//!  bytes ──> json.rs: pieces ──┬──> prompt.rs, chain.rs: a language model's prompt ──┬──> names of keys
//!                              └──> value.rs: the value at a pointer ────────────────┘
//! ```
//! There is no tree and no copy: what is kept of a body of any length is the state of the parser, and at most
//! [`weir_policy::MAX_BLOCKS`] hashes of each of a prompt's members or [`value::MAX_BYTES`] bytes. Where chunks of the body begin and end makes no difference.

pub mod chain;
mod json;
pub mod prompt;
pub mod value;

use crate::json::{Json, Malformed};
use crate::prompt::Prompt;
use crate::value::{Pointer, Value};

/// A body that is being read.
#[derive(Clone, Debug)]
pub struct Body {
    json: Json,
    reader: Reader,
    is_malformed: bool,
}

#[derive(Clone, Debug)]
enum Reader {
    Prompt(Box<Prompt>),
    Value(Value),
}

impl Body {
    /// One whose prompt is cut into blocks of so many bytes, at least one.
    pub fn prompt(block_bytes: usize) -> Self {
        Self::new(Reader::Prompt(Box::new(Prompt::new(block_bytes))))
    }

    /// One with a value at this pointer.
    pub fn value(pointer: &Pointer) -> Self {
        Self::new(Reader::Value(Value::at(pointer.clone())))
    }

    fn new(reader: Reader) -> Self {
        Self {
            json: Json::default(),
            reader,
            is_malformed: false,
        }
    }

    /// Reads on. What comes after an error, or after the value that is looked for, is not looked at.
    pub fn read(&mut self, bytes: &[u8]) {
        if !self.is_done() {
            let read = match &mut self.reader {
                Reader::Prompt(prompt) => self.json.read(bytes, &mut |piece| prompt.take(piece)),
                Reader::Value(value) => self.json.read(bytes, &mut |piece| value.take(piece)),
            };
            self.judge(read);
        }
    }

    /// That was all of it.
    pub fn end(&mut self) {
        if !self.is_done() {
            let ended = self.json.end();
            self.judge(ended);
        }
    }

    /// Whether no further byte changes anything.
    pub fn is_done(&self) -> bool {
        self.is_malformed || matches!(&self.reader, Reader::Value(value) if value.is_found())
    }

    /// Whether it is no JSON, by what was read so far, or is nested too deeply.
    pub fn is_malformed(&self) -> bool {
        self.is_malformed
    }

    /// The names of keys that it has, by what was read so far, in prefix order; none of a body that is malformed.
    pub fn names(&self) -> Vec<Vec<u8>> {
        match &self.reader {
            _ if self.is_malformed => Vec::new(),
            Reader::Prompt(prompt) => prompt.names().collect(),
            Reader::Value(value) => value.found().map(<[u8]>::to_vec).into_iter().collect(),
        }
    }

    fn judge(&mut self, read: Result<(), Malformed>) {
        // A value that was found stays, whatever comes behind it in the same chunk.
        self.is_malformed = read.is_err() && !self.is_done();
    }
}
