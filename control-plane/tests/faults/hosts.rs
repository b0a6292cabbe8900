// SPDX-License-Identifier: Apache-2.0
//! Hosts inside the test: they tell what reached them, hold requests until they are told to answer, and say of
//! themselves what they are told to say.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, watch};
use tokio::time::sleep;

/// A header of requests that no host can serve: `fails` is answered by 500, `resets` not at all, `bounces` as if it
/// were given back.
pub(crate) const POISON: &str = "x-poison";

/// A header of requests that take the host's one core for [`WORK`].
pub(crate) const WORKS: &str = "x-works";
const WORK: Duration = Duration::from_millis(20);

/// Answers with the request, its head in lower case, by 500 while it fails. A request for `/held` waits for
/// [`Host::release`].
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    held: watch::Sender<u32>,
    served: Arc<AtomicUsize>,
    released: watch::Sender<bool>,
    /// Jobs in progress, and those of them that are queued.
    jobs: watch::Sender<(u32, u32)>,
    /// A header of its answers; empty: none.
    load: watch::Sender<String>,
    fails: watch::Sender<bool>,
    drains: watch::Sender<bool>,
    core: Arc<Mutex<()>>,
}

impl Host {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = Self {
            address: listener.local_addr().unwrap(),
            held: watch::Sender::default(),
            served: Arc::default(),
            released: watch::Sender::default(),
            jobs: watch::Sender::default(),
            load: watch::Sender::default(),
            fails: watch::Sender::default(),
            drains: watch::Sender::default(),
            core: Arc::default(),
        };
        let answering = host.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let host = answering.clone();
                tokio::spawn(async move { host.answer(connection).await });
            }
        });
        host
    }

    /// As a row of the hosts file.
    pub(crate) fn row(&self) -> Value {
        json!({"address": self.address})
    }

    /// Whether a request is held here.
    pub(crate) fn holds(&self) -> bool {
        *self.held.borrow() > 0
    }

    /// Requests that have reached it, but for those for metrics.
    pub(crate) fn served(&self) -> usize {
        self.served.load(Ordering::Relaxed)
    }

    /// What its metrics say from now on.
    pub(crate) fn says(&self, in_progress: u32, queued: u32) {
        self.jobs.send_replace((in_progress, queued));
    }

    /// What its answers say from now on.
    pub(crate) fn answers_with_load(&self, in_progress: u32) {
        self.load.send_replace(format!(
            "endpoint-load-metrics: TEXT named_metrics.weir.in_progress={in_progress},named_metrics.weir.queued.0=0\r\n"
        ));
    }

    /// Whether it answers 500 to what comes from now on.
    pub(crate) fn fails(&self, fails: bool) {
        self.fails.send_replace(fails);
    }

    /// Whether its metrics say from now on that it wants no new requests.
    pub(crate) fn drains(&self, drains: bool) {
        self.drains.send_replace(drains);
    }

    pub(crate) fn release(&self) {
        self.released.send_replace(true);
    }

    /// As it is told when the whole request is there: Envoy may keep a connection until another request wants it.
    async fn answer(&self, mut connection: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(connection.read_u8().await?);
        }
        let mut head = String::from_utf8_lossy(&head).to_lowercase();
        let length = head.split_once("\r\ncontent-length: ");
        let length = length.and_then(|(_, rest)| rest.split_once("\r\n")?.0.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        connection.read_exact(&mut body).await?;
        head.push_str(&String::from_utf8_lossy(&body));
        if head.starts_with("get /metrics ") {
            let (in_progress, queued) = *self.jobs.borrow();
            head = format!(
                "weir_host_in_progress {in_progress}\nweir_host_queued{{priority=\"0\"}} {queued}\n\
                 weir_host_draining {}\n",
                u8::from(*self.drains.borrow())
            );
        } else {
            self.served.fetch_add(1, Ordering::Relaxed);
        }
        let is_poison = |how: &str| head.contains(&format!("{POISON}: {how}"));
        if is_poison("resets") {
            return Ok(());
        }
        let status = match *self.fails.borrow() || is_poison("fails") {
            true => "500 Internal Server Error",
            false => "200 OK",
        };
        let bounced = match is_poison("bounces") {
            true => "x-weir-bounced: 1\r\n",
            false => "",
        };
        let load = self.load.borrow().clone();
        if head.contains(WORKS) {
            let _core = self.core.lock().await;
            sleep(WORK).await;
        }
        if head.starts_with("get /held ") {
            self.held.send_modify(|held| *held += 1);
            let mut released = self.released.subscribe();
            let _ = released.wait_for(|released| *released).await;
        }
        let length = head.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\n{load}{bounced}content-length: {length}\r\nconnection: close\r\n\r\n{head}"
        );
        connection.write_all(answer.as_bytes()).await
    }
}
