// SPDX-License-Identifier: Apache-2.0
//! From a running job to its answer: deadlines, the head, and the body as it is written.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_stream::Stream;
use tracing::debug;
use weir_executor::{Load, Spent};
use weir_rules::Timeouts;

use super::task::{Task, TaskError};
use crate::host::{Gone, News, Running};
use crate::server::failure::Failure;

/// Answers up to this size are sent when they are complete, with their run time in the head;
/// larger ones are streamed.
const WHOLE: usize = 256 << 10;
/// Chunks between the pump and a slow client's connection.
const PIPE: usize = 2;

/// A job whose answer is written.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) spent: Spent,
    pub(super) load: Load,
    /// Whether the run is over and its time final.
    pub(super) whole: bool,
    pub(super) body: Body,
}

/// Why a job has no answer, with the load at that moment if it is known.
pub(super) type Failed = (Failure, Option<Box<Load>>);

/// A submitted job and what it writes.
#[derive(Debug)]
pub(super) struct Delivery {
    running: Running<Task>,
    chunks: mpsc::UnboundedReceiver<Bytes>,
    timeouts: Timeouts,
    /// Whether its last joblet writes; that of a prefetch only fetches.
    writes: bool,
    /// Whether the job is done, though not everything it wrote may have been sent.
    ended: bool,
}

impl Delivery {
    pub(super) fn new(
        running: Running<Task>,
        chunks: mpsc::UnboundedReceiver<Bytes>,
        timeouts: Timeouts,
        writes: bool,
    ) -> Self {
        Self {
            running,
            chunks,
            timeouts,
            writes,
            ended: false,
        }
    }

    /// Waits until the answer is complete, or large enough to be streamed.
    pub(super) async fn answer(mut self) -> Result<Answer, Failed> {
        let began = self.begin().await?;
        let deadline = Instant::now() + self.timeouts.stream;
        let mut head = BytesMut::new();
        let (spent, load) = match began {
            Began::Ended(spent, load) => return Ok(self.whole(head, spent, load)),
            Began::Writing(spent, load) => (spent, load),
        };
        loop {
            tokio::select! {
                // Or an answer of any size would be taken for a small one when its job is quick.
                biased;
                Some(chunk) = self.chunks.recv() => head.extend_from_slice(&chunk),
                turn = next(&mut self.running, deadline) => match turn? {
                    Some(News::Ended(Ok(spent), load)) => {
                        return Ok(self.whole(head, spent, load));
                    }
                    Some(news) => ended_badly(news)?,
                    None => return Err(self.timed_out("stream", self.timeouts.stream)),
                },
            }
            if head.len() > WHOLE {
                let body = self.stream(head.freeze(), deadline);
                return Ok(Answer {
                    spent,
                    load,
                    whole: false,
                    body,
                });
            }
        }
    }

    /// Waits for the answer to begin, or for the end of a job without one.
    async fn begin(&mut self) -> Result<Began, Failed> {
        let mut started = false;
        let mut deadline = Instant::now() + self.timeouts.queue;
        loop {
            match next(&mut self.running, deadline).await? {
                Some(News::Started) => {
                    started = true;
                    deadline = Instant::now() + self.timeouts.evaluate;
                }
                Some(News::Began(spent, load)) if self.writes => {
                    return Ok(Began::Writing(spent, load));
                }
                Some(News::Ended(Ok(spent), load)) => return Ok(Began::Ended(spent, load)),
                Some(news) => ended_badly(news)?,
                None if started => {
                    return Err(self.timed_out("evaluate", self.timeouts.evaluate));
                }
                None => return Err(self.timed_out("queue", self.timeouts.queue)),
            }
        }
    }

    fn timed_out(&mut self, stage: &str, limit: Duration) -> Failed {
        self.running.time_out();
        let status = match stage {
            "queue" => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::GATEWAY_TIMEOUT,
        };
        let seconds = limit.as_secs_f64();
        let reason =
            format!("timed out: {stage} took longer than {seconds} s (timeouts.{stage}_seconds)");
        (Failure::new(status, reason), None)
    }

