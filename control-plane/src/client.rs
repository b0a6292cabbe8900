// SPDX-License-Identifier: Apache-2.0
//! One HTTP or HTTPS server that is asked again and again: a GET with a time-out and a limit on the body, both
//! enforced while it is read. Of the answers of one server that may be large, one at a time is read and held.

pub mod fetch;
mod lines;
mod question;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode};
use reqwest::{Certificate, ClientBuilder, Identity, redirect};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use weir_fleet::poll::{Fault, PollError};
use weir_fleet::settings::{HostTls, Server};

use crate::errors::with_sources;
pub use lines::Lines;
pub(crate) use question::Question;

/// Of an answer that is an error: the reason stands at its beginning, and nobody reads more.
const MOST_SHOWN: usize = 200;

/// Answers of at most so many bytes are read beside others.
const SMALL: usize = 1 << 20;

/// Connections to one server. Clones share them.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    /// Whose large answer is read: seven figures of Prometheus side by side would be seven times the limit.
    turn: Arc<Semaphore>,
}

/// An answer, whatever its status.
#[derive(Debug)]
pub struct Answer {
    /// Of HTTP.
    pub status: StatusCode,
    /// Of HTTP.
    pub headers: HeaderMap,
    /// All of it.
    pub body: Bytes,
    /// Of a large one: the next is read when this goes.
    _turn: Option<OwnedSemaphorePermit>,
}

/// How much of an answer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the question to the end of the body.
    pub timeout: Duration,
    /// Of the body.
    pub max_bytes: usize,
}

impl Client {
    /// No connection yet. The error is the library's reason, in one line: it is about the certificates.
    pub fn new(server: &Server) -> Result<Self, String> {
        Self::build(server, |builder| builder)
    }

    /// The same for the host at `ip:port`, by HTTPS.
    pub fn of_host(address: &str, tls: &HostTls) -> Result<Self, String> {
        let socket: SocketAddr = address
            .parse()
            .map_err(|_| format!("{address:?} is not ip:port"))?;
        let (name, port) = (tls.server_name.as_deref(), socket.port());
        let server = Server {
            url: name.map_or_else(
                || format!("https://{address}"),
                |name| format!("https://{name}:{port}"),
            ),
            ca: tls.ca.clone(),
            identity: tls.identity.clone(),
        };
        Self::build(&server, |builder| match name {
            Some(name) => builder.resolve(name, socket),
            None => builder,
        })
    }

    fn build(
        server: &Server,
        change: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Self, String> {
        use_ring();
        let says = |error: reqwest::Error| with_sources(&error.without_url());
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            // Who has moved is configured anew: a credential must not follow to wherever the answer points.
            .redirect(redirect::Policy::none())
            .tcp_nodelay(true);
        builder = match &server.ca {
            Some(ca) => {
                let authorities = Certificate::from_pem_bundle(ca).map_err(says)?;
                if authorities.is_empty() {
                    return Err("no certificate in PEM".to_owned());
                }
                builder.tls_certs_only(authorities)
            }
            // The system's authorities are neither needed nor looked for.
            None if !server.is_secure() => builder.tls_certs_only([]),
            None => builder,
        };
        if let Some((certificate, key)) = &server.identity {
            let both = [certificate.as_slice(), b"\n", key].concat();
            builder = builder.identity(Identity::from_pem(&both).map_err(says)?);
        }
        Ok(Self {
            http: change(builder).build().map_err(says)?,
            url: server.url.clone(),
            turn: Arc::new(Semaphore::new(1)),
        })
    }

    /// The answer to a question. `path` begins with a slash, and may have a query.
    pub async fn get(
        &self,
        path: &str,
        headers: HeaderMap,
        limits: Limits,
    ) -> Result<Answer, PollError> {
        self.send(Method::GET, path, headers, Bytes::new(), limits)
            .await
    }

    /// The answer to a question of another method, with a body.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
        limits: Limits,
    ) -> Result<Answer, PollError> {
        let question = Question::new(method.as_str(), &self.url, path);
        let url = format!("{}{path}", self.url);
        let request = self.http.request(method, url).headers(headers).body(body);
        let answer = self.read(request, limits.max_bytes);
        question.answered(limits.timeout, answer).await
    }

    /// An answer that goes on, once it begins: the limits are of its beginning and of each line. One that is no success
    /// is read as a whole.
    pub async fn lines(
        &self,
        path: &str,
        headers: HeaderMap,
        limits: Limits,
    ) -> Result<Result<Lines, Answer>, PollError> {
        let question = Question::new(Method::GET.as_str(), &self.url, path);
        let request = self
            .http
            .get(format!("{}{path}", self.url))
            .headers(headers);
        let answer = async {
            let answer = begun(request).await?;
            Ok(match answer.status().is_success() {
                true => Ok(Lines::new(answer, limits.max_bytes)),
                false => Err(self.whole(answer, limits.max_bytes).await?),
            })
        };
        question.answered(limits.timeout, answer).await
    }

    async fn read(
        &self,
        request: reqwest::RequestBuilder,
        max_bytes: usize,
    ) -> Result<Answer, PollError> {
        self.whole(begun(request).await?, max_bytes).await
    }

    async fn whole(
        &self,
        mut answer: reqwest::Response,
        max_bytes: usize,
    ) -> Result<Answer, PollError> {
        let announced = answer.content_length().unwrap_or(0);
        if announced > max_bytes as u64 {
            return Err(fetch::too_large(announced, max_bytes));
        }
        // Until its turn a body waits with the sender, but for what connections buffer.
        let turn = match max_bytes > SMALL {
            true => self.turn.clone().acquire_owned().await.ok(),
            false => None,
        };
        let mut body = BytesMut::new();
        while let Some(data) = answer.chunk().await.map_err(failure)? {
            let read = body.len() + data.len();
            if read > max_bytes {
                return Err(fetch::too_large(read as u64, max_bytes));
            }
            body.extend_from_slice(&data);
        }
        Ok(Answer {
            status: answer.status(),
            headers: std::mem::take(answer.headers_mut()),
            body: body.freeze(),
            _turn: turn,
        })
    }
}

async fn begun(request: reqwest::RequestBuilder) -> Result<reqwest::Response, PollError> {
    request.send().await.map_err(failure)
}

fn failure(error: reqwest::Error) -> PollError {
    fetch::failure(&error.without_url())
}

impl Answer {
    /// The body where the status is 200 to 299; else what the server says of it.
    pub fn good(self) -> Result<Bytes, PollError> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let text = String::from_utf8_lossy(&self.body);
        let line = text.lines().next().unwrap_or_default().trim();
        let shown: String = line.chars().take(MOST_SHOWN).collect();
        let detail = match shown.as_str() {
            "" => self.status.as_u16().to_string(),
            shown => format!("{}: {shown}", self.status.as_u16()),
        };
        Err(PollError::new(Fault::BadStatus, detail))
    }
}

/// TLS by ring, unless the process chose a provider already.
fn use_ring() {
    let _chosen_already = rustls::crypto::ring::default_provider().install_default();
}

/// No complete answer came within the limit.
pub(crate) fn too_slow(limit: Duration) -> PollError {
    let limit = weir_settings::show_duration(limit);
    PollError::new(
        Fault::TimedOut,
        format!("no complete answer within {limit}"),
    )
}

#[cfg(test)]
mod tests;
