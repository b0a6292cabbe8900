// SPDX-License-Identifier: Apache-2.0
//! Engines that misbehave, each real sockets on free ports. Blocks are named by their hashes.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use weir_fleet::budget::{ByCluster, Contents};
use weir_kv_events::template::Template;
use weir_kv_events::zmtp::Decoder;
use weir_policy::KeyHash;

use super::*;
use crate::client::fetch;
use crate::metrics::kv_events::KvEvents as Metrics;
use crate::sources::Way;

/// Much longer than anything takes that is waited for.
const LIMIT: Duration = Duration::from_secs(90);

/// What a process of an engine has said.
#[derive(Default)]
struct Said {
    batches: VecDeque<(u64, Vec<u8>)>,
    next: u64,
    replays: Replays,
}

/// How it answers questions for what it said.
#[derive(Clone, Copy, Default)]
enum Replays {
    /// All, and the end.
    #[default]
    Whole,
    /// So many at once, and then the connection ends.
    Parts(usize),
    /// The first of them, without end.
    Repeated,
    /// One every four seconds, and then others without end.
    Slow,
    /// Nothing is said, not even a greeting.
    Silent,
}

/// A publisher and its replays, at fixed ports as long as it lives; its processes come and go.
struct Engine {
    said: Arc<Mutex<Said>>,
    ports: (u16, u16),
    /// To the one that listens.
    listeners: mpsc::Receiver<TcpStream>,
    listener: Option<TcpStream>,
    began: f64,
}

impl Engine {
    async fn start() -> Self {
        let publisher = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let replayer = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let ports = (port(&publisher), port(&replayer));
        let (sender, listeners) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = publisher.accept().await {
                shake_hands(&mut stream, Socket::Pub, true).await;
                if sender.send(stream).await.is_err() {
                    return;
                }
            }
        });
        let said = Arc::new(Mutex::new(Said::default()));
        let kept = said.clone();
        tokio::spawn(async move {
            let mut silent = Vec::new();
            while let Ok((mut stream, _)) = replayer.accept().await {
                let replays = kept.lock().unwrap().replays;
                if matches!(replays, Replays::Silent) {
                    silent.push(stream);
                    continue;
                }
                let mut decoder = shake_hands(&mut stream, Socket::Router, false).await;
                let frames = message(&mut stream, &mut decoder).await;
                let from = u64::from_be_bytes(frames[1].clone().try_into().unwrap());
                let kept: Vec<_> = kept.lock().unwrap().batches.iter().cloned().collect();
                let kept: Vec<_> = kept
                    .into_iter()
                    .filter(|(number, _)| *number >= from)
                    .collect();
                replay(stream, &kept, replays).await;
            }
        });
        Self {
            said,
            ports,
            listeners,
            listener: None,
            began: 0.0,
        }
    }

    /// Waits for somebody who listens.
    async fn heard(&mut self) {
        let stream = tokio::time::timeout(LIMIT, self.listeners.recv()).await;
        self.listener = stream.expect("nobody listens");
    }

    /// Ends, and is another one, which has said nothing.
    fn restart(&mut self) {
        self.listener = None;
        self.began += 1000.0;
        *self.said.lock().unwrap() = Said::default();
    }

    /// Stores a block, and says so unless that is lost.
    async fn store(&mut self, block: u8, is_lost: bool) {
        let event = [
            &b"\x95\xabBlockStored\x91\xcc"[..],
            &[block],
            b"\xc0\x90\x01",
        ]
        .concat();
        self.say(&event, is_lost).await;
    }

    async fn remove(&mut self, block: u8) {
        let event = [&b"\x92\xacBlockRemoved\x91\xcc"[..], &[block]].concat();
        self.say(&event, false).await;
    }

    async fn say(&mut self, event: &[u8], is_lost: bool) {
        let batch = {
            let mut said = self.said.lock().unwrap();
            let at = self.began + said.next as f64;
            let payload = [&b"\x92\xcb"[..], &at.to_be_bytes(), b"\x91", event].concat();
            let number = said.next;
            said.next += 1;
            said.batches.push_back((number, payload.clone()));
            zmtp::message(&[b"topic", &number.to_be_bytes(), &payload])
        };
        if !is_lost {
            self.listener
                .as_mut()
                .unwrap()
                .write_all(&batch)
                .await
                .unwrap();
        }
    }

    fn replays(&self, replays: Replays) {
        self.said.lock().unwrap().replays = replays;
    }

    /// Reads until it is asked for a PONG so many times, or not any more: how many times it was.
    async fn pinged(&mut self, times: usize) -> usize {
        let (mut all, mut chunk) = (Vec::<u8>::new(), [0; 1024]);
        loop {
            let pings = all.windows(4).filter(|bytes| *bytes == b"PING").count();
            if pings >= times {
                return pings;
            }
            match self.listener.as_mut().unwrap().read(&mut chunk).await {
                Ok(0) | Err(_) => return pings,
                Ok(read) => all.extend(&chunk[..read]),
            }
        }
    }

    /// It has no more of what it said than the last so many.
    fn keep(&self, batches: usize) {
        let mut said = self.said.lock().unwrap();
        while said.batches.len() > batches {
            said.batches.pop_front();
        }
    }
}

