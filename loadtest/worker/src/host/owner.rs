// SPDX-License-Identifier: Apache-2.0
//! The task that owns the engine.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use weir_executor::{Event, JobId, Request, Work};

use super::{Command, Leave, News};
use crate::engine::Engine;
use crate::metrics::{Families, Outcome};
use crate::picture::Picture;

/// Who waits for a job.
#[derive(Debug)]
struct Caller<E> {
    ticket: u64,
    class: u8,
    news: mpsc::UnboundedSender<News<E>>,
}

#[derive(Debug)]
pub(super) struct Owner<E: Engine> {
    engine: E,
    metrics: Families,
    origin: Instant,
    tickets: HashMap<u64, JobId>,
    callers: HashMap<JobId, Caller<<E::Work as Work>::Error>>,
    stopped: bool,
    /// Who waits for the end of all that runs.
    quiet: Vec<oneshot::Sender<()>>,
}

type NewsOf<E> = News<<<E as Engine>::Work as Work>::Error>;

impl<E: Engine> Owner<E> {
    pub(super) fn new(engine: E, metrics: Families) -> Self {
        Self {
            engine,
            metrics,
            origin: Instant::now(),
            tickets: HashMap::new(),
            callers: HashMap::new(),
            stopped: false,
            quiet: Vec::new(),
        }
    }

    pub(super) async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Command<E::Work>>) {
        loop {
            let now = self.now();
            tokio::select! {
                command = inbox.recv() => match command {
                    Some(command) => self.handle(command),
                    None => return,
                },
                () = self.engine.wake(now) => {}
            }
            self.tell();
            if self.engine.is_still() {
                for reply in self.quiet.drain(..) {
                    let _ = reply.send(());
                }
            }
        }
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn handle(&mut self, command: Command<E::Work>) {
        // A reply that nobody waits for any more is no error.
        match command {
            Command::Submit {
                ticket,
                request,
                news,
            } => self.submit(ticket, request, news),
            Command::Leave { ticket, how } => self.leave(ticket, how),
            Command::Cache {
                since,
                epoch,
                reply,
            } => {
                let cache = self.engine.executor().cache();
                let _ = reply.send(cache.changes_since(since, epoch));
            }
            Command::Look { reply } => {
                let _ = reply.send(self.picture());
            }
            Command::Stop { reply } => {
                self.stop();
                self.quiet.push(reply);
            }
        }
    }

    fn submit(
        &mut self,
        ticket: u64,
        request: Request<E::Work>,
        news: mpsc::UnboundedSender<NewsOf<E>>,
    ) {
        let now = self.now();
        let class = request.class;
        if self.stopped {
            self.metrics.ended(Outcome::Stopped);
            let _ = news.send(News::Stopped(self.engine.load(now)));
            return;
        }
        match self.engine.submit(now, request) {
            Ok(job) => {
                self.tickets.insert(ticket, job);
                let caller = Caller {
                    ticket,
                    class,
                    news,
                };
                self.callers.insert(job, caller);
            }
            Err(full) => {
                self.metrics.ended(Outcome::Refused);
                let _ = news.send(News::Refused(full, self.engine.load(now)));
            }
        }
    }

    fn leave(&mut self, ticket: u64, how: Leave) {
        // It may have ended meanwhile.
        self.tell();
        let Some(job) = self.tickets.remove(&ticket) else {
            return;
        };
        self.callers.remove(&job);
        let now = self.now();
        let outcome = match how {
            Leave::Cancel => {
                self.engine.cancel(now, job);
                Outcome::Cancelled
            }
            Leave::Abort => {
                self.engine.abort(now, job);
                Outcome::Cancelled
            }
            Leave::TimeOut => {
                self.engine.abort(now, job);
                Outcome::TimedOut
            }
        };
        self.metrics.ended(outcome);
    }

    fn stop(&mut self) {
        let now = self.now();
        self.tell();
        self.stopped = true;
        self.engine.stop();
        let load = self.engine.load(now);
        for job in self.engine.executor().jobs() {
            self.engine.abort(now, job);
            if let Some(caller) = self.callers.remove(&job) {
                self.tickets.remove(&caller.ticket);
                self.metrics.ended(Outcome::Stopped);
                let _ = caller.news.send(News::Stopped(load.clone()));
            }
        }
    }

    fn picture(&mut self) -> Picture {
        let load = self.engine.load(self.now());
        let cache = self.engine.executor().cache();
        Picture {
            load,
            unanswered: self.callers.len(),
            cache_bytes: cache.bytes(),
            cache_items: cache.len(),
            cache_evictions: cache.evictions(),
        }
    }

    /// Passes on what has happened in the engine.
    fn tell(&mut self) {
        let now = self.now();
        for event in self.engine.advance(now) {
            match event {
                Event::Started(job) => {
                    if let Some(caller) = self.callers.get(&job) {
                        let _ = caller.news.send(News::Started);
                    }
                }
                Event::Began(job, spent) => {
                    let load = self.engine.load(now);
                    if let Some(caller) = self.callers.get(&job) {
                        self.metrics.began(caller.class, spent.wait);
                        let _ = caller.news.send(News::Began(spent, load));
                    }
                }
                Event::Ended(job, outcome) => {
                    let load = self.engine.load(now);
                    match &outcome {
                        Ok(spent) => {
                            self.metrics.ended(Outcome::Done);
                            self.metrics.looked_up(spent.source);
                        }
                        Err(_) => self.metrics.ended(Outcome::Failed),
                    }
                    if let Some(caller) = self.callers.remove(&job) {
                        self.tickets.remove(&caller.ticket);
                        let _ = caller.news.send(News::Ended(outcome, load));
                    }
                }
            }
        }
    }
}
