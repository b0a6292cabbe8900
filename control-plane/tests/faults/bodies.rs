// SPDX-License-Identifier: Apache-2.0
//! Keys that are in bodies: callers know nothing of Weir, and hosts get what was sent.

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
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
        let connection = TcpStream::connect(world.egress).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(connection)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
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
    for turns in [1, 200, 8_000] {
        post(&world.caller(), &talk("length", turns)).await;
    }
    assert!(talk("length", 8_000).len() > 600_000);
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

/// What the host answers to this beginning of a request, and then to the rest, which comes when the first answer has
/// begun, or later than the sidecar waits.
async fn in_two(world: &World, begin: &str, wait: &str, rest: &str) -> String {
    let mut connection = TcpStream::connect(world.egress).await.unwrap();
    connection.write_all(begin.as_bytes()).await.unwrap();
    match wait {
        "" => {
            let late = "weir_bodies_total{reason=\"late\"";
            world.until_envoy(late, |count| count == 1.0).await;
        }
        wait => {
            let mut answer = vec![0; wait.len()];
            connection.read_exact(&mut answer).await.unwrap();
            assert_eq!(String::from_utf8(answer).unwrap(), wait);
        }
    }
    connection.write_all(rest.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_comes_late_is_not_waited_for_and_one_that_waits_to_be_asked_for_comes() {
    let (world, _hosts) = start().await;
    let body = talk("time", 3);
    let (begun, rest) = body.split_at(20);
    let head = |more: &str| {
        let length = body.len();
        format!(
            "POST / HTTP/1.1\r\nhost: rules\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n{more}\r\n"
        )
    };
    let answer = in_two(&world, &format!("{}{begun}", head("")), "", rest).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with(&body), "{answer}");

    let asked = "HTTP/1.1 100 Continue\r\n\r\n";
    let answer = in_two(&world, &head("expect: 100-continue\r\n"), asked, &body).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with(&body), "{answer}");
    assert!(answer.contains("x-weir-reason: not_cached"), "{answer}");
}
