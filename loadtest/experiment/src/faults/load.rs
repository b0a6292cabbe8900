// SPDX-License-Identifier: Apache-2.0
//! Steady requests, open-loop: each is sent when it is due, whatever became of those before it.

mod client;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::task::JoinSet;
use weir_mesh::Caller;
use weir_replay::popularity::Zipf;
use weir_replay::rng::SplitMix64;

use self::client::{Client, Message};
use crate::faults::record::{End, Record};

/// A load that is forgotten ends by itself.
const MOST: u64 = 200_000;
/// Requests under way at the same time. One beyond fails, unsent: waiting would close the loop.
const UNDER_WAY: usize = 5_000;
/// Keys in all: a few are asked for by many.
pub(crate) const KEYS: usize = 60;
/// From when a request is due to its end. Longer than the 15 s after which Envoy gives up by itself.
const DEADLINE: Duration = Duration::from_secs(20);

/// What is sent.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// The first part of each request's name.
    pub name: String,
    /// Requests a second.
    pub rate: u32,
    /// Time that each holds a core of its host.
    pub run: Duration,
    /// What the client does with connections and answers.
    pub manner: Manner,
}

impl Pattern {
    /// One of the [`KEYS`].
    pub(crate) fn key(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }
}

/// How the client behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Connections are kept, answers are awaited.
    Kept,
    /// Each request has a connection of its own.
    Fresh,
    /// Every second request is abandoned after this time, and its connection with it.
    Abandons(Duration),
    /// Connections are kept; every request is for one key that no host can serve.
    Poison,
}

/// A load that goes on.
pub struct Load {
    state: Arc<State>,
    thread: Option<JoinHandle<Result<()>>>,
}

struct State {
    began: Instant,
    over: AtomicBool,
    sent: AtomicU64,
    records: Mutex<Vec<Record>>,
}

/// What came of a load.
#[derive(Debug)]
pub struct Sent {
    /// Requests that were sent.
    pub sent: u64,
    /// Their ends; one each if all is well.
    pub records: Vec<Record>,
}

impl Load {
    /// Begins to send, to each of the callers in turn.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn start(pattern: &Pattern, callers: &[Caller]) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("starting the load")?;
        let state = Arc::new(State {
            began: Instant::now(),
            over: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            records: Mutex::default(),
        });
        let (pattern, own) = (pattern.clone(), Arc::clone(&state));
        let targets = callers.iter().map(|caller| caller.outbound).collect();
        let client = Arc::new(Client::new(targets, pattern.manner));
        let send = move || {
            runtime.block_on(requests(&pattern, &client, &own));
            Ok(())
        };
        let thread = thread::Builder::new().name("load".to_owned()).spawn(send)?;
        Ok(Self {
            state,
            thread: Some(thread),
        })
    }

    /// Since it began.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.state.began.elapsed()
    }

    /// The ends so far.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        let records = &self.state.records;
        records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Sends no more, and returns when all that were sent have ended.
    ///
    /// # Errors
    /// The load itself has failed.
    pub fn finish(mut self) -> Result<Sent> {
        self.state.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok().context("the load panicked")??;
        }
        Ok(Sent {
            sent: self.state.sent.load(Ordering::Relaxed),
            records: self.records(),
        })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Its thread ends within a deadline; nobody waits for it.
        self.state.over.store(true, Ordering::Relaxed);
    }
}

async fn requests(pattern: &Pattern, client: &Arc<Client>, state: &Arc<State>) {
    let keys = Zipf::new(KEYS, 1.0);
    let mut random = SplitMix64::new(1);
    let mut under_way = JoinSet::new();
    let pause = Duration::from_secs(1) / pattern.rate.max(1);
    for number in 0..MOST {
        let due = state.began + pause * u32::try_from(number).unwrap_or(u32::MAX);
        tokio::time::sleep_until(due.into()).await;
        if state.over.load(Ordering::Relaxed) {
            break;
        }
        while under_way.try_join_next().is_some() {}
        let message = Message {
            number,
            id: format!("{}-{number}", pattern.name),
            // A fifth, of every caller alike and whatever the key.
            important: random.unit() < 0.2,
            // No fault begins with what an earlier one has left in the caches.
            key: pattern.key(keys.draw(random.unit())),
            run: pattern.run,
        };
        state.sent.fetch_add(1, Ordering::Relaxed);
        if under_way.len() >= UNDER_WAY {
            let full = End::Failed("unsent: too many are under way".to_owned());
            state.note(client.record(&message, due - state.began, full));
            continue;
        }
        let (client, state) = (Arc::clone(client), Arc::clone(state));
        under_way.spawn(async move {
            let record = client.record(&message, due - state.began, End::Abandoned);
            let mut record = client.exchange(&message, record, due + DEADLINE).await;
            record.took_ms = millis(due.elapsed());
            state.note(record);
        });
    }
    while under_way.join_next().await.is_some() {}
}

impl State {
    fn note(&self, record: Record) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.push(record);
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