async fn replay(mut stream: TcpStream, kept: &[(u64, Vec<u8>)], replays: Replays) {
    let answer = |number: u64, payload: &[u8]| {
        zmtp::message(&[b"", b"topic", &number.to_be_bytes(), payload])
    };
    let all = match replays {
        Replays::Parts(most) => &kept[..most.min(kept.len())],
        _ => kept,
    };
    let mut sent = Ok(());
    for (number, payload) in all {
        sent = stream.write_all(&answer(*number, payload)).await;
        if matches!(replays, Replays::Slow) {
            sleep(Duration::from_secs(4)).await;
        }
        while sent.is_ok() && matches!(replays, Replays::Repeated) {
            sent = stream.write_all(&answer(*number, payload)).await;
        }
    }
    let last = kept.last().map_or(0, |(number, _)| *number);
    let mut others = last + 1..;
    while sent.is_ok() && matches!(replays, Replays::Slow) {
        let number = others.next().unwrap();
        sent = stream.write_all(&answer(number, b"\x92\x01\x90")).await;
        sleep(Duration::from_secs(4)).await;
    }
    if matches!(replays, Replays::Whole) {
        let end = zmtp::message(&[b"", b"", &u64::MAX.to_be_bytes(), b""]);
        stream.write_all(&end).await.unwrap();
    }
}

async fn shake_hands(stream: &mut TcpStream, own: Socket, waits_for_topic: bool) -> Decoder {
    stream.write_all(&zmtp::greeting()).await.unwrap();
    stream.write_all(&zmtp::ready(own)).await.unwrap();
    let mut decoder = Decoder::new(own, 1 << 20);
    loop {
        while let Some(said) = decoder.next_said().unwrap() {
            match said {
                zmtp::Said::Ready if !waits_for_topic => return decoder,
                zmtp::Said::Subscribes { .. } => return decoder,
                _ => {}
            }
        }
        let mut chunk = [0; 1024];
        let read = stream.read(&mut chunk).await.unwrap();
        assert!(read > 0, "gone before it was ready");
        decoder.take(&chunk[..read]);
    }
}

async fn message(stream: &mut TcpStream, decoder: &mut Decoder) -> Vec<Vec<u8>> {
    loop {
        if let Some(zmtp::Said::Message(frames)) = decoder.next_said().unwrap() {
            return frames;
        }
        let mut chunk = [0; 1024];
        let read = stream.read(&mut chunk).await.unwrap();
        decoder.take(&chunk[..read]);
    }
}

/// Who listens, and what it has told.
struct Listener {
    updates: mpsc::UnboundedReceiver<Update>,
    contents: watch::Sender<ByCluster>,
    known: BTreeSet<KeyHash>,
    faults: Vec<Fault>,
    _task: tokio_util::task::AbortOnDropHandle<()>,
}

impl Listener {
    fn start(engine: &Engine, has_replays: bool) -> Self {
        let (sender, mut news) = mpsc::channel(16);
        // As the owner it takes what comes, whoever looks at it.
        let (taken, updates) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(News::Cached { update, .. }) = news.recv().await {
                let _ = taken.send(update);
            }
        });
        let (contents, receiver) = watch::channel(ByCluster::new());
        let target = Target {
            cluster: "c".into(),
            host: "h".into(),
            way: Way::Plain(fetch::Client::new().into()),
            contents: receiver,
            updates: sender,
        };
        let with = KvEvents {
            port: engine.ports.0,
            replay_port: has_replays.then_some(engine.ports.1),
            base_port: None,
            topic: "t".into(),
            model: String::new(),
            vocabulary: None,
            template: Template::None,
            block_bytes: 1024,
            max_blocks: 100,
            max_bytes: 1 << 20,
            salt: None,
        };
        let metrics = Metrics::default().of("c", "h");
        let task = tokio::spawn(run(target, [127, 0, 0, 1].into(), with, metrics));
        Self {
            updates,
            contents,
            known: BTreeSet::new(),
            faults: Vec::new(),
            _task: tokio_util::task::AbortOnDropHandle::new(task),
        }
    }

    async fn next(&mut self) {
        let update = tokio::time::timeout(LIMIT, self.updates.recv()).await;
        let Some(Update::Cached { result, .. }) = update.expect("waited in vain") else {
            panic!("another update");
        };
        match result {
            Ok(changes) => {
                if changes.reset {
                    self.known.clear();
                }
                self.known.extend(changes.added);
                for name in changes.removed {
                    self.known.remove(&name);
                }
            }
            Err(error) => self.faults.push(error.fault),
        }
    }

    /// Waits until these blocks are known, and no others.
    async fn knows(&mut self, blocks: &[u8]) {
        let names = blocks
            .iter()
            .map(|block| KeyHash::of(block.to_string().as_bytes()));
        let names: BTreeSet<KeyHash> = names.collect();
        while self.known != names {
            self.next().await;
        }
    }
}

