// SPDX-License-Identifier: Apache-2.0
//! The handle through which others talk to the task that owns a host.

mod owner;

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, oneshot};
use weir_executor::{CacheChanges, Full, Load, Request, Spent, Work};

use crate::engine::Engine;
use crate::metrics::Families;
use crate::picture::Picture;
use owner::Owner;

/// What happens to a submitted job, in this order; the last three end it.
#[derive(Debug)]
pub enum News<E> {
    /// A joblet that it needs has a core.
    Started,
    /// Its last joblet has; the wait is final.
    Began(Spent, Load),
    /// It was done or has failed.
    Ended(Result<Spent, E>, Load),
    /// Too many jobs are queued.
    Refused(Full, Load),
    /// The host stopped before the job could finish.
    Stopped(Load),
}

/// How a caller leaves a job.
#[derive(Debug, Clone, Copy)]
enum Leave {
    /// What runs may end: its result may be of use to others.
    Cancel,
    /// What runs for this job alone is stopped.
    Abort,
    /// The same, as its time is over.
    TimeOut,
}

#[derive(Debug)]
enum Command<W: Work> {
    Submit {
        ticket: u64,
        request: Request<W>,
        news: mpsc::UnboundedSender<News<W::Error>>,
    },
    Leave {
        ticket: u64,
        how: Leave,
    },
    Cache {
        since: u64,
        epoch: Option<u64>,
        reply: oneshot::Sender<CacheChanges>,
    },
    Look {
        reply: oneshot::Sender<Picture>,
    },
    Stop {
        reply: oneshot::Sender<()>,
    },
}

/// The owner task has ended.
#[derive(Debug, thiserror::Error)]
#[error("the host has stopped")]
pub struct Gone;

/// Talks to the owner task. The channel is unbounded: a connection has one command under way at a
/// time, and the executor refuses jobs over its limit.
#[derive(Debug)]
pub struct Host<W: Work> {
    commands: mpsc::UnboundedSender<Command<W>>,
    tickets: AtomicU64,
}

/// A submitted job. Dropping it before its end cancels the job.
#[derive(Debug)]
pub struct Running<W: Work> {
    news: mpsc::UnboundedReceiver<News<W::Error>>,
    commands: mpsc::UnboundedSender<Command<W>>,
    ticket: u64,
    ended: bool,
    leave: Leave,
}

impl<W: Work> Running<W> {
    /// What happens next.
    pub async fn next(&mut self) -> Result<News<W::Error>, Gone> {
        let news = self.news.recv().await.ok_or(Gone)?;
        self.ended = matches!(
            news,
            News::Ended(..) | News::Refused(..) | News::Stopped(..)
        );
        Ok(news)
    }

    /// From now on, dropping it also stops what runs for it alone.
    pub fn abort_on_drop(&mut self) {
        self.leave = Leave::Abort;
    }

    /// Stops what runs for it alone, as its time is over.
    pub fn time_out(&mut self) {
        self.leave = Leave::TimeOut;
    }
}

impl<W: Work> Drop for Running<W> {
    fn drop(&mut self) {
        if !self.ended {
            let (ticket, how) = (self.ticket, self.leave);
            // A stopped host has no jobs left to cancel.
            let _ = self.commands.send(Command::Leave { ticket, how });
        }
    }
}

impl<W: Work> Host<W> {
    /// Starts the owner task; it ends when the handle and every job are gone.
    #[must_use]
    pub fn start(engine: impl Engine<Work = W>, metrics: Families) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        tokio::spawn(Owner::new(engine, metrics).run(inbox));
        Self {
            commands,
            tickets: AtomicU64::new(0),
        }
    }

    /// Submits a job.
    pub fn submit(&self, request: Request<W>) -> Result<Running<W>, Gone> {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let (sender, news) = mpsc::unbounded_channel();
        let command = Command::Submit {
            ticket,
            request,
            news: sender,
        };
        self.commands.send(command).map_err(|_| Gone)?;
        Ok(Running {
            news,
            commands: self.commands.clone(),
            ticket,
            ended: false,
            leave: Leave::Cancel,
        })
    }

    /// See [`weir_executor::Cache::changes_since`].
    pub async fn cache(&self, since: u64, epoch: Option<u64>) -> Result<CacheChanges, Gone> {
        self.ask(|reply| Command::Cache {
            since,
            epoch,
            reply,
        })
        .await
    }

    /// What the host looks like now.
    pub async fn look(&self) -> Result<Picture, Gone> {
        self.ask(|reply| Command::Look { reply }).await
    }

    /// Answers every unfinished job, and every later one, with [`News::Stopped`]; returns when
    /// nothing runs any more.
    pub async fn stop(&self) -> Result<(), Gone> {
        self.ask(|reply| Command::Stop { reply }).await
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command<W>,
    ) -> Result<T, Gone> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }
}
