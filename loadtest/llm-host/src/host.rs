// SPDX-License-Identifier: Apache-2.0
//! A host that lives: the model, the clock, and those who wait for answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};
use weir_executor::CacheChanges;

use crate::engine::Engine;
use crate::kv_events::Publisher;
use crate::load::Load;
use crate::sequence::{Refused, Sequence, SequenceId, Spent};

/// What an answer took, or will take, and the load at that time.
pub type Answer = (Spent, Load);

/// One host. Held for the length of a look, the lock never waits for long.
#[derive(Debug)]
pub struct Host {
    origin: Instant,
    publisher: Option<Publisher>,
    desk: Mutex<Desk>,
    /// What happens next may be sooner than it was.
    changed: Notify,
}

#[derive(Debug)]
struct Desk {
    engine: Engine,
    callers: HashMap<SequenceId, Caller>,
}

#[derive(Debug)]
struct Caller {
    /// None once it has been told.
    first_token: Option<oneshot::Sender<Answer>>,
    answer: oneshot::Sender<Answer>,
}

/// A sequence under way. Dropping it before its end cancels it.
#[derive(Debug)]
pub struct UnderWay {
    host: Arc<Host>,
    id: SequenceId,
    first_token: oneshot::Receiver<Answer>,
    answer: oneshot::Receiver<Answer>,
}

/// The runtime is shutting down.
#[derive(Debug, thiserror::Error)]
#[error("the host has stopped")]
pub struct Gone;

impl UnderWay {
    /// Waits for the first token: the prompt has been read. To be asked once.
    ///
    /// # Errors
    /// The host has stopped.
    pub async fn first_token(&mut self) -> Result<Answer, Gone> {
        (&mut self.first_token).await.map_err(|_| Gone)
    }

    /// Waits until so long after the host's origin.
    pub async fn until(&self, at: Duration) {
        sleep_until(self.host.origin + at).await;
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The host has stopped.
    pub async fn answer(mut self) -> Result<Answer, Gone> {
        (&mut self.answer).await.map_err(|_| Gone)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut desk = self.host.desk();
        if desk.callers.remove(&self.id).is_some() {
            desk.engine.cancel(self.host.now(), self.id);
            drop(desk);
            self.host.changed.notify_one();
        }
    }
}

impl Host {
    /// Starts the task that ends sequences. Times count from `origin`. What comes into the cache and goes is
    /// told to the publisher, if there is one.
    #[must_use]
    pub fn start(mut engine: Engine, origin: Instant, publisher: Option<Publisher>) -> Arc<Self> {
        if publisher.is_some() {
            engine.note_changes();
        }
        let host = Arc::new(Self {
            origin,
            publisher,
            desk: Mutex::new(Desk {
                engine,
                callers: HashMap::new(),
            }),
            changed: Notify::new(),
        });
        tokio::spawn(Arc::clone(&host).run());
        host
    }

    /// Accepts a sequence.
    ///
    /// # Errors
    /// See [`Engine::submit`].
    pub fn submit(self: &Arc<Self>, sequence: Sequence) -> Result<UnderWay, Refused> {
        let mut desk = self.desk();
        let id = desk.engine.submit(self.now(), sequence)?;
        let (read, first_token) = oneshot::channel();
        let (written, answer) = oneshot::channel();
        let caller = Caller {
            first_token: Some(read),
            answer: written,
        };
        desk.callers.insert(id, caller);
        drop(desk);
        self.changed.notify_one();
        Ok(UnderWay {
            host: Arc::clone(self),
            id,
            first_token,
            answer,
        })
    }

    /// The load now.
    pub fn load(&self) -> Load {
        self.desk().engine.load(self.now())
    }

    /// See [`Engine::cache_changes`].
    pub fn cache_changes(&self, since: u64, epoch: Option<u64>) -> CacheChanges {
        self.desk().engine.cache_changes(since, epoch)
    }

    async fn run(self: Arc<Self>) {
        loop {
            let due = self.tell();
            let changed = self.changed.notified();
            match due {
                Some(due) => tokio::select! {
                    () = sleep_until(self.origin + due) => {}
                    () = changed => {}
                },
                None => changed.await,
            }
        }
    }

    /// Answers whoever waits for what has ended; returns when something happens next.
    fn tell(&self) -> Option<Duration> {
        let mut desk = self.desk();
        let now = self.now();
        let ended = desk.engine.advance(now);
        let load = desk.engine.load(now);
        let Desk { engine, callers } = &mut *desk;
        // A caller that left in this instant is no error.
        for (id, spent) in engine.begun_to_write() {
            let caller = callers.get_mut(id);
            if let Some(told) = caller.and_then(|caller| caller.first_token.take()) {
                let _ = told.send((*spent, load.clone()));
            }
        }
        for (id, spent) in ended {
            if let Some(caller) = callers.remove(&id) {
                let _ = caller.answer.send((spent, load.clone()));
            }
        }
        let changes = desk.engine.take_changes();
        if let Some(publisher) = &self.publisher
            && !changes.is_empty()
        {
            publisher.publish(&changes);
        }
        desk.engine.next_due()
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
