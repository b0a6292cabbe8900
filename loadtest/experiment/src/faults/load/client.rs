// SPDX-License-Identifier: Apache-2.0
//! One request and its answer.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout_at;

use super::{Manner, millis};
use crate::faults::record::{End, Record};

/// Bytes that a key's data has, so that it is fetched and cached: 5 ms at the hosts' defaults.
const BYTES: u32 = 1_000;
/// A key that nobody else asks for.
const POISON: &str = "poison";
/// Of an answer that failed, for its record.
const WHY: usize = 120;

/// Sends requests.
pub(super) struct Client {
    targets: Vec<SocketAddr>,
    manner: Manner,
    client: legacy::Client<HttpConnector, Empty<Bytes>>,
}

/// What is sent.
pub(super) struct Message {
    pub(super) number: u64,
    pub(super) id: String,
    pub(super) important: bool,
    pub(super) key: String,
    pub(super) run: Duration,
}

impl Client {
    pub(super) fn new(targets: Vec<SocketAddr>, manner: Manner) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self {
            targets,
            manner,
            client: client(connector, manner),
        }
    }

    /// A record without an answer.
    pub(super) fn record(&self, message: &Message, due: Duration, end: End) -> Record {
        Record {
            id: message.id.clone(),
            caller: self.caller(message.number),
            important: message.important,
            due_ms: millis(due),
            took_ms: 0,
            end,
            answered_by: None,
            chosen: None,
            reason: None,
        }
    }

    /// Sends it and fills in what came back until `until`.
    pub(super) async fn exchange(
        &self,
        message: &Message,
        mut record: Record,
        until: Instant,
    ) -> Record {
        let answer = self.answer(message, &mut record);
        record.end = match self.manner {
            // Numbers go to the callers in turn: pairs of turns reach each of them.
            Manner::Abandons(after) if message.number / self.targets.len() as u64 % 2 == 1 => {
                match tokio::time::timeout(after, answer).await {
                    Ok(end) => end,
                    Err(_) => End::Abandoned,
                }
            }
            _ => match timeout_at(until.into(), answer).await {
                Ok(end) => end,
                Err(_) => End::Failed("no answer in time".to_owned()),
            },
        };
        record
    }

    fn caller(&self, number: u64) -> usize {
        (number % self.targets.len() as u64) as usize
    }

    async fn answer(&self, message: &Message, record: &mut Record) -> End {
        let target = self.targets[self.caller(message.number)];
        let priority = if message.important { "high" } else { "low" };
        let is_poison = self.manner == Manner::Poison;
        let key = if is_poison { POISON } else { &message.key };
        let request = http::Request::builder()
            .uri(format!("http://{target}/"))
            .header("x-weir-key", key)
            .header("x-weir-priority", priority)
            .header("x-emulate-run-us", message.run.as_micros().to_string())
            .header("x-emulate-bytes", BYTES)
            .header("x-emulate-id", &message.id);
        let request = match is_poison {
            true => request.header("x-emulate-fail", "1"),
            false => request,
        };
        let request = match request.body(Empty::new()) {
            Ok(request) => request,
            Err(error) => return End::Failed(error.to_string()),
        };
        let answer = match self.client.request(request).await {
            Ok(answer) => answer,
            Err(error) => return End::Failed(chain(&error)),
        };
        let (head, body) = answer.into_parts();
        note(record, &head.headers);
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return End::Failed(format!("{}: {}", head.status, chain(&error))),
        };
        end(head.status, &body)
    }
}

fn client(connector: HttpConnector, manner: Manner) -> legacy::Client<HttpConnector, Empty<Bytes>> {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    if manner == Manner::Fresh {
        builder.pool_max_idle_per_host(0);
    }
    builder.build(connector)
}

fn end(status: StatusCode, body: &[u8]) -> End {
    if status.is_success() {
        return End::Answered;
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        return End::Refused;
    }
    let said: String = String::from_utf8_lossy(body)
        .trim()
        .chars()
        .take(WHY)
        .collect();
    End::Failed(format!("{}: {said}", status.as_u16()))
}

fn note(record: &mut Record, headers: &HeaderMap) {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    record.answered_by = text("x-worker-id");
    record.chosen = text("x-weir-host");
    record.reason = text("x-weir-reason");
}

/// An error with what caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told += &format!(": {error}");
        cause = error.source();
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_2xx_is_an_answer_and_only_429_a_refusal() {
        assert_eq!(end(StatusCode::OK, b"done"), End::Answered);
        assert_eq!(end(StatusCode::TOO_MANY_REQUESTS, b""), End::Refused);
        let failed = end(StatusCode::SERVICE_UNAVAILABLE, b" no healthy upstream\n");
        assert_eq!(failed, End::Failed("503: no healthy upstream".to_owned()));
    }
}
