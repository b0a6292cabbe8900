// SPDX-License-Identifier: Apache-2.0
//! What an engine of language models says of its prefix cache, at once and of its own accord.
//!
//! ```text
//!  PUB ──batches──> Host (weir-kv-events: in order? which names?) ──changes, at most every 50 ms──> owner
//!  ROUTER <─what was missed, and at the beginning─┘
//! ```
//! One task a host. A connection that ends is opened again after pauses that grow; what the host held counts on,
//! until it or its successor says otherwise.

mod connection;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rand::RngExt;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, warn};
use weir_fleet::Update;
use weir_fleet::holdings::Changes;
use weir_fleet::poll::{Fault, PollError};
use weir_kv_events::host::{Host, Next};
use weir_kv_events::zmtp::{self, Said, Socket};

use super::Target;
use crate::config::KvEvents;
use crate::metrics::kv_events::OfOne;
use crate::news::News;
use connection::{Connection, timed_out};

/// Changes within this time are told together: an engine makes a batch at each of its steps.
const GATHER: Duration = Duration::from_millis(50);
/// Nothing was heard for so long: the engine is asked whether something was lost, and whether it is there.
const QUIET: Duration = Duration::from_secs(10);
/// Of quiet times in a row without even an answer to a PING, the last of which ends a connection.
const MOST_QUIET: u32 = 3;
/// Between two answers of a replay. vLLM looks for questions ten times a second.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// A whole replay, with all that is asked again: what the engine says meanwhile waits.
const REPLAY_LIMIT: Duration = Duration::from_secs(60);
/// A connection that was open for longer is as good as one on which a batch was read.
const LASTING: Duration = Duration::from_secs(5);
/// Before a connection is opened again, the first time and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// What ends a replay: -1.
const END: u64 = u64::MAX;

/// Listens until dropped.
pub async fn run(target: Target, at: IpAddr, with: KvEvents, metrics: OfOne) {
    let naming = match with.naming() {
        Ok(naming) => naming,
        // It was tried when the configuration was checked.
        Err(error) => return super::unasked(error.to_string()).await,
    };
    let mut ear = Ear {
        host: Host::new(naming, with.max_blocks),
        publisher: SocketAddr::new(at, with.port),
        replayer: with.replay_port.map(|port| SocketAddr::new(at, port)),
        target,
        with,
        metrics,
        drops: 0,
        opened: None,
        was_heard: false,
        is_mute: false,
    };
    let mut pause = PAUSES.0;
    loop {
        let Err(ended) = ear.listen().await;
        let has_lasted = ear.opened.take().is_some_and(|at| at.elapsed() > LASTING);
        if std::mem::take(&mut ear.was_heard) || has_lasted {
            pause = PAUSES.0;
        }
        if ear.tell(Err(ended)).await.is_err() {
            return;
        }
        sleep(jittered(pause)).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Which of the host's sockets are there: a question before anybody listens.
pub(super) async fn sockets(at: IpAddr, with: &KvEvents) -> Result<Vec<&'static str>, PollError> {
    let publisher = SocketAddr::new(at, with.port);
    Connection::open(publisher, Socket::Sub, with.max_bytes).await?;
    let mut found = vec!["a publisher"];
    if let Some(port) = with.replay_port {
        Connection::open(SocketAddr::new(at, port), Socket::Dealer, with.max_bytes).await?;
        found.push("replays");
    }
    Ok(found)
}

/// How long before a connection is opened again.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.5..1.0))
}

/// Never.
enum Never {}

/// Nobody takes news any more.
struct Gone;

struct Ear {
    host: Host,
    publisher: SocketAddr,
    replayer: Option<SocketAddr>,
    target: Target,
    with: KvEvents,
    metrics: OfOne,
    /// How often the cluster's contents were dropped, when all was told last.
    drops: u64,
    /// When the connection was opened.
    opened: Option<Instant>,
    /// A batch was read on it, and none came that could not be.
    was_heard: bool,
    /// The replay port did not answer the last time.
    is_mute: bool,
}

