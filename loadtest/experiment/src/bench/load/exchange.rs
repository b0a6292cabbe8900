// SPDX-License-Identifier: Apache-2.0
//! One connection, or a stream of one: a request, its whole answer, and whether that is right.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::work::{AnsweredBy, Shot};

/// One request at a time goes over it.
pub(super) enum Connection {
    Http1(http1::SendRequest<Full<Bytes>>),
    /// A stream of a connection that it shares with others.
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// Tasks of the thread at hand.
#[derive(Clone, Copy)]
struct Here;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for Here {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

/// Where a right answer came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Wanted,
    /// From another host than was preferred.
    Elsewhere,
}

impl Connection {
    pub(super) async fn open(target: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(target).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::task::spawn_local(connection);
        Ok(Self::Http1(sender))
    }

    /// So many streams of one connection.
    pub(super) async fn streams(target: SocketAddr, count: usize) -> Result<Vec<Self>> {
        let stream = TcpStream::connect(target).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http2::handshake(Here, TokioIo::new(stream)).await?;
        tokio::task::spawn_local(connection);
        Ok((0..count).map(|_| Self::Http2(sender.clone())).collect())
    }

    pub(super) async fn exchange(&mut self, shot: &Shot) -> Result<Origin> {
        const ENDED: &str = "the connection has ended";
        let answer = match self {
            Self::Http1(sender) => {
                sender.ready().await.context(ENDED)?;
                sender.send_request(shot.request()).await
            }
            Self::Http2(sender) => {
                sender.ready().await.context(ENDED)?;
                sender.send_request(shot.http2_request()).await
            }
        };
        let (head, mut body) = answer.context("no answer")?.into_parts();
        let mut said = Bytes::new();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame.context("the answer broke off")?.into_data() {
                said = data;
            }
        }
        ensure!(
            head.status == StatusCode::OK,
            "the answer was {}: {}",
            head.status,
            String::from_utf8_lossy(&said)
        );
        check(&head.headers, &shot.answered_by)
    }
}

fn check(answer: &HeaderMap, answered_by: &AnsweredBy) -> Result<Origin> {
    let told = |name: &str| answer.get(name).map_or(&b""[..], HeaderValue::as_bytes);
    let wanted = match answered_by {
        AnsweredBy::Any => return Ok(Origin::Wanted),
        AnsweredBy::This(host) | AnsweredBy::Preferably(host) => host.as_bytes(),
        AnsweredBy::TheNamed => told("x-named")
            .split(|byte| *byte == b',')
            .next()
            .unwrap_or_default(),
    };
    let came_from = told("x-host");
    match answered_by {
        _ if wanted == came_from && !wanted.is_empty() => Ok(Origin::Wanted),
        AnsweredBy::Preferably(_) if !came_from.is_empty() => Ok(Origin::Elsewhere),
        _ => bail!(
            "the request should have come to the host `{}`, and came to `{}`",
            String::from_utf8_lossy(wanted),
            String::from_utf8_lossy(came_from)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(host: &'static str, named: &'static str) -> HeaderMap {
        [("x-host", host), ("x-named", named)]
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .into_iter()
            .collect()
    }

    #[test]
    fn the_host_that_answers_must_be_the_one_that_was_wanted() {
        let wanted = AnsweredBy::This(HeaderValue::from_static("a:1"));
        assert!(check(&answer("a:1", ""), &wanted).is_ok());
        let error = check(&answer("b:1", ""), &wanted).unwrap_err().to_string();
        assert!(error.contains("`a:1`, and came to `b:1`"), "{error}");
    }

    #[test]
    fn another_host_than_the_preferred_is_told_and_has_to_be_one() {
        let preferred = AnsweredBy::Preferably(HeaderValue::from_static("a:1"));
        let from = |host| check(&answer(host, ""), &preferred);
        assert_eq!(from("a:1").unwrap(), Origin::Wanted);
        assert_eq!(from("b:1").unwrap(), Origin::Elsewhere);
        assert!(from("").is_err());
    }

    #[test]
    fn the_first_that_is_named_is_the_one_and_somebody_must_be() {
        let named = AnsweredBy::TheNamed;
        assert!(check(&answer("a:1", "a:1,b:1"), &named).is_ok());
        assert!(check(&answer("b:1", "a:1,b:1"), &named).is_err());
        assert!(check(&answer("", ""), &named).is_err());
    }
}
