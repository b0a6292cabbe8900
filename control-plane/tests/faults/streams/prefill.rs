// SPDX-License-Identifier: Apache-2.0
//! Emulated engines of two kinds: some read prompts, the others write the answers.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::SendRequest;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{Engine, IN_FLIGHT, LIMIT, plan, row};
use crate::world::World;

const HEADER: &str = "x-prefiller-host-port";
const PREFILLS: &str = "weir_prefills_total{reason=\"named\"}";
const TALKS: usize = 4;
const TURNS: usize = 3;
/// Looks before a table has come to the thread of the sidecar that has a connection.
const LOOKS: usize = 600;

/// A conversation with one connection, and so one of the sidecar's threads: others hear later of what it has sent.
struct Talker {
    sender: SendRequest<Full<Bytes>>,
    said: Vec<Value>,
}

impl Talker {
    async fn new(world: &World) -> Self {
        Self {
            sender: world.connect().await,
            said: Vec::new(),
        }
    }

    /// Says something more, and would have it read by nobody that there is.
    async fn say(&mut self, content: String) {
        self.said.push(json!({"role": "user", "content": content}));
        let body = json!({"model": "m", "messages": self.said, "max_tokens": 4, "stream": true});
        let request = Request::post("/v1/chat/completions").header("host", "rules");
        let request = request.header("content-type", "application/json");
        let request = request.header(HEADER, "127.0.0.1:1");
        let request = request.body(Full::new(Bytes::from(body.to_string())));
        self.sender.ready().await.unwrap();
        let answer = timeout(LIMIT, self.sender.send_request(request.unwrap()));
        let answer = answer.await.unwrap().unwrap();
        let status = answer.status();
        let events = timeout(LIMIT, answer.into_body().collect()).await.unwrap();
        let events = String::from_utf8(events.unwrap().to_bytes().to_vec()).unwrap();
        assert_eq!(status, 200, "{events}");
        assert!(events.ends_with("data: [DONE]\n\n"), "{events}");
        let content = "EMULATED ".repeat(4);
        self.said
            .push(json!({"role": "assistant", "content": content}));
    }
}

/// About 3 kB.
fn words(about: &str) -> String {
    format!("{about}, of which there is much to be said. ").repeat(60)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_prompt_is_read_by_one_engine_and_answered_by_another() {
    let readers = Engine::start(&["--hosts", "2", "--speed-up", "10"]);
    let writes = [
        "--hosts",
        "2",
        "--speed-up",
        "10",
        "--prefill-header",
        HEADER,
    ];
    let writers = Engine::start(&writes);
    let rows: Vec<Value> = readers.hosts.iter().map(row).collect();
    let policy = json!({"serves": "prompts", "assumed_cached": "5m", "stale_after": "60s"});
    let prefill = json!({"table": "readers", "above_bytes": "1KiB"});
    let plan = plan(&writers.hosts).with(json!({
        "clusters": {"rules": {"policy": policy}, "readers": {"hosts": rows, "policy": policy}},
        "standalone": {"filter": {"config": {"clusters": {"rules": {"prefill": prefill}}}}},
    }));
    let world = plan.start().await;
    for talk in 0..TALKS {
        let mut talker = Talker::new(&world).await;
        until_read_elsewhere(&mut talker, &writers).await;
        let mut before = None;
        for turn in 0..TURNS {
            talker
                .say(words(&format!("Turn {turn} of talk {talk}")))
                .await;
            let (read, written) = (readers.requests(), writers.requests());
            assert_eq!(read.len(), talk * (1 + TURNS) + 2 + turn, "once each");
            let (read, written) = (read.last().unwrap(), written.last().unwrap());
            assert!(readers.hosts.contains(&read.host), "{}", read.host);
            assert!(writers.hosts.contains(&written.host), "{}", written.host);
            assert_eq!(written.read_by, Some(read.host));
            assert_eq!(written.blocks, read.blocks);
            // Both stay where they are, and nothing is read twice.
            let now = (read.host, written.host, read.blocks.len());
            if let Some((reader, writer, blocks)) = before.replace(now) {
                assert_eq!((read.host, written.host), (reader, writer));
                assert!(read.hit_blocks >= blocks, "{} of {blocks}", read.hit_blocks);
            }
        }
        // What little is new the writer reads itself.
        talker.say("And now?".to_owned()).await;
        let written = writers.requests();
        let written = written.last().unwrap();
        assert_eq!(written.read_by, None);
        assert_eq!(Some(written.host), before.map(|(_, writer, _)| writer));
    }
    world.until_control(IN_FLIGHT, |now| now == 0.0).await;
    let named = readers.answered() as f64;
    world.until_envoy(PREFILLS, |count| count == named).await;
}

/// Talks of something until that is read by another engine, and begins anew.
async fn until_read_elsewhere(talker: &mut Talker, writers: &Engine) {
    for look in 0..LOOKS {
        talker.said.clear();
        let asked = writers.answered();
        talker.say(words(&format!("Look {look}, {asked}"))).await;
        let is_read = writers.requests().last().unwrap().read_by.is_some();
        if is_read {
            return talker.said.clear();
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("nothing is read elsewhere");
}
