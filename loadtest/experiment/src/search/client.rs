// SPDX-License-Identifier: Apache-2.0
//! One user: asks, waits for the whole answer, asks again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// A connection that is kept.
pub struct Client {
    sender: SendRequest<Full<Bytes>>,
    host: HeaderValue,
    /// How many queries were answered on it.
    pub answered: u64,
}

impl Client {
    /// Connects to an engine. Within a runtime, which drives the connection.
    ///
    /// # Errors
    /// It does not listen.
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let host = HeaderValue::from_str(&address.to_string())?;
        Ok(Self {
            sender,
            host,
            answered: 0,
        })
    }

    /// Sends one query. Returns how long the whole answer took.
    ///
    /// # Errors
    /// No answer, or one that says that the search failed in part.
    pub async fn ask(&mut self, body: &str) -> Result<Duration> {
        let request = Request::post("/documents/_search")
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))?;
        self.sender.ready().await?;
        let asked = Instant::now();
        let answer = self
            .sender
            .send_request(request)
            .await
            .context("no answer")?;
        let status = answer.status();
        let said = answer.into_body().collect().await?.to_bytes();
        let took = asked.elapsed();
        let text = String::from_utf8_lossy(&said);
        ensure!(
            status == StatusCode::OK
                && text.contains("\"timed_out\":false")
                && text.contains("\"failed\":0"),
            "the query {body} was answered with {status}: {text}"
        );
        self.answered += 1;
        Ok(took)
    }
}