#[tokio::test]
async fn blocks_come_and_go_and_what_was_said_before_is_asked_for() {
    let mut engine = Engine::start().await;
    engine.store(1, true).await;
    let mut listener = Listener::start(&engine, true);
    engine.heard().await;
    listener.knows(&[1]).await;
    engine.store(2, false).await;
    listener.knows(&[1, 2]).await;
    engine.remove(1).await;
    listener.knows(&[2]).await;
}

#[tokio::test]
async fn a_gap_is_filled_where_the_engine_still_has_it_and_else_all_is_forgotten() {
    let mut engine = Engine::start().await;
    let mut listener = Listener::start(&engine, true);
    engine.heard().await;
    engine.store(1, false).await;
    listener.knows(&[1]).await;
    engine.store(2, true).await;
    engine.store(3, false).await;
    listener.knows(&[1, 2, 3]).await;
    engine.store(4, true).await;
    engine.store(5, true).await;
    engine.keep(1);
    engine.store(6, false).await;
    listener.knows(&[5, 6]).await;
}

#[tokio::test]
async fn without_replays_a_gap_forgets_all() {
    let mut engine = Engine::start().await;
    let mut listener = Listener::start(&engine, false);
    engine.heard().await;
    engine.store(1, false).await;
    engine.store(2, false).await;
    listener.knows(&[1, 2]).await;
    engine.store(3, true).await;
    engine.store(4, false).await;
    listener.knows(&[4]).await;
}

#[tokio::test]
async fn an_engine_that_is_started_again_holds_nothing_of_before() {
    let mut engine = Engine::start().await;
    let mut listener = Listener::start(&engine, true);
    engine.heard().await;
    for block in 1..5 {
        engine.store(block, false).await;
    }
    listener.knows(&[1, 2, 3, 4]).await;
    engine.restart();
    // It has counted further than the old one before anybody listens.
    for block in 10..16 {
        engine.store(block, true).await;
    }
    engine.heard().await;
    listener.knows(&[10, 11, 12, 13, 14, 15]).await;
    assert_eq!(listener.faults, [Fault::Failed]);
}

#[tokio::test]
async fn a_connection_that_ends_costs_nothing() {
    let mut engine = Engine::start().await;
    let mut listener = Listener::start(&engine, true);
    engine.heard().await;
    engine.store(1, false).await;
    listener.knows(&[1]).await;
    engine.listener = None;
    engine.store(2, true).await;
    engine.heard().await;
    while listener.known.len() < 2 {
        listener.next().await;
        assert!(!listener.known.is_empty(), "was forgotten");
    }
}

#[tokio::test]
async fn what_was_told_is_told_again_where_it_was_dropped() {
    let mut engine = Engine::start().await;
    let mut listener = Listener::start(&engine, true);
    engine.heard().await;
    engine.store(1, false).await;
    listener.knows(&[1]).await;
    listener.known.clear();
    let dropped = |dropped| Contents { dropped, drops: 1 };
    listener
        .contents
        .send_replace([("c".into(), dropped(true))].into());
    engine.store(2, false).await;
    listener
        .contents
        .send_replace([("c".into(), dropped(false))].into());
    listener.knows(&[1, 2]).await;
}

#[tokio::test]
async fn who_publishes_something_else_is_a_fault_and_is_not_dead() {
    for (answer, fault) in [
        (&b"HTTP/1.1 200 OK\r\n\r\n"[..], Fault::BadBody),
        (b"", Fault::Failed),
    ] {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut engine = Engine::start().await;
        engine.ports.0 = server.local_addr().unwrap().port();
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = server.accept().await {
                let _ = stream.write_all(answer).await;
                if !answer.is_empty() {
                    open.push(stream);
                }
            }
        });
        let mut listener = Listener::start(&engine, true);
        while listener.faults.is_empty() {
            listener.next().await;
        }
        assert_eq!(listener.faults, [fault]);
    }
}

