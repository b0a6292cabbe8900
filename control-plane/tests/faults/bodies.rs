// SPDX-License-Identifier: Apache-2.0
//! Keys that are in bodies: callers know nothing of Weir, and hosts get what was sent.

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::client::conn::http1::SendRequest;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Answer, Caller, Headers};
use crate::hosts::Host;
use crate::world::{Plan, World};

/// Two hosts that say nothing of their caches, and a sidecar that reads prompts.
async fn start() -> (World, [Host; 2]) {
    let hosts = [Host::start().await, Host::start().await];
    let row = |host: &Host| json!({"address": host.address, "capacity_millicores": 64_000});
    let key = json!({"prompt": {"block_bytes": 64}});
    let change = json!({
        "clusters": {"rules": {"policy": {"assumed_cached": "5m", "stale_after": "60s"}}},
        "standalone": {"filter": {"config": {"clusters": {"rules": {"key": key}}}}},
    });
    let world = Plan::hosts(hosts.iter().map(row).collect())
        .with(change)
        .start()
        .await;
    (world, hosts)
}

/// A conversation of so many turns.
fn talk(about: &str, turns: usize) -> String {
    let turn = |turn: usize| {
        let said = format!("This is what was said about {about} in turn {turn}, word for word.");
        let role = ["user", "assistant"][turn % 2];
        json!({"role": role, "content": said})
    };
    let messages: Vec<Value> = (0..turns).map(turn).collect();
    json!({"model": "m", "messages": messages, "stream": true}).to_string()
}

async fn post(caller: &Caller, body: &str) -> Answer {
    let headers: Headers = vec![("content-type", "application/json".to_owned())];
    let answer = caller.post(&headers, body.to_owned()).await;
    assert_eq!(answer.status, Some(200), "{}", answer.body);
    assert!(answer.body.ends_with(body), "{}", answer.body);
    answer
}

/// A caller with one connection, and so one of the sidecar's threads: others hear later of what it has sent.
struct Talker(SendRequest<Full<Bytes>>);

impl Talker {
    async fn new(world: &World) -> Self {
        Self(world.connect().await)
    }

    async fn says(&mut self, body: &str) -> Answer {
        self.0.ready().await.unwrap();
        let request = Request::post("/").header("host", "rules");
        let request = request.header("content-type", "application/json");
        let request = request
            .body(Full::new(Bytes::from(body.to_owned())))
            .unwrap();
        let answer = Answer::read(self.0.send_request(request).await.unwrap()).await;
        assert_eq!(answer.status, Some(200), "{}", answer.body);
        assert!(answer.body.ends_with(body), "{}", answer.body);
        answer
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_of_a_caller_that_knows_nothing_of_weir_stay_where_they_were() {
    let (world, _hosts) = start().await;
    for about in ["rules", "rivers", "weirs", "fish"] {
        let mut talker = Talker::new(&world).await;
        let first = talker.says(&talk(about, 1)).await;
        for turns in 2..10 {
            let next = talker.says(&talk(about, turns)).await;
            assert_eq!(
                next.host, first.host,
                "{about}, turn {turns}: {}",
                next.reason
            );
        }
        let again = talker.says(&talk(about, 9)).await;
        assert_eq!((again.host, &*again.reason), (first.host, "assumed_cached"));
    }
    let metric = "weir_bodies_total{reason=\"read\"";
    assert!(world.envoy_metric(metric).await >= Some(4.0 * 10.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn any_length_and_kind_of_body_reaches_its_host_as_it_was_sent() {
    let (world, _hosts) = start().await;
    for turns in [1, 200, 8_000, 40_000] {
        post(&world.caller(), &talk("length", turns)).await;
    }
    // More than Envoy keeps of a body.
    assert!(talk("length", 40_000).len() > 3 << 20);
    for (kind, body) in [
        ("application/json", "this is no JSON"),
        ("application/json", ""),
        ("text/plain", "{}"),
        ("application/x-www-form-urlencoded", "prompt=x"),
    ] {
        let headers: Headers = vec![("content-type", kind.to_owned())];
        let answer = world.caller().post(&headers, body.to_owned()).await;
        assert_eq!(
            (answer.status, &*answer.reason),
            (Some(200), "no_key"),
            "{body}"
        );
        assert!(answer.body.ends_with(body));
    }
}

/// Over HTTP/1 a part of a body is what is in the socket, so one that comes while Envoy is busy may be as large as its
/// buffer, and does not fit behind another part that it was told to keep.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_comes_in_large_parts_is_not_refused() {
    let (world, _hosts) = start().await;
    let body = talk("time", 40_000);
    let (begun, rest) = body.split_at(200_000);
    let received = "envoy_http_downstream_cx_rx_bytes_total";
    for _ in 0..5 {
        let before = world.envoy_metric(received).await.unwrap_or_default();
        let partial = begin(&world, &format!("{}{begun}", head(&body, ""))).await;
        let all = |bytes| bytes >= before + begun.len() as f64;
        world.until_envoy(received, all).await;
        end(partial, rest, &body).await;
    }
}

/// The beginning of a request whose body has this length.
fn head(body: &str, more: &str) -> String {
    let length = body.len();
    format!(
        "POST / HTTP/1.1\r\nhost: rules\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{more}\r\n"
    )
}

async fn begin(world: &World, begin: &str) -> TcpStream {
    let mut connection = TcpStream::connect(world.egress).await.unwrap();
    connection.write_all(begin.as_bytes()).await.unwrap();
    connection
}

/// Sends the rest; the answer has all of the body, once.
async fn end(mut connection: TcpStream, rest: &str, body: &str) -> String {
    connection.write_all(rest.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, echoed) = answer.rsplit_once("\r\n\r\n").unwrap();
    assert_eq!(echoed, body);
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_comes_late_reaches_its_host_once_and_in_whole() {
    let (world, _hosts) = start().await;
    let body = talk("time", 3);
    let (begun, rest) = body.split_at(20);
    let partial = begin(&world, &format!("{}{begun}", head(&body, ""))).await;
    let late = "weir_bodies_total{reason=\"late\"";
    // Nothing says that the time of the first is over before its rest comes. Another thread may look after it, and see
    // later that it is: it has all the time of the second request to do so.
    for count in [1.0, 2.0] {
        let without = begin(&world, &head(&body, "")).await;
        world.until_envoy(late, |late| late == count).await;
        end(without, &body, &body).await;
    }
    let answer = end(partial, rest, &body).await;
    // Envoy tells the end of a body after its last part.
    assert!(answer.contains("x-weir-reason: no_key"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_waits_to_be_asked_for_comes() {
    let (world, _hosts) = start().await;
    let body = talk("time", 3);
    let mut connection = begin(&world, &head(&body, "expect: 100-continue\r\n")).await;
    let asked = "HTTP/1.1 100 Continue\r\n\r\n";
    let mut answer = vec![0; asked.len()];
    connection.read_exact(&mut answer).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), asked);
    let answer = end(connection, &body, &body).await;
    assert!(answer.contains("x-weir-reason: not_cached"), "{answer}");
}