    /// The answer of a job that has ended. All its chunks were sent before its end was told.
    fn whole(mut self, mut head: BytesMut, spent: Spent, load: Load) -> Answer {
        while let Ok(chunk) = self.chunks.try_recv() {
            head.extend_from_slice(&chunk);
        }
        Answer {
            spent,
            load,
            whole: true,
            body: Body::from(head.freeze()),
        }
    }

    /// Sends `head` and what follows. The pump, not the connection, keeps the deadline: a client
    /// that never reads would keep a connection from ever asking.
    fn stream(self, head: Bytes, deadline: Instant) -> Body {
        let (pipe, chunks) = mpsc::channel(PIPE);
        tokio::spawn(self.pump(pipe, head, deadline));
        Body::from_stream(Streamed {
            chunks,
            ended: false,
        })
    }

    async fn pump(mut self, pipe: mpsc::Sender<Piece>, head: Bytes, deadline: Instant) {
        self.running.abort_on_drop();
        let mut piece = Piece::Chunk(head);
        loop {
            let last = matches!(piece, Piece::End);
            match timeout_at(deadline, pipe.send(piece)).await {
                Ok(Ok(())) if last => return,
                Ok(Ok(())) => {}
                Ok(Err(_)) => return debug!("the client left in the middle of its answer"),
                Err(_) => {
                    self.running.time_out();
                    return debug!("the client did not take its answer in time");
                }
            }
            piece = match self.next_piece(deadline).await {
                Some(piece) => piece,
                None => return debug!("the job failed in the middle of its answer"),
            };
        }
    }

    /// `None` if the job has failed or its time is over.
    async fn next_piece(&mut self, deadline: Instant) -> Option<Piece> {
        loop {
            if let Ok(chunk) = self.chunks.try_recv() {
                return Some(Piece::Chunk(chunk));
            }
            if self.ended {
                return Some(Piece::End);
            }
            tokio::select! {
                Some(chunk) = self.chunks.recv() => return Some(Piece::Chunk(chunk)),
                turn = next(&mut self.running, deadline) => match turn {
                    Ok(Some(News::Ended(Ok(_), _))) => self.ended = true,
                    Ok(Some(News::Started | News::Began(..))) => {}
                    Ok(Some(_)) | Err(_) => return None,
                    Ok(None) => {
                        self.running.time_out();
                        return None;
                    }
                },
            }
        }
    }
}

enum Began {
    Writing(Spent, Load),
    Ended(Spent, Load),
}

/// The next news, or `None` at the deadline.
async fn next(
    running: &mut Running<Task>,
    deadline: Instant,
) -> Result<Option<News<TaskError>>, Failed> {
    match timeout_at(deadline, running.next()).await {
        Ok(Ok(news)) => Ok(Some(news)),
        Ok(Err(Gone)) => Err((Failure::gone(), None)),
        Err(_) => Ok(None),
    }
}

/// An error, if the job has ended without an answer.
fn ended_badly(news: News<TaskError>) -> Result<(), Failed> {
    match news {
        News::Started | News::Began(..) | News::Ended(Ok(_), _) => Ok(()),
        News::Ended(Err(error), load) => Err((Failure::from(&error), Some(Box::new(load)))),
        News::Refused(full, load) => {
            Err((Failure::unavailable(full.to_string()), Some(Box::new(load))))
        }
        News::Stopped(load) => Err((Failure::stopped(), Some(Box::new(load)))),
    }
}

#[derive(Debug)]
enum Piece {
    Chunk(Bytes),
    End,
}

/// A body that is an error unless its end was sent: a client never takes a part for the whole.
#[derive(Debug)]
struct Streamed {
    chunks: mpsc::Receiver<Piece>,
    ended: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the answer was cut short")]
struct CutShort;

impl Stream for Streamed {
    type Item = Result<Bytes, CutShort>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.chunks.poll_recv(cx).map(|piece| match piece {
            Some(Piece::Chunk(chunk)) => Some(Ok(chunk)),
            Some(Piece::End) => None,
            None => {
                self.ended = true;
                Some(Err(CutShort))
            }
        })
    }
}
