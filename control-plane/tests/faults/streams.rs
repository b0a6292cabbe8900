// SPDX-License-Identifier: Apache-2.0
//! Answers that come as they are written, of emulated engines of a language model, to callers that stay and callers that go.

mod load_tool;
mod prefill;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::http;
use crate::process::{self, Process};
use crate::world::{Plan, World, sum};

/// Much longer than any event takes.
const LIMIT: Duration = Duration::from_secs(60);
const IN_FLIGHT: &str = "weir_control_in_flight ";
const RETRIES: &str = "envoy_cluster_upstream_rq_retry{envoy_cluster_name=\"rules\"}";

struct Engine {
    process: Process,
    /// The first of its hosts.
    address: SocketAddr,
    hosts: Vec<SocketAddr>,
    folder: TempDir,
}

impl Engine {
    fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let mut command = Command::new(process::llm_host_program());
        command.args(["--block-tokens", "8"]).args(flags);
        command.arg("--ports-file").arg(file("ports"));
        command.arg("--request-log").arg(file("requests"));
        let mut process = Process::start(&mut command, &file("log"));
        process.until_ports(&file("ports"), &file("log"));
        let ports: Value = serde_json::from_slice(&std::fs::read(file("ports")).unwrap()).unwrap();
        let hosts: Vec<SocketAddr> = serde_json::from_value(ports["hosts"].clone()).unwrap();
        Self {
            process,
            address: hosts[0],
            hosts,
            folder,
        }
    }

    /// A line for each request that it has answered to its end.
    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("requests")).unwrap()
    }

    fn answered(&self) -> usize {
        self.log().lines().count()
    }

    fn requests(&self) -> Vec<Answered> {
        lines(&self.log())
    }

    async fn in_progress(&self) -> Option<f64> {
        let (_, page) = http::get(self.address, "/metrics").await?;
        sum(&page, "weir_host_in_progress ")
    }
}

/// What an engine tells of a request.
#[derive(Deserialize)]
struct Answered {
    host: SocketAddr,
    decode_us: f64,
    blocks: Vec<String>,
    hit_blocks: usize,
    read_by: Option<SocketAddr>,
}

fn lines<T: for<'de> Deserialize<'de>>(text: &str) -> Vec<T> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// A sidecar that reads prompts, before these hosts.
async fn start(hosts: &[SocketAddr]) -> World {
    plan(hosts).start().await
}

fn row(address: &SocketAddr) -> Value {
    json!({"address": address, "capacity_millicores": 64_000})
}

fn plan(hosts: &[SocketAddr]) -> Plan {
    let key = json!({"prompt": {"block_bytes": 64}});
    let change = json!({
        "clusters": {"rules": {"policy": {"assumed_cached": "5m", "stale_after": "60s"}}},
        "standalone": {"filter": {"config": {"clusters": {"rules": {"key": key}}}}},
    });
    Plan::hosts(hosts.iter().map(row).collect()).with(change)
}

/// An answer on its way.
struct Stream {
    reason: String,
    body: Incoming,
    read: String,
}

impl Stream {
    /// Asks for so many tokens; returns when the answer's head is there.
    async fn of(world: &World, about: &str, tokens: u32) -> Self {
        let said = format!("Tell me all that there is to be told about {about}, in many words.");
        let body = json!({
            "model": "m", "messages": [{"role": "user", "content": said}],
            "max_tokens": tokens, "stream": true,
        });
        let mut sender = world.connect().await;
        let request = Request::post("/v1/chat/completions").header("host", "rules");
        let request = request.header("content-type", "application/json");
        let request = request.body(Full::new(Bytes::from(body.to_string())));
        let answer = timeout(LIMIT, sender.send_request(request.unwrap()));
        let answer: Response<Incoming> = answer.await.unwrap().unwrap();
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(answer.status(), 200);
        assert_eq!(header("content-type"), "text/event-stream");
        Self {
            reason: header("x-weir-reason"),
            body: answer.into_body(),
            read: String::new(),
        }
    }

    /// The next event; none at the end, and where the answer breaks off.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let event = event.strip_prefix("data: ").unwrap().to_owned();
                self.read = rest.to_owned();
                return Some(event);
            }
            let frame = timeout(LIMIT, self.body.frame()).await.unwrap()?.ok()?;
            let data = frame.into_data().unwrap();
            self.read.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    async fn rest(mut self) -> Vec<String> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

