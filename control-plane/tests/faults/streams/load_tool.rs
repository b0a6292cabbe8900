// SPDX-License-Identifier: Apache-2.0
//! Conversations that a load tool of others holds with emulated engines through a sidecar: what it tells, and what they tell.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use weir_processes::process::Started;

use super::{Answered, Engine, lines, start};

/// Much longer than it takes: it is a dozen processes that each load their modules.
const LIMIT: Duration = Duration::from_secs(300);
const TALKS: usize = 6;
const TURNS: usize = 3;
const TOKENS: usize = 16;

/// What the tool tells of a request.
#[derive(Deserialize)]
struct Record {
    metrics: BTreeMap<String, Metric>,
    trace_data: Trace,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Metric {
    value: Value,
}

#[derive(Deserialize)]
struct Trace {
    response_headers: BTreeMap<String, String>,
    response_chunks_count: usize,
}

impl Record {
    fn metric(&self, name: &str) -> f64 {
        self.metrics[name].value.as_f64().unwrap()
    }

    fn header(&self, name: &str) -> &str {
        &self.trace_data.response_headers[name]
    }
}

/// Each begins as no other does, and at length.
fn talks() -> String {
    let talk = |talk: usize| {
        let system =
            format!("{talk} is the number of this talk, which goes on for long. ").repeat(100);
        let said = (0..TURNS).map(|turn| json!({
            "text": format!("And this was asked in turn {turn} of talk {talk}. ").repeat(4), "output_length": TOKENS,
        }));
        let turns: Vec<Value> = std::iter::once(json!({"role": "system", "text": system}))
            .chain(said)
            .collect();
        json!({"session_id": format!("talk-{talk}"), "turns": turns}).to_string() + "\n"
    };
    (0..TALKS).map(talk).collect()
}

/// The tool does not begin without a tokenizer, though engines tell it of tokens: one that knows no word, in the place
/// of what it would have fetched for the model.
fn write_tokenizer(hub: &Path) {
    let model = hub.join("models--m");
    for (file, text) in [
        ("refs/main", json!(1)),
        (
            "snapshots/1/tokenizer.json",
            json!({
                "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"},
                "model": {"type": "WordLevel", "vocab": {"?": 0}, "unk_token": "?"},
            }),
        ),
        (
            "snapshots/1/tokenizer_config.json",
            json!({"tokenizer_class": "PreTrainedTokenizerFast"}),
        ),
    ] {
        let file = model.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text.to_string()).unwrap();
    }
}

/// Two conversations at a time, each on a connection of its own; and what is told of each request, with its headers.
const OPTIONS: &str = "--endpoint-type chat --streaming --use-server-token-count \
    --custom-dataset-type multi_turn --input-file talks.jsonl --artifact-dir told \
    --concurrency 2 --connection-reuse-strategy sticky-user-sessions \
    --workers-max 2 --record-processors 1 --export-http-trace \
    --no-gpu-telemetry --no-server-metrics --ui none";

fn command(packages: &Path, folder: &Path, egress: SocketAddr) -> Command {
    let mut command = Command::new("python3");
    command.args(["-m", "aiperf", "profile", "--model", "m"]);
    command.arg("--url").arg(format!("http://{egress}"));
    command.arg("--conversation-num").arg(TALKS.to_string());
    command.args(OPTIONS.split(' ')).current_dir(folder);
    // Its answers are the engines', not those of a proxy, and nothing is asked of a hub.
    command.env("PYTHONPATH", packages).env("NO_PROXY", "*");
    command.env("HF_HUB_CACHE", folder.join("hub"));
    command.env("HF_HUB_OFFLINE", "1").env("HOME", folder);
    command
}

async fn run(command: Command, folder: &Path) {
    let mut tool = Started::new("aiperf", command, folder).unwrap();
    let ended = async {
        loop {
            if let Some(status) = tool.ended().unwrap() {
                return status;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    let status = timeout(LIMIT, ended).await.expect("it goes on");
    assert!(status.success(), "{:#}", tool.failure(status));
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_of_a_load_tool_stream_and_stay_at_the_host_that_has_read_them() {
    let Some(packages) = weir_needs::provided_or_skip("WEIR_AIPERF_DIR") else {
        return;
    };
    let engine = Engine::start(&["--hosts", "3", "--speed-up", "4"]);
    let world = start(&engine.hosts).await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("talks.jsonl"), talks()).unwrap();
    write_tokenizer(&folder.join("hub"));
    run(command(&packages, folder, world.egress), folder).await;

    let told = std::fs::read_to_string(folder.join("told/profile_export.jsonl"));
    let told: Vec<Record> = lines(&told.unwrap());
    let answered = engine.requests();
    assert_eq!((told.len(), answered.len()), (TALKS * TURNS, TALKS * TURNS));
    are_whole_and_decided_by_prompts(&told);
    stay_where_they_were(&answered);
    let of_weir = counts(told.iter().map(|it| it.header("x-weir-host").to_owned()));
    let of_engines = counts(answered.iter().map(|it| it.host.to_string()));
    assert_eq!(of_weir, of_engines);
    assert!(of_engines.len() > 1, "all at one host: {of_engines:?}");
    come_while_they_are_written(&told, &answered);
}

fn counts(hosts: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    hosts.fold(BTreeMap::new(), |mut counts, host| {
        *counts.entry(host).or_insert(0) += 1;
        counts
    })
}

fn are_whole_and_decided_by_prompts(told: &[Record]) {
    for record in told {
        assert!(record.error.is_none(), "{:?}", record.error);
        assert_eq!(record.metric("output_token_count"), TOKENS as f64);
        let reason = record.header("x-weir-reason");
        let of_prompts = ["not_cached", "assumed_cached"];
        assert!(of_prompts.contains(&reason), "{reason}");
    }
}

/// One that begins alike is one conversation, and stands in the log in its order.
fn stay_where_they_were(answered: &[Answered]) {
    let mut talks = BTreeMap::<&str, Vec<&Answered>>::new();
    for request in answered {
        talks.entry(&request.blocks[0]).or_default().push(request);
    }
    assert_eq!(talks.len(), TALKS);
    for turns in talks.values() {
        assert_eq!(turns.len(), TURNS);
        for pair in turns.windows(2) {
            assert_eq!(pair[0].host, pair[1].host);
            // What was read before is found.
            assert!(pair[1].hit_blocks >= pair[0].blocks.len());
        }
    }
}

/// Held back, all of an answer would come at once, at its end.
fn come_while_they_are_written(told: &[Record], answered: &[Answered]) {
    let came = |it: &Record| it.metric("request_latency") - it.metric("time_to_first_token");
    let came: f64 = told.iter().map(came).sum();
    let written: f64 = answered.iter().map(|it| it.decode_us / 1000.0).sum();
    assert!(
        came > written / 2.0,
        "{came} ms of the {written} ms that engines wrote for"
    );
    let pieces = |it: &Record| it.trace_data.response_chunks_count;
    assert!(told.iter().all(|it| pieces(it) > 1));
}