impl Ear {
    /// Listens as long as the connection holds.
    async fn listen(&mut self) -> Result<Never, PollError> {
        let mut connection =
            Connection::open(self.publisher, Socket::Sub, self.with.max_bytes).await?;
        let subscription = zmtp::subscribe(self.with.topic.as_bytes());
        connection.send(&subscription).await?;
        self.opened = Some(Instant::now());
        let next = self.host.connected();
        self.satisfy(next).await?;
        self.flush(true).await?;
        let mut contents = self.target.contents.clone();
        let mut flush_at = None;
        let (mut heard_at, mut quiet) = (Instant::now(), 0);
        loop {
            let flush = async {
                match flush_at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                said = connection.next_said() => {
                    (heard_at, quiet) = (Instant::now(), 0);
                    match said? {
                        Said::Message(frames) => self.take(&frames).await?,
                        Said::Ping(context) => connection.send(&zmtp::pong(&context)).await?,
                        Said::Ready | Said::Subscribes { .. } | Said::Other => {}
                    }
                }
                () = flush => {
                    flush_at = None;
                    self.flush(false).await?;
                }
                // Its sender lives as long as this task is wanted.
                Ok(()) = contents.changed() => self.flush(false).await?,
                () = sleep_until(heard_at + QUIET) => {
                    quiet += 1;
                    if quiet >= MOST_QUIET && connection.answers_pings() {
                        return Err(timed_out(self.publisher, QUIET * MOST_QUIET));
                    }
                    if connection.answers_pings() {
                        connection.send(&zmtp::ping()).await?;
                    }
                    let asked_at = Instant::now();
                    // Whether the last batches were lost, or the engine is another one.
                    let next = self.host.check();
                    self.satisfy(next).await?;
                    self.flush(true).await?;
                    // It is as quiet while it is asked, but who asks for long does not hear it.
                    heard_at = match asked_at.elapsed() < QUIET {
                        true => asked_at,
                        false => Instant::now(),
                    };
                }
            }
            // What is dropped is not taken: once it is again, contents have changed.
            let is_wanted = !self.target.contents().dropped;
            if flush_at.is_none() && is_wanted && self.host.tree().has_changes() {
                flush_at = Some(Instant::now() + GATHER);
            }
        }
    }

    /// A batch: its topic, its number, what is in it.
    async fn take(&mut self, frames: &[Vec<u8>]) -> Result<(), PollError> {
        let [_, number, payload] = frames else {
            let detail = format!(
                "{}: a message of {} frames, not 3",
                self.publisher,
                frames.len()
            );
            return Err(PollError::new(Fault::BadBody, detail));
        };
        let number = self.number(number)?;
        self.metrics.received(payload.len());
        let next = self.host.live(number, payload);
        self.satisfy(next).await
    }

    fn number(&self, bytes: &[u8]) -> Result<u64, PollError> {
        let number = bytes.try_into().map(u64::from_be_bytes);
        number.map_err(|_| {
            let detail = format!(
                "{}: a batch's number of {} bytes, not 8",
                self.publisher,
                bytes.len()
            );
            PollError::new(Fault::BadBody, detail)
        })
    }

    /// Asks for what is missing; where that cannot be, what comes counts as it comes.
    ///
    /// # Errors
    /// A batch could not be read.
    async fn satisfy(&mut self, next: Next) -> Result<(), PollError> {
        match self.replayer {
            Some(at) if next == Next::Replay => self.replay(at).await,
            None if next == Next::Replay => self.host.no_replay(),
            _ => {}
        }
        let (counts, gaps) = self.host.counts();
        self.metrics.counted(counts, gaps, self.host.blocks());
        if let Some(at) = self.host.take_newest() {
            self.was_heard = true;
            self.metrics.newest(at);
        }
        let Some(malformed) = self.host.take_malformed() else {
            return Ok(());
        };
        self.was_heard = false;
        // What is forgotten counts no more while no connection is open.
        self.flush(false).await?;
        let detail = format!(
            "{}: a batch cannot be read ({malformed}); what was known of the host is forgotten",
            self.publisher
        );
        Err(PollError::new(Fault::BadBody, detail))
    }