/// An engine that would write for longer than a minute, an event a second.
fn slow() -> Engine {
    Engine::start(&["--decode-ms-per-token", "100"])
}
const MANY: u32 = 640;

#[tokio::test(flavor = "multi_thread")]
async fn events_come_while_the_engine_writes_and_it_stops_when_the_caller_goes() {
    let engine = slow();
    let world = start(&[engine.address]).await;
    let mut stream = Stream::of(&world, "weirs", MANY).await;
    assert_eq!(stream.reason, "not_cached", "its prompt was read");
    for _ in 0..3 {
        let event: Value = serde_json::from_str(&stream.next().await.unwrap()).unwrap();
        assert_eq!(event["object"], "chat.completion.chunk");
        assert_eq!(event["choices"][0]["finish_reason"], Value::Null);
    }
    assert_eq!(engine.answered(), 0, "it had written all before");
    assert_eq!(engine.in_progress().await, Some(1.0));
    world.until_control(IN_FLIGHT, |now| now == 1.0).await;

    drop(stream);
    let idle = async || engine.in_progress().await.filter(|now| *now == 0.0);
    world.until("an idle engine", idle).await;
    world.until_control(IN_FLIGHT, |now| now == 0.0).await;
    assert_eq!(engine.answered(), 0, "it wrote on for nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_engine_dies_breaks_off_and_is_not_asked_for_again() {
    let engine = slow();
    let world = start(&[engine.address]).await;
    let mut stream = Stream::of(&world, "weirs", MANY).await;
    assert!(stream.next().await.unwrap().contains("EMULATED"));
    world.until_control(IN_FLIGHT, |now| now == 1.0).await;
    drop(engine.process);
    let rest = stream.rest().await;
    assert!(rest.iter().all(|event| event != "[DONE]"), "{rest:?}");
    world.until_control(IN_FLIGHT, |now| now == 0.0).await;
    assert_eq!(world.envoy_metric(RETRIES).await, Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_had_to_be_tried_again_is_whole() {
    let engine = Engine::start(&["--speed-up", "100"]);
    let world = start(&[engine.address, process::free_address()]).await;
    let mut asked = 0;
    // Until one was sent to the host that is not there.
    while asked < 5 || world.envoy_metric(RETRIES).await.is_none_or(|n| n == 0.0) {
        let stream = Stream::of(&world, &format!("weir {asked}"), MANY).await;
        let events = stream.rest().await;
        assert_eq!(events.len(), 66, "64 steps, the end and [DONE]: {events:?}");
        assert!(
            events[64].contains("\"finish_reason\":\"length\""),
            "{events:?}"
        );
        assert_eq!(events[65], "[DONE]");
        asked += 1;
        assert_eq!(engine.answered(), asked);
        assert!(
            asked < 200,
            "nothing was sent to the host that is not there"
        );
    }
    world.until_control(IN_FLIGHT, |now| now == 0.0).await;
    assert_eq!(engine.in_progress().await, Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_knows_nothing_of_weir_reads_streams_and_leaves_one() {
    let Some(packages) = weir_needs::provided_or_skip("WEIR_OPENAI_DIR") else {
        return;
    };
    let engine = slow();
    let world = start(&[engine.address]).await;
    let mut client = tokio::process::Command::new("python3");
    client.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/streams/client.py"));
    client.arg(format!("http://{}/v1", world.egress));
    // Its answers are the engine's, not those of a proxy between the machine and elsewhere.
    client.env("PYTHONPATH", packages).env("NO_PROXY", "*");
    let said = timeout(LIMIT, client.kill_on_drop(true).output()).await;
    let said = said.unwrap().unwrap();
    let error = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{error}");
    let told: Value = serde_json::from_slice(&said.stdout).unwrap();
    let text = "EMULATED ".repeat(4);
    let expected = json!({
        "models": ["m"], "chat": text, "ended": "length", "tokens": 4, "whole": text,
        "completion": text, "left": "assistant",
    });
    assert_eq!(told, expected);
    let idle = async || engine.in_progress().await.filter(|now| *now == 0.0);
    world.until("an idle engine", idle).await;
    world.until_control(IN_FLIGHT, |now| now == 0.0).await;
    assert_eq!(engine.answered(), 3, "of four");
}
