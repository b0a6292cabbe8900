// SPDX-License-Identifier: Apache-2.0
//! The task that owns the emulator, and the handle others talk to it through.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::executor::{CacheChanges, Done, Emulator, Event, JobId, Load, Request};
use crate::metrics::{Families, Outcome};

/// How a submitted job was answered, with the load at that moment.
#[derive(Debug)]
pub enum Answer {
    /// Finished.
    Done(Done, Load),
    /// Too many jobs are queued.
    Refused(String, Load),
    /// The host stopped before the job could finish.
    Stopped(Load),
}

/// What the host looks like now.
#[derive(Debug)]
pub struct Picture {
    /// The load.
    pub load: Load,
    /// Jobs whose callers still wait.
    pub unanswered: usize,
    /// Bytes in the cache.
    pub cache_bytes: u64,
    /// Keys in the cache.
    pub cache_items: usize,
    /// Keys evicted so far.
    pub cache_evictions: u64,
}

#[derive(Debug)]
enum Command {
    Submit {
        ticket: u64,
        request: Request,
        run: Duration,
        reply: oneshot::Sender<Answer>,
    },
    Cancel {
        ticket: u64,
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
#[derive(Debug, Clone)]
pub struct Host {
    commands: mpsc::UnboundedSender<Command>,
    tickets: Arc<AtomicU64>,
}

/// Cancels its job when dropped before the answer came.
#[derive(Debug)]
struct Ticket<'a> {
    host: &'a Host,
    number: u64,
    answered: bool,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.answered {
            let ticket = self.number;
            // A stopped host has no jobs left to cancel.
            let _ = self.host.commands.send(Command::Cancel { ticket });
        }
    }
}

impl Host {
    /// Starts the owner task; it ends when every handle is gone.
    #[must_use]
    pub fn start(emulator: Emulator, metrics: Families) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        let owner = Owner {
            emulator,
            metrics,
            origin: Instant::now(),
            tickets: HashMap::new(),
            waiting: HashMap::new(),
        };
        tokio::spawn(owner.run(inbox));
        Self {
            commands,
            tickets: Arc::default(),
        }
    }

    /// Runs a job to its end. Dropping the future cancels the job.
    pub async fn submit(&self, request: Request, run: Duration) -> Result<Answer, Gone> {
        let number = self.tickets.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        let mut ticket = Ticket {
            host: self,
            number,
            answered: false,
        };
        let command = Command::Submit {
            ticket: number,
            request,
            run,
            reply,
        };
        self.commands.send(command).map_err(|_| Gone)?;
        let answer = answer.await.map_err(|_| Gone);
        ticket.answered = true;
        answer
    }

    /// See [`crate::executor::Cache::changes_since`].
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

    /// Answers every unfinished job with [`Answer::Stopped`].
    pub async fn stop(&self) -> Result<(), Gone> {
        self.ask(|reply| Command::Stop { reply }).await
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Gone> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }
}

#[derive(Debug)]
struct Owner {
    emulator: Emulator,
    metrics: Families,
    origin: Instant,
    tickets: HashMap<u64, JobId>,
    waiting: HashMap<JobId, (u64, oneshot::Sender<Answer>)>,
}

impl Owner {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Command>) {
        loop {
            let due = self.emulator.next_due().map(|at| self.origin + at);
            tokio::select! {
                command = inbox.recv() => match command {
                    Some(command) => self.handle(command),
                    None => return,
                },
                () = sleep_until(due) => {}
            }
            self.tell();
        }
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn handle(&mut self, command: Command) {
        // A reply that nobody waits for any more is no error.
        match command {
            Command::Submit {
                ticket,
                request,
                run,
                reply,
            } => self.submit(ticket, request, run, reply),
            Command::Cancel { ticket } => self.cancel(ticket),
            Command::Cache {
                since,
                epoch,
                reply,
            } => {
                let cache = self.emulator.executor().cache();
                let _ = reply.send(cache.changes_since(since, epoch));
            }
            Command::Look { reply } => {
                let _ = reply.send(self.picture());
            }
            Command::Stop { reply } => {
                self.stop();
                let _ = reply.send(());
            }
        }
    }

    fn submit(
        &mut self,
        ticket: u64,
        request: Request,
        run: Duration,
        reply: oneshot::Sender<Answer>,
    ) {
        let now = self.now();
        match self.emulator.submit(now, request, run) {
            Ok(job) => {
                self.tickets.insert(ticket, job);
                self.waiting.insert(job, (ticket, reply));
            }
            Err(full) => {
                self.metrics.ended(Outcome::Refused);
                let load = self.emulator.load(now);
                let _ = reply.send(Answer::Refused(full.to_string(), load));
            }
        }
    }

    fn cancel(&mut self, ticket: u64) {
        if let Some(job) = self.tickets.remove(&ticket) {
            self.waiting.remove(&job);
            self.emulator.cancel(self.now(), job);
            self.metrics.ended(Outcome::Cancelled);
        }
    }

    fn stop(&mut self) {
        let now = self.now();
        self.tell();
        for job in self.emulator.executor().jobs() {
            self.emulator.cancel(now, job);
            if let Some((ticket, reply)) = self.waiting.remove(&job) {
                self.tickets.remove(&ticket);
                self.metrics.ended(Outcome::Stopped);
                let load = self.emulator.load(now);
                let _ = reply.send(Answer::Stopped(load));
            }
        }
    }

    fn picture(&mut self) -> Picture {
        let load = self.emulator.load(self.now());
        let cache = self.emulator.executor().cache();
        Picture {
            load,
            unanswered: self.waiting.len(),
            cache_bytes: cache.bytes(),
            cache_items: cache.len(),
            cache_evictions: cache.evictions(),
        }
    }

    /// Passes on what has happened in the emulator.
    fn tell(&mut self) {
        let now = self.now();
        for event in self.emulator.advance(now) {
            match event {
                Event::Began(_, wait) => self.metrics.began(wait),
                Event::Done(done) => {
                    self.metrics.ended(Outcome::Done);
                    self.metrics.looked_up(done.source);
                    if let Some((ticket, reply)) = self.waiting.remove(&done.job) {
                        self.tickets.remove(&ticket);
                        let load = self.emulator.load(now);
                        let _ = reply.send(Answer::Done(done, load));
                    }
                }
            }
        }
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