    /// Asks until all has come that there is. A port that does not answer is as good as none.
    async fn replay(&mut self, at: SocketAddr) {
        let replayed = timeout(REPLAY_LIMIT, self.ask_for_all(at)).await;
        let Err(error) = replayed.unwrap_or_else(|_| Err(timed_out(at, REPLAY_LIMIT))) else {
            self.is_mute = false;
            return;
        };
        self.host.no_replay();
        match std::mem::replace(&mut self.is_mute, true) {
            false => warn!(%error, "an engine cannot be asked for what was missed"),
            true => debug!(%error, "an engine still cannot be asked for what was missed"),
        }
    }

    async fn ask_for_all(&mut self, at: SocketAddr) -> Result<(), PollError> {
        loop {
            let next = match self.ask(at).await {
                Ok(next) => next,
                Err(error) => {
                    let broke = matches!(error.fault, Fault::TimedOut | Fault::Failed);
                    if !broke || self.host.replay_broke() != Next::Replay {
                        return Err(error);
                    }
                    debug!(%error, "a replay broke off");
                    Next::Replay
                }
            };
            if next != Next::Replay {
                return Ok(());
            }
        }
    }

    async fn ask(&mut self, at: SocketAddr) -> Result<Next, PollError> {
        let mut connection = Connection::open(at, Socket::Dealer, self.with.max_bytes).await?;
        let from = self.host.ask();
        debug!(from, "asks for what was missed");
        let question = zmtp::message(&[b"", &from.to_be_bytes()]);
        connection.send(&question).await?;
        let mut before = None;
        loop {
            let said = timeout(ANSWER_LIMIT, connection.next_said()).await;
            let frames = match said.map_err(|_| timed_out(at, ANSWER_LIMIT))?? {
                Said::Message(frames) => frames,
                Said::Ping(context) => {
                    connection.send(&zmtp::pong(&context)).await?;
                    continue;
                }
                Said::Ready | Said::Subscribes { .. } | Said::Other => continue,
            };
            // In front of these two is an empty one, and in newer engines the topic.
            let Some([number, payload]) = frames.last_chunk() else {
                let detail = format!("{at}: an answer of {} frames", frames.len());
                return Err(PollError::new(Fault::BadBody, detail));
            };
            let number = self.number(number)?;
            if number == END {
                return Ok(self.host.replay_ended());
            }
            if let Some(before) = before.replace(number)
                && number <= before
            {
                let detail = format!("{at}: batch {number} behind batch {before} in a replay");
                return Err(PollError::new(Fault::BadBody, detail));
            }
            self.metrics.received(payload.len());
            let next = self.host.replayed(number, payload);
            if next != Next::Go {
                return Ok(next);
            }
        }
    }

    /// Tells what has changed; with `says_so` also that nothing has.
    async fn flush(&mut self, says_so: bool) -> Result<(), PollError> {
        let contents = self.target.contents();
        if contents.drops != self.drops {
            // Nobody has what was told so far.
            self.drops = contents.drops;
            self.host.tree().tell_all_again();
        }
        let has_changes = self.host.tree().has_changes();
        if contents.dropped || !(says_so || has_changes) {
            return Ok(());
        }
        let changes = self.host.tree().take_changes();
        let changes = Changes {
            reset: changes.reset,
            added: changes.added,
            removed: changes.removed,
        };
        let told = self.tell(Ok(changes)).await;
        told.map_err(|Gone| PollError::new(Fault::Failed, "nobody listens"))
    }

    async fn tell(&mut self, result: Result<Changes, PollError>) -> Result<(), Gone> {
        let (refused, refusal) = oneshot::channel();
        let update = Update::Cached {
            cluster: self.target.cluster.clone(),
            host: self.target.host.clone(),
            drops: self.drops,
            result,
        };
        let news = News::Cached { update, refused };
        self.target.updates.send(news).await.map_err(|_| Gone)?;
        if refusal.await.is_ok() {
            self.host.tree().tell_all_again();
        }
        Ok(())
    }
}
