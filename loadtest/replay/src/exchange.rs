// SPDX-License-Identifier: Apache-2.0
//! One request of the workload: its attempts, until an answer stands or the deadline has passed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::bodies::Bodies;
use crate::record::{Cache, Outcome, Record};
use crate::rng::SplitMix64;
use crate::units::micros;
use crate::workload::Request;

/// How requests are sent.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where to; request i goes to target i modulo their number, retries included.
    pub targets: Vec<SocketAddr>,
    /// `host` header instead of the target's address.
    pub host_header: Option<HeaderValue>,
    /// Path and query of every request.
    pub path: String,
    /// Attempts at most, the first included.
    pub max_attempts: u32,
    /// From a request's offset to the end of its last attempt.
    pub deadline: Duration,
    /// Between attempts.
    pub backoff: Backoff,
    /// Seed of the jitter.
    pub seed: u64,
}

/// Sends requests over kept-alive connections.
#[derive(Debug)]
pub struct Sender {
    settings: Settings,
    bodies: Bodies,
    client: legacy::Client<HttpConnector, Full<Bytes>>,
}

/// What an attempt came back with.
#[derive(Debug)]
enum Reply {
    Answer(StatusCode, HeaderMap),
    /// Not even an answer: refused, reset, cut off.
    Broken,
}

/// What to do after an attempt.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Final(Outcome),
    /// Try again, or end as this if that is no longer possible.
    Retry(Outcome, Option<Duration>),
}

impl Sender {
    /// A sender without connections. `bodies` must hold those of every request to come: one whose
    /// body is not there fails like a broken connection.
    #[must_use]
    pub fn new(settings: Settings, bodies: Bodies) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = legacy::Client::builder(TokioExecutor::new()).build(connector);
        Self {
            settings,
            bodies,
            client,
        }
    }

    /// How this sender was set up.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sends request number `index`, due at `due`, and returns what became of it.
    pub async fn exchange(self: Arc<Self>, index: usize, request: Request, due: Instant) -> Record {
        let target = self.settings.targets[index % self.settings.targets.len()];
        let mut record = Record::new(index, request, target);
        record.lag_us = micros(due.elapsed());
        let until = due + self.settings.deadline;
        record.outcome = self.attempts(&mut record, target, until).await;
        record.duration_us = micros(due.elapsed());
        record
    }

    async fn attempts(&self, record: &mut Record, target: SocketAddr, until: Instant) -> Outcome {
        let mut jitter = SplitMix64::new(self.settings.seed ^ record.index as u64);
        loop {
            record.attempts += 1;
            let sent = Instant::now();
            let attempt = self.attempt(&record.request, target);
            let reply = tokio::time::timeout_at(until, attempt).await;
            record.attempt_us = micros(sent.elapsed());
            let Ok(reply) = reply else {
                return Outcome::Timeout;
            };
            note(record, &reply);
            let (otherwise, retry_after) = match judge(&reply) {
                Verdict::Final(outcome) => return outcome,
                Verdict::Retry(otherwise, retry_after) => (otherwise, retry_after),
            };
            if record.attempts >= self.settings.max_attempts {
                return otherwise;
            }
            let retry = record.attempts - 1;
            let backoff = &self.settings.backoff;
            let next = Instant::now() + backoff.delay(retry, retry_after, jitter.unit());
            if next >= until {
                return otherwise;
            }
            tokio::time::sleep_until(next).await;
        }
    }

    async fn attempt(&self, request: &Request, target: SocketAddr) -> Reply {
        let Some(message) = self.message(request, target) else {
            return Reply::Broken;
        };
        let Ok(answer) = self.client.request(message).await else {
            return Reply::Broken;
        };
        let (head, mut body) = answer.into_parts();
        // An answer is there when its last byte is; the bytes themselves are nobody's concern.
        while let Some(frame) = body.frame().await {
            if frame.is_err() {
                return Reply::Broken;
            }
        }
        Reply::Answer(head.status, head.headers)
    }

    /// A POST of the request's body, or a GET if it has none.
    fn message(&self, request: &Request, target: SocketAddr) -> Option<http::Request<Full<Bytes>>> {
        let mut message = http::Request::builder()
            .uri(format!("http://{target}{}", self.settings.path))
            .header("x-weir-priority", request.priority.as_bytes())
            .header("x-emulate-run-us", request.run_us)
            .header("x-emulate-bytes", request.bytes);
        for (name, text) in [("x-weir-key", &request.key), ("x-weir-user", &request.user)] {
            if !text.is_empty() {
                message = message.header(name, text.as_bytes());
            }
        }
        if let Some(host) = &self.settings.host_header {
            message = message.header(HOST, host);
        }
        let mut content = Bytes::new();
        if let Some(name) = &request.body {
            content = self.bodies.get(name)?;
            message = message
                .method(Method::POST)
                .header(CONTENT_TYPE, "application/json");
        }
        message.body(Full::new(content)).ok()
    }
}

