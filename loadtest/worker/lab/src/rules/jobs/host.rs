// SPDX-License-Identifier: Apache-2.0
//! A host in this process, and a client that reads answers whole.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use weir_executor::{Eviction, Order, Settings};
use weir_feeds::{FeedLimits, ItemStore};
use weir_rules::Limits;
use weir_worker::metrics::Families;
use weir_worker::priorities::Priorities;
use weir_worker::rules::cores::Cores;
use weir_worker::rules::objects::Objects;
use weir_worker::rules::service;
use weir_worker::rules::task::Tools;
use weir_worker::server::app::App;
use weir_worker::server::{self, Leaving};

/// A host that serves until it is stopped.
#[derive(Debug)]
pub(super) struct Host {
    address: SocketAddr,
    leave: oneshot::Sender<()>,
    thread: JoinHandle<Result<()>>,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    /// Where the items came from: `hit` or `miss`; empty if it was not told.
    pub(super) cache: String,
    /// Items in its body.
    pub(super) items: u64,
}

impl Host {
    /// Starts one with an empty cache.
    pub(super) fn start(store: &ItemStore) -> Result<Self> {
        let (store, (announce, announced)) = (store.clone(), std::sync::mpsc::channel());
        let (leave, left) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
                let address = listener.local_addr()?;
                announce.send(address)?;
                serve(listener, address, store, left).await
            })
        });
        match announced.recv() {
            Ok(address) => Ok(Self {
                address,
                leave,
                thread,
            }),
            Err(_) => Err(ended(thread)),
        }
    }

    /// Sends a request and reads its answer to the end.
    pub(super) fn post(&self, path: &str, body: &str) -> Result<Answer> {
        let mut connection = TcpStream::connect(self.address)?;
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: lab\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        connection.write_all(request.as_bytes())?;
        read(&mut connection)
    }

    /// Ends it.
    pub(super) fn stop(self) -> Result<()> {
        // A host that has gone already says so when it is joined.
        let _ = self.leave.send(());
        self.thread
            .join()
            .map_err(|_| anyhow!("the host panicked"))?
    }
}

fn ended(thread: JoinHandle<Result<()>>) -> anyhow::Error {
    match thread.join() {
        Ok(Err(error)) => error,
        _ => anyhow!("the host ended before it began"),
    }
}

/// Nothing is left to do when a measurement ends.
const LEAVING: Leaving = Leaving {
    notice: Duration::ZERO,
    drain: Duration::from_secs(30),
};

async fn serve(
    listener: TcpListener,
    address: SocketAddr,
    store: ItemStore,
    left: oneshot::Receiver<()>,
) -> Result<()> {
    let settings = Settings {
        cores: 1,
        cache_bytes: 8 << 30,
        max_queued: 100,
        change_log: 1000,
        order: Order::Priority,
        eviction: Eviction::default(),
    };
    let tools = Tools {
        store: store.clone(),
        feed_limits: FeedLimits::default(),
        limits: Limits::default(),
        io: Handle::current(),
    };
    let metrics = Families::default();
    let engine = Cores::new(&settings, 1, tools, metrics.clone(), None);
    let high = "high=0".parse().map_err(anyhow::Error::msg)?;
    let priorities = Priorities::new(vec![high], "high").map_err(anyhow::Error::msg)?;
    let host = weir_worker::host::Host::start(engine, metrics.clone());
    let app = Arc::new(App::new(host, metrics, priorities, address)?);
    let options = service::Options {
        limits: Limits::default(),
        max_body_bytes: 4 << 20,
        optimise: true,
        wide_fetches: true,
    };
    let objects = Objects::new(store, Duration::from_secs(10));
    let jobs = service::router(Arc::clone(&app), objects, options);
    let shutdown = async {
        // A client that is gone wants it to end, too.
        let _ = left.await;
    };
    server::run(listener, app, jobs, LEAVING, shutdown).await
}

/// Reads until the host closes the connection. Only head and end are looked at.
fn read(connection: &mut impl Read) -> Result<Answer> {
    let mut buffer = vec![0; 64 << 10];
    let (mut head, mut items, mut end) = (Vec::new(), 0, Vec::new());
    loop {
        let read = connection.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        items += lines(end.last().copied(), &buffer[..read]);
        if !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            head.extend_from_slice(&buffer[..read]);
        }
        end.extend_from_slice(&buffer[read.saturating_sub(5)..read]);
        end.drain(..end.len().saturating_sub(5));
    }
    let head = String::from_utf8_lossy(&head);
    let (head, _body) = head
        .split_once("\r\n\r\n")
        .context("an answer without a head")?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let whole = header(head, "transfer-encoding").is_none() || end == b"0\r\n\r\n";
    ensure!(whole, "an answer was cut off after {items} items");
    Ok(Answer {
        cache: header(head, "x-worker-cache")
            .unwrap_or_default()
            .to_owned(),
        items,
    })
}

/// Items that end in `bytes`: lines of head and chunks end with CR LF, those of items with LF alone.
fn lines(before: Option<u8>, bytes: &[u8]) -> u64 {
    let mut before = before;
    let ends = bytes.iter().filter(|byte| {
        let end = **byte == b'\n' && before != Some(b'\r');
        before = Some(**byte);
        end
    });
    ends.count() as u64
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_to_its_end() {
        let text = "HTTP/1.1 200 OK\r\nX-Worker-Cache: hit\r\n\r\n{}\n";
        let answer = read(&mut text.as_bytes()).unwrap();
        assert_eq!((answer.cache.as_str(), answer.items), ("hit", 1));
    }

    #[test]
    fn items_are_counted_however_they_are_cut() {
        let text = b"3\r\n{}\n\r\n4\r\n{}\n{\r\n2\r\n}\n\r\n0\r\n\r\n";
        for at in 1..text.len() {
            let (one, other) = text.split_at(at);
            let items = lines(None, one) + lines(one.last().copied(), other);
            assert_eq!(items, 3, "cut at {at}");
        }
    }

    #[test]
    fn errors_and_cut_answers_are_errors() {
        for text in [
            "HTTP/1.1 503 Service Unavailable\r\n\r\nfull\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n{}\n\r\n",
            "HTTP/1.1 200 OK\r\n",
        ] {
            assert!(read(&mut text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