#[tokio::test]
async fn a_replay_that_breaks_off_goes_on_from_where_it_was() {
    let mut engine = Engine::start().await;
    for block in 1..6 {
        engine.store(block, true).await;
    }
    engine.replays(Replays::Parts(2));
    let mut listener = Listener::start(&engine, true);
    engine.heard().await;
    listener.knows(&[1, 2, 3, 4, 5]).await;
    engine.store(6, false).await;
    listener.knows(&[1, 2, 3, 4, 5, 6]).await;
}

#[tokio::test]
async fn a_replay_that_says_the_same_without_end_is_left() {
    let mut engine = Engine::start().await;
    engine.store(1, true).await;
    engine.replays(Replays::Repeated);
    let mut listener = Listener::start(&engine, true);
    engine.heard().await;
    listener.knows(&[1]).await;
    engine.store(2, false).await;
    listener.knows(&[1, 2]).await;
}

#[tokio::test]
async fn a_replay_that_goes_on_without_end_is_left() {
    let mut engine = Engine::start().await;
    let mut listener = Listener::start(&engine, true);
    engine.heard().await;
    engine.store(1, false).await;
    listener.knows(&[1]).await;
    engine.replays(Replays::Slow);
    tokio::time::pause();
    engine.store(2, true).await;
    engine.store(3, false).await;
    listener.knows(&[3]).await;
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_left() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = server.local_addr().unwrap();
    let peer = tokio::spawn(async move {
        let (mut stream, _) = server.accept().await.unwrap();
        shake_hands(&mut stream, Socket::Pub, false).await;
        stream
    });
    let connection = Connection::open(at, Socket::Sub, 1024).await;
    let mut connection = connection.unwrap();
    let _peer = peer.await.unwrap();
    tokio::time::pause();
    let sends = async {
        loop {
            if let Err(error) = connection.send(&[0; 1 << 16]).await {
                return error;
            }
        }
    };
    let error = tokio::time::timeout(LIMIT, sends).await;
    assert_eq!(error.expect("waits without end").fault, Fault::TimedOut);
}

#[tokio::test]
async fn a_replay_port_that_does_not_answer_is_as_good_as_none() {
    let mut engine = Engine::start().await;
    engine.replays(Replays::Silent);
    let mut listener = Listener::start(&engine, true);
    engine.heard().await;
    tokio::time::pause();
    engine.store(1, false).await;
    listener.knows(&[1]).await;
    // The engine is asked whether something was lost.
    assert_eq!(engine.pinged(1).await, 1);
    engine.store(2, false).await;
    listener.knows(&[1, 2]).await;
    assert_eq!(listener.faults, []);
}

#[tokio::test]
async fn a_connection_on_which_nothing_is_heard_ends_after_as_long_as_it_says() {
    let mut engine = Engine::start().await;
    engine.replays(Replays::Silent);
    let mut listener = Listener::start(&engine, true);
    engine.heard().await;
    tokio::time::pause();
    engine.store(1, false).await;
    listener.knows(&[1]).await;
    let began = Instant::now();
    assert_eq!(
        engine.pinged(9).await,
        2,
        "after 10 and 20 s, and 30 s are the end"
    );
    let seconds = began.elapsed().as_secs();
    assert!((29..=31).contains(&seconds), "{seconds}");
    while listener.faults.is_empty() {
        listener.next().await;
    }
    assert_eq!(listener.faults, [Fault::TimedOut]);
}

#[tokio::test]
async fn batches_that_cannot_be_read_are_a_fault_after_which_pauses_grow() {
    const TIMES: usize = 8;
    let mut engine = Engine::start().await;
    let mut listener = Listener::start(&engine, true);
    engine.heard().await;
    engine.store(1, false).await;
    listener.knows(&[1]).await;
    tokio::time::pause();
    let began = Instant::now();
    for _ in 0..TIMES {
        engine.say(b"\xc0", false).await;
        engine.heard().await;
    }
    // Half of each pause is left to chance.
    assert!(began.elapsed() > (PAUSES.0 * ((1 << TIMES.min(6)) - 1) + PAUSES.1) / 2);
    engine.store(2, false).await;
    listener.knows(&[2]).await;
    assert_eq!(listener.faults, [Fault::BadBody; TIMES]);
}
