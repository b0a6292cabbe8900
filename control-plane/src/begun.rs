// SPDX-License-Identifier: Apache-2.0
//! What has come of messages that are not whole yet: tonic keeps it until the rest comes, and of many streams that is
//! more than any message.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::Frame;
use tokio::time::Sleep;
use tonic::Status;
use tonic::body::Body;

use crate::share::Share;

/// A flag and a length come before each message of gRPC.
const HEADER: usize = 5;
/// For so long a message may come: who begins one and keeps the rest would keep the room that others need. The largest
/// takes 1.7 MB a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// The body of a stream of requests.
#[derive(Debug)]
struct Begun {
    body: Body,
    message: Message,
    share: Share,
    /// When the rest has to be here.
    until: Option<Pin<Box<Sleep>>>,
}

/// The same, where what has come of its unfinished message takes its part of the share's room.
pub(crate) fn counted(body: Body, share: Share) -> Body {
    Body::new(Begun {
        body,
        message: Message::default(),
        share,
        until: None,
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
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
            let until = this.until.as_mut();
            let until = until.map_or(Poll::Pending, |until| until.as_mut().poll(context));
            return until.map(|()| {
                let seconds = PATIENCE.as_secs();
                let why = format!("a message has not come in whole within {seconds} s");
                Some(Err(Status::deadline_exceeded(why)))
            });
        };
        if let Some(data) = frame
            .as_ref()
            .and_then(|frame| frame.as_ref().ok()?.data_ref())
        {
            let is_whole = this.message.take(data);
            if this.message.came == 0 {
                this.until = None;
            } else if is_whole || this.until.is_none() {
                this.until = Some(Box::pin(tokio::time::sleep(PATIENCE)));
            }
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
    /// Says whether one has become whole.
    fn take(&mut self, mut data: &[u8]) -> bool {
        let mut is_whole = false;
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
                is_whole = true;
            }
        }
        is_whole
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::{BodyExt, StreamBody};
    use prometheus_client::metrics::gauge::Gauge;
    use tokio::sync::mpsc;
    use tokio_stream::StreamExt;
    use tokio_stream::wrappers::ReceiverStream;

    use super::*;
    use crate::share::Room;

    /// A body of parts that come, and its room.
    fn body() -> (mpsc::Sender<Vec<u8>>, Body, Room) {
        let (sender, parts) = mpsc::channel(8);
        let frame = |part: Vec<u8>| Ok::<_, Status>(Frame::data(Bytes::from(part)));
        let parts = StreamBody::new(ReceiverStream::new(parts).map(frame));
        let room = Room::new(100, Gauge::default());
        (sender, counted(Body::new(parts), room.share()), room)
    }

    #[tokio::test(start_paused = true)]
    async fn the_rest_of_a_message_is_waited_for_ten_seconds_however_it_drips() {
        let (sender, mut body, room) = body();
        tokio::spawn(async move {
            let head = [0, 0, 0, 0, 90];
            sender.send(head.to_vec()).await.unwrap();
            while sender.send(vec![1]).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        let began = tokio::time::Instant::now();
        let error = loop {
            match body.frame().await.expect("it goes on") {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.code(), tonic::Code::DeadlineExceeded);
        assert_eq!(began.elapsed().as_secs(), PATIENCE.as_secs());
        drop(body);
        assert_eq!(room.taken(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn between_whole_messages_nobody_is_hurried() {
        let (sender, mut body, _room) = body();
        tokio::spawn(async move {
            for part in [
                vec![0, 0, 0, 0, 2, 7],
                vec![7],
                vec![0, 0, 0, 0, 0, 0],
                vec![0; 4],
            ] {
                sender.send(part).await.unwrap();
                tokio::time::sleep(PATIENCE * 9 / 10).await;
            }
            tokio::time::sleep(PATIENCE * 3).await;
        });
        while let Some(frame) = body.frame().await {
            frame.unwrap();
        }
    }

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