/// Work is pure, so anything that was not answered may be sent again.
fn judge(reply: &Reply) -> Verdict {
    match reply {
        Reply::Broken => Verdict::Retry(Outcome::Failed, None),
        Reply::Answer(status, headers) => match *status {
            StatusCode::TOO_MANY_REQUESTS => Verdict::Retry(Outcome::Shed, retry_after(headers)),
            StatusCode::SERVICE_UNAVAILABLE => {
                Verdict::Retry(Outcome::Failed, retry_after(headers))
            }
            status if status.is_success() => Verdict::Final(Outcome::Ok),
            _ => Verdict::Final(Outcome::Failed),
        },
    }
}

/// In seconds; the other form, a date, is not used by what is tested here and counts as absent.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = text(headers, RETRY_AFTER.as_str())?.parse::<u32>().ok()?;
    Some(Duration::from_secs(u64::from(seconds)))
}

/// Takes over what the latest answer says of itself.
fn note(record: &mut Record, reply: &Reply) {
    let Reply::Answer(status, headers) = reply else {
        record.status = None;
        return;
    };
    record.status = Some(status.as_u16());
    if *status == StatusCode::TOO_MANY_REQUESTS {
        record.shed_attempts += 1;
    }
    let owned = |name| text(headers, name).map(str::to_owned);
    let number = |name| text(headers, name).and_then(|value| value.parse().ok());
    // The worker knows who it is; the filter's header says who was chosen first.
    record.host = owned("x-worker-id").or_else(|| owned("x-weir-host"));
    record.reason = owned("x-weir-reason");
    record.cache = text(headers, "x-worker-cache").and_then(Cache::parse);
    record.wait_us = number("x-worker-wait-us");
    record.fetch_us = number("x-worker-fetch-us");
    record.run_us = number("x-worker-run-us");
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, after: Option<&'static str>) -> Reply {
        let mut headers = HeaderMap::new();
        if let Some(after) = after {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(after));
        }
        Reply::Answer(StatusCode::from_u16(status).unwrap(), headers)
    }

    #[test]
    fn only_429_503_and_broken_connections_are_tried_again() {
        let second = Some(Duration::from_secs(1));
        let cases = [
            (answer(200, None), Verdict::Final(Outcome::Ok)),
            (answer(204, None), Verdict::Final(Outcome::Ok)),
            (answer(400, None), Verdict::Final(Outcome::Failed)),
            (answer(500, None), Verdict::Final(Outcome::Failed)),
            (
                answer(429, Some("1")),
                Verdict::Retry(Outcome::Shed, second),
            ),
            (
                answer(429, Some("soon")),
                Verdict::Retry(Outcome::Shed, None),
            ),
            (answer(503, None), Verdict::Retry(Outcome::Failed, None)),
            (Reply::Broken, Verdict::Retry(Outcome::Failed, None)),
        ];
        for (reply, verdict) in cases {
            assert_eq!(judge(&reply), verdict, "{reply:?}");
        }
    }
}
