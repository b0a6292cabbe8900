// SPDX-License-Identifier: Apache-2.0
//! What comes into a host's cache and goes, published as vLLM does: numbered batches to whoever listens (PUB), and
//! the last of them again to whoever asks (ROUTER).
//!
//! The formats are in control-plane/KV_EVENTS.md. A token is a byte of the text.

mod batch;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use weir_kv_events::zmtp::{self, Decoder, Said, Socket};

use crate::prefix_cache::Change;
pub use batch::{Form, tokenizer_json};

/// Batches that wait for one that listens slowly; it does not get more, as with ZeroMQ's high-water mark.
const WAITING: usize = 1024;
/// What ends the answer to a question: -1.
const END: [u8; 8] = [0xff; 8];
/// Of questions and subscriptions.
const MAX_BYTES: usize = 1024;

/// Numbers batches, keeps the last of them, and sends them.
#[derive(Debug)]
pub struct Publisher {
    form: Form,
    block_tokens: usize,
    log: Arc<Log>,
}

#[derive(Debug)]
struct Log {
    kept: Mutex<Kept>,
    live: broadcast::Sender<(u64, Arc<[u8]>)>,
}

#[derive(Debug)]
struct Kept {
    next: u64,
    keep: usize,
    batches: VecDeque<(u64, Arc<[u8]>)>,
}

impl Publisher {
    /// Publishes at the first listener, of blocks of so many tokens, and answers with up to `keep` batches at the second.
    #[must_use]
    pub fn start(
        publisher: TcpListener,
        replayer: TcpListener,
        block_tokens: usize,
        keep: usize,
        form: Form,
    ) -> Self {
        let log = Arc::new(Log {
            kept: Mutex::new(Kept {
                next: 0,
                keep,
                batches: VecDeque::new(),
            }),
            live: broadcast::channel(WAITING).0,
        });
        tokio::spawn(accept(publisher, log.clone(), publish_to));
        tokio::spawn(accept(replayer, log.clone(), answer));
        Self {
            form,
            block_tokens,
            log,
        }
    }

    /// Makes a batch of these changes.
    pub fn publish(&self, changes: &[Change]) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = now.map_or(0.0, |now| now.as_secs_f64());
        let payload = batch::of(changes, at, self.block_tokens, self.form);
        let payload: Arc<[u8]> = payload.into();
        let mut kept = self.log.kept();
        let number = kept.next;
        kept.next += 1;
        kept.batches.push_back((number, payload.clone()));
        while kept.batches.len() > kept.keep {
            kept.batches.pop_front();
        }
        // Under the lock, so that batches are sent in order. Nobody needs to listen.
        let _ = self.log.live.send((number, payload));
    }
}

impl Log {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Each connection is a task of its own, which ends with it.
async fn accept<F>(listener: TcpListener, log: Arc<Log>, serve: fn(TcpStream, Arc<Log>) -> F)
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, log.clone()));
    }
}

/// One connection, however it came.
struct Connection {
    stream: TcpStream,
    decoder: Decoder,
}

impl Connection {
    async fn begin(stream: TcpStream, own: Socket) -> anyhow::Result<Self> {
        stream.set_nodelay(true)?;
        let decoder = Decoder::new(own, MAX_BYTES);
        let mut connection = Self { stream, decoder };
        connection.stream.write_all(&zmtp::greeting()).await?;
        connection.stream.write_all(&zmtp::ready(own)).await?;
        while connection.next_said().await? != Said::Ready {}
        Ok(connection)
    }

    /// Nothing is lost where this is given up.
    async fn next_said(&mut self) -> anyhow::Result<Said> {
        loop {
            if let Some(said) = self.decoder.next_said()? {
                return Ok(said);
            }
            let mut chunk = [0; 4096];
            let read = self.stream.read(&mut chunk).await?;
            anyhow::ensure!(read > 0, "the peer has gone");
            self.decoder.take(&chunk[..read]);
        }
    }
}

async fn publish_to(stream: TcpStream, log: Arc<Log>) -> anyhow::Result<()> {
    let mut connection = Connection::begin(stream, Socket::Pub).await?;
    let mut live = log.live.subscribe();
    // Topics here are empty, so that only those hear who want everything.
    let mut wants_all = 0_u32;
    loop {
        tokio::select! {
            said = connection.next_said() => match said? {
                Said::Subscribes { wanted: true, topic } if topic.is_empty() => wants_all += 1,
                Said::Subscribes { wanted: false, topic } if topic.is_empty() => {
                    wants_all = wants_all.saturating_sub(1);
                }
                Said::Ping(context) => connection.stream.write_all(&zmtp::pong(&context)).await?,
                _ => {}
            },
            batch = live.recv() => match batch {
                Ok((number, payload)) if wants_all > 0 => {
                    let message = zmtp::message(&[b"", &number.to_be_bytes(), &payload]);
                    connection.stream.write_all(&message).await?;
                }
                // Those that were lost are asked for.
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            },
        }
    }
}

async fn answer(stream: TcpStream, log: Arc<Log>) -> anyhow::Result<()> {
    let mut connection = Connection::begin(stream, Socket::Router).await?;
    loop {
        let frames = match connection.next_said().await? {
            Said::Message(frames) => frames,
            Said::Ping(context) => {
                connection.stream.write_all(&zmtp::pong(&context)).await?;
                continue;
            }
            _ => continue,
        };
        let [_, from] = frames.as_slice() else {
            continue;
        };
        let from = u64::from_be_bytes(from.as_slice().try_into()?);
        let batches: Vec<_> = log.kept().batches.iter().cloned().collect();
        for (number, payload) in batches.iter().filter(|(number, _)| *number >= from) {
            let message = zmtp::message(&[b"", b"", &number.to_be_bytes(), payload]);
            connection.stream.write_all(&message).await?;
        }
        let end = zmtp::message(&[b"", b"", &END, b""]);
        connection.stream.write_all(&end).await?;
    }
}
