// SPDX-License-Identifier: Apache-2.0
//! What has come of messages that are not whole yet: tonic keeps it until the rest comes, and of many streams that is
//! more than any message.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::body::Frame;
use tonic::Status;
use tonic::body::Body;

use crate::share::Share;

/// A flag and a length come before each message of gRPC.
const HEADER: usize = 5;

/// The body of a stream of requests.
#[derive(Debug)]
struct Begun {
    body: Body,
    message: Message,
    share: Share,
}

/// The same, where what has come of its unfinished message takes its part of the share's room.
pub(crate) fn counted(body: Body, share: Share) -> Body {
    Body::new(Begun {
        body,
        message: Message::default(),
        share,
    })
}

impl hyper::body::Body for Begun {
    type Data = <Body as hyper::body::Body>::Data;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Status>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        if let Some(data) = frame
            .as_ref()
            .and_then(|frame| frame.as_ref().ok()?.data_ref())
        {
            this.message.take(data);
            if this.share.hold(this.message.came).is_err() {
                let why = "the messages that have begun to come have no room";
                return Poll::Ready(Some(Err(Status::resource_exhausted(why))));
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// The message that comes.
#[derive(Debug, Default)]
struct Message {
    /// Bytes of it that are here, its header included.
    came: usize,
    /// Those after the header, as far as it has said by now.
    length: usize,
}

impl Message {
    fn take(&mut self, mut data: &[u8]) {
        while let [byte, rest @ ..] = data {
            if self.came < HEADER {
                // The flag comes first.
                if self.came > 0 {
                    self.length = self.length << 8 | usize::from(*byte);
                }
                self.came += 1;
                data = rest;
            } else {
                let more = (HEADER + self.length - self.came).min(data.len());
                self.came += more;
                data = &data[more..];
            }
            if self.came >= HEADER && self.came == HEADER + self.length {
                *self = Self::default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_come_is_of_the_unfinished_message_alone_however_it_is_cut() {
        let mut sent = Vec::new();
        for length in [3u32, 0, 300, 7] {
            sent.push(0);
            sent.extend(length.to_be_bytes());
            sent.extend(vec![1; length as usize]);
        }
        let ends = [8, 13, 318, 330];
        for step in [1, 2, 5, 7, 100, 330] {
            let (mut message, mut came) = (Message::default(), 0);
            for part in sent.chunks(step) {
                message.take(part);
                came += part.len();
                let begins = ends.iter().rev().find(|end| **end <= came).unwrap_or(&0);
                assert_eq!(message.came, came - begins, "{step} {came}");
            }
        }
    }
}
