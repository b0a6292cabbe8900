// SPDX-License-Identifier: Apache-2.0
//! One connection to memcached that never waits: requests are gathered and written when they fit,
//! answers are read as they come and checked.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use crate::answer::{Broken, Piece, piece};
use crate::keys::{KEY_BYTES, Keys};
use crate::schedule::Arrival;

/// Read at once.
const READ_BYTES: usize = 64 * 1024;

/// What became of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// All values that came were right; so many keys were not there.
    Answered { misses: u32 },
    /// Refused, a wrong value, or lost with its connection.
    Failed,
}

pub(crate) struct Connection {
    stream: TcpStream,
    output: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    /// `input[parsed..read]` has come and is not understood yet.
    parsed: usize,
    read: usize,
    /// Oldest first. Their number is what bounds `output` and `keys`.
    waiting: VecDeque<Arrival>,
    /// The keys that the waiting ones ask for, in order.
    keys: VecDeque<u32>,
    keys_per_get: u32,
    /// Of the oldest one: keys that were passed over or found, and whether a value was wrong.
    misses: u32,
    found: u32,
    wrong: bool,
}

impl Connection {
    /// Each request asks for `keys_per_get` keys, whose values have `value_bytes`.
    pub(crate) fn new(
        stream: TcpStream,
        keys_per_get: u32,
        value_bytes: usize,
    ) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            output: Vec::new(),
            written: 0,
            input: vec![0; READ_BYTES + KEY_BYTES + value_bytes],
            parsed: 0,
            read: 0,
            waiting: VecDeque::new(),
            keys: VecDeque::new(),
            keys_per_get,
            misses: 0,
            found: 0,
            wrong: false,
        })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether some of what was asked is not written yet.
    pub(crate) fn is_writing(&self) -> bool {
        self.written < self.output.len()
    }

    /// Gathers a request for these keys, `keys_per_get` of them.
    pub(crate) fn ask(
        &mut self,
        arrival: Arrival,
        numbers: impl Iterator<Item = u32>,
        keys: &Keys,
    ) {
        self.output.extend_from_slice(b"get");
        for number in numbers {
            self.output.push(b' ');
            self.output.extend_from_slice(keys.key(number));
            self.keys.push_back(number);
        }
        self.output.extend_from_slice(b"\r\n");
        self.waiting.push_back(arrival);
    }

    /// Writes what the socket takes.
    pub(crate) fn flush(&mut self) -> Result<(), Broken> {
        while self.is_writing() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return Err(Broken::Closed),
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Broken::Closed),
            }
        }
        if !self.is_writing() {
            self.output.clear();
            self.written = 0;
        } else if self.written >= READ_BYTES {
            self.output.drain(..self.written);
            self.written = 0;
        }
        Ok(())
    }

    /// Reads once, tells what became of each request that is done.
    pub(crate) fn receive(
        &mut self,
        keys: &Keys,
        done: &mut impl FnMut(Arrival, Outcome),
    ) -> Result<(), Broken> {
        self.input.copy_within(self.parsed..self.read, 0);
        self.read -= self.parsed;
        self.parsed = 0;
        match self.stream.read(&mut self.input[self.read..]) {
            Ok(0) => return Err(Broken::Closed),
            Ok(bytes) => self.read += bytes,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(());
            }
            Err(_) => return Err(Broken::Closed),
        }
        self.understand(keys, done)
    }

    /// The requests that will never be answered.
    pub(crate) fn lost(&mut self) -> impl Iterator<Item = Arrival> {
        self.keys.clear();
        self.output.clear();
        self.written = 0;
        self.waiting.drain(..)
    }

    fn understand(
        &mut self,
        keys: &Keys,
        done: &mut impl FnMut(Arrival, Outcome),
    ) -> Result<(), Broken> {
        while self.parsed < self.read {
            let said = &self.input[self.parsed..self.read];
            let Some(piece) = piece(said, keys.value_bytes())? else {
                break;
            };
            match piece {
                Piece::Value { key, value, bytes } => {
                    self.parsed += bytes;
                    let number = loop {
                        // Values come in the order of the question; those passed over are missing.
                        if self.found + self.misses == self.keys_per_get {
                            return Err(Broken::Key(String::from_utf8_lossy(key).into_owned()));
                        }
                        let number = self.keys.pop_front().ok_or(Broken::Unasked)?;
                        if keys.key(number) == key {
                            break number;
                        }
                        self.misses += 1;
                    };
                    self.found += 1;
                    self.wrong |= keys.value(number) != value;
                }
                Piece::End { bytes } => {
                    self.parsed += bytes;
                    let failed = self.wrong;
                    self.next(failed, done)?;
                }
                Piece::Refused { bytes } => {
                    self.parsed += bytes;
                    self.next(true, done)?;
                }
            }
        }
        Ok(())
    }

    /// The oldest request is done.
    fn next(
        &mut self,
        failed: bool,
        done: &mut impl FnMut(Arrival, Outcome),
    ) -> Result<(), Broken> {
        let arrival = self.waiting.pop_front().ok_or(Broken::Unasked)?;
        let rest = self.keys_per_get - self.found - self.misses;
        self.keys.drain(..rest as usize);
        let outcome = match failed {
            true => Outcome::Failed,
            false => Outcome::Answered {
                misses: self.misses + rest,
            },
        };
        (self.misses, self.found, self.wrong) = (0, 0, false);
        done(arrival, outcome);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
