// SPDX-License-Identifier: Apache-2.0
//! An answer without an end that is known, line by line.

use bytes::{Bytes, BytesMut};
use weir_fleet::poll::PollError;

use super::{failure, fetch};

/// What is left of it.
#[derive(Debug)]
pub struct Lines {
    answer: reqwest::Response,
    read: BytesMut,
    /// Of `read`, so much has no end of a line.
    searched: usize,
    longest: usize,
}

impl Lines {
    pub(super) fn new(answer: reqwest::Response, longest: usize) -> Self {
        Self {
            answer,
            read: BytesMut::new(),
            searched: 0,
            longest,
        }
    }

    /// The next one, without its end; none where the answer has ended. Whoever stops waiting loses nothing.
    pub async fn next(&mut self) -> Result<Option<Bytes>, PollError> {
        loop {
            let unseen = self.read.iter().skip(self.searched);
            if let Some(at) = unseen.into_iter().position(|byte| *byte == b'\n') {
                let mut line = self.read.split_to(self.searched + at + 1);
                line.truncate(self.searched + at);
                self.searched = 0;
                return Ok(Some(line.freeze()));
            }
            self.searched = self.read.len();
            if self.searched > self.longest {
                return Err(fetch::too_large(self.searched as u64, self.longest));
            }
            match self.answer.chunk().await.map_err(failure)? {
                Some(data) => self.read.extend_from_slice(&data),
                None if self.read.is_empty() => return Ok(None),
                // The sender was cut off.
                None => {
                    self.searched = 0;
                    return Ok(Some(self.read.split().freeze()));
                }
            }
        }
    }
}
