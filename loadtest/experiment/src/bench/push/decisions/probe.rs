// SPDX-License-Identifier: Apache-2.0
//! Requests through one sidecar, one after the other, each with the same key.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Between an answer and the next request: what a delay is known to.
const PAUSE: Duration = Duration::from_millis(1);
const FIRST_TABLE: Duration = Duration::from_secs(30);

pub(super) struct Probe {
    decisions: watch::Receiver<Decision>,
    asking: JoinHandle<()>,
}

/// Which host the requests go to, and since when.
#[derive(Clone, Debug)]
struct Decision {
    /// None while there is no table.
    host: Option<String>,
    since: Instant,
}

impl Probe {
    /// Asks until it is dropped.
    pub(super) async fn start(sidecar: SocketAddr) -> Result<Self> {
        let (connection, io) =
            http1::handshake(TokioIo::new(TcpStream::connect(sidecar).await?)).await?;
        tokio::spawn(io);
        let (decided, decisions) = watch::channel(Decision {
            host: None,
            since: Instant::now(),
        });
        let asking = tokio::spawn(async move {
            if let Err(error) = ask(connection, sidecar, &decided).await {
                eprintln!("bench: requests through {sidecar}: {error:#}");
            }
        });
        Ok(Self { decisions, asking })
    }

    /// The host of the first table's decision.
    pub(super) async fn chosen(&mut self) -> Result<String> {
        let chosen = self.decisions.wait_for(|decision| decision.host.is_some());
        let decision = tokio::time::timeout(FIRST_TABLE, chosen).await;
        let decision = decision.context("no table came")??;
        decision.host.clone().context("no host")
    }

    /// The host that requests go to at this moment.
    pub(super) fn now(&self) -> Option<String> {
        self.decisions.borrow().host.clone()
    }

    /// When the requests first went to such a host and still do.
    pub(super) async fn until(&mut self, wanted: impl Fn(&str) -> bool) -> Result<Instant> {
        let decided = |decision: &Decision| decision.host.as_deref().is_some_and(&wanted);
        let decision = self.decisions.wait_for(decided).await;
        Ok(decision.context("the requests have ended")?.since)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.asking.abort();
    }
}

async fn ask(
    mut connection: SendRequest<Empty<bytes::Bytes>>,
    sidecar: SocketAddr,
    decisions: &watch::Sender<Decision>,
) -> Result<()> {
    loop {
        let request = Request::get("/")
            .header("host", sidecar.to_string())
            .header("x-weir-key", "the one")
            .body(Empty::new())?;
        let answer = connection.send_request(request).await?;
        let (head, body) = answer.into_parts();
        body.collect().await?;
        let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        let host = match (text("x-weir-reason"), text("x-weir-host")) {
            (Some("no_table") | None, _) => None,
            (Some(_), Some(host)) if head.status == StatusCode::OK => Some(host.to_owned()),
            (Some(reason), host) => bail!(
                "an answer with status {}, reason {reason}, host {host:?}",
                head.status
            ),
        };
        let since = Instant::now();
        decisions.send_if_modified(|decision| {
            let news = decision.host != host;
            if news {
                *decision = Decision { host, since };
            }
            news
        });
        tokio::time::sleep(PAUSE).await;
    }
}
