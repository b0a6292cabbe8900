// SPDX-License-Identifier: Apache-2.0
//! The program as a process: what it refuses, how it queues, what it lists, and that its hits are
//! what somebody else counts.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_llm_host::request_log::Line;

/// Much longer than anything takes that is waited for.
const LIMIT: Duration = Duration::from_secs(30);

struct Hosts {
    process: Child,
    addresses: Vec<SocketAddr>,
    folder: tempfile::TempDir,
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Hosts {
    /// Blocks of 2 tokens, which are 8 bytes.
    fn start(hosts: usize, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ports = folder.path().join("ports");
        let process = Command::new(env!("CARGO_BIN_EXE_weir-llm-host"))
            .args(["--hosts", &hosts.to_string(), "--block-tokens", "2"])
            .arg("--ports-file")
            .arg(&ports)
            .arg("--request-log")
            .arg(folder.path().join("log"))
            .args(flags)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let text = until("ports", || fs::read_to_string(&ports).ok());
        let written: HashMap<String, Vec<SocketAddr>> = serde_json::from_str(&text).unwrap();
        Self {
            process,
            addresses: written["hosts"].clone(),
            folder,
        }
    }

    /// Sends a request, and leaves the answer to whoever keeps the connection.
    fn send(&self, host: usize, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.addresses[host]).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        stream
    }

    fn ask(&self, host: usize, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut stream = self.send(host, method, path, headers, body);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Answer {
            status: head[9..12].parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    fn complete(&self, host: usize, key: &str, prompt: &str, max_tokens: u64) -> Answer {
        let (headers, body) = completion(key, prompt, max_tokens);
        self.ask(host, "POST", "/v1/completions", &headers, &body)
    }

    fn get(&self, host: usize, path: &str) -> String {
        self.ask(host, "GET", path, "", "").body
    }

    fn log(&self) -> Vec<Line> {
        let file: PathBuf = self.folder.path().join("log");
        let text = fs::read_to_string(file).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }
}

/// Headers and body.
fn completion(key: &str, prompt: &str, max_tokens: u64) -> (String, String) {
    let body = json!({ "model": "m", "prompt": prompt, "max_tokens": max_tokens });
    (format!("x-weir-key: {key}\r\n"), body.to_string())
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn number(&self, header: &str) -> u64 {
        let start = format!("{header}: ");
        let line = self.head.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("no {header} in {}", self.head))
            .parse()
            .unwrap()
    }
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < LIMIT, "waited in vain for {what}");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_is_no_completion_is_refused_with_the_reason() {
    let hosts = Hosts::start(1, &["--max-body-bytes", "200", "--capacity-blocks", "10"]);
    let ask = |method: &str, path: &str, headers: &str, body: &str| {
        hosts.ask(0, method, path, headers, body)
    };
    let long = json!({"model": "m", "prompt": "x".repeat(300)}).to_string();
    let big = json!({"model": "m", "prompt": "x".repeat(100), "max_tokens": 3}).to_string();
    let good = r#"{"model":"m","prompt":"x"}"#;
    let (post, chat) = ("/v1/completions", "/v1/chat/completions");
    for (answer, status, reason) in [
        (ask("POST", post, "", "{oops"), 400, "no completion: "),
        (
            ask("POST", post, "", r#"{"model":"m"}"#),
            400,
            "prompt: is missing",
        ),
        (
            ask("POST", post, "", r#"{"model":"m","prompt":7}"#),
            400,
            "expected a string",
        ),
        (
            ask("POST", post, "", r#"{"model":"m","prompt":""}"#),
            400,
            "prompt: is empty",
        ),
        (
            ask("POST", post, "", r#"{"model":"gpt","prompt":"x"}"#),
            404,
            "model: there is no",
        ),
        (ask("POST", chat, "", good), 400, "messages: are missing"),
        (
            ask("POST", chat, "", r#"{"model":"m","messages":[]}"#),
            400,
            "messages: there are none",
        ),
        (
            ask("POST", post, "x-weir-key: \r\n", good),
            400,
            "header x-weir-key",
        ),
        (ask("POST", post, "", &long), 413, "length limit exceeded"),
        (
            ask("POST", post, "", &big),
            400,
            "need 14 blocks, the host has 10",
        ),
        (ask("GET", post, "", ""), 405, "completions are POSTed"),
        (ask("GET", "/", "", ""), 404, "the paths are"),
    ] {
        assert_eq!(answer.status, status, "{}", answer.body);
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains(reason), "{message}");
    }
    assert_eq!(ask("POST", post, "", good).status, 200);
}

#[test]
fn one_waits_while_another_is_read_and_the_pages_tell() {
    // The first is read for 20 s, long enough to be seen on any machine; nobody waits for the end.
    let hosts = Hosts::start(1, &["--prefill-tokens-per-second", "4"]);
    let send = |key: &str, prompt: &str| {
        let (headers, body) = completion(key, prompt, 0);
        hosts.send(0, "POST", "/v1/completions", &headers, &body)
    };
    let _first = send("a", &"a".repeat(320));
    until("the first at work", || {
        hosts
            .get(0, "/metrics")
            .contains("vllm:num_requests_running{model_name=\"m\"} 1")
            .then_some(())
    });
    let _second = send("b", "b");
    let page = until("the second in the queue", || {
        let page = hosts.get(0, "/metrics");
        page.contains("weir_host_queued{priority=\"16\"} 1")
            .then_some(page)
    });
    for line in [
        "vllm:num_requests_waiting{model_name=\"m\"} 1",
        "vllm:kv_cache_usage_perc{model_name=\"m\"} 0.0",
        "vllm:cache_config_info{block_size=\"2\",num_gpu_blocks=\"2500\"} 1",
        "vllm:lora_requests_info{max_lora=\"0\",running_lora_adapters=\"\",waiting_lora_adapters=\"\"} 1",
        "weir_host_in_progress 2",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
}

#[test]
fn a_prompt_is_read_by_the_host_that_the_header_names_and_answered_by_the_other() {
    const HEADER: &str = "x-prefiller-host-port";
    let readers = Hosts::start(1, &["--speed-up", "1000"]);
    // It would read a prompt for eight minutes.
    let slow = ["--speed-up", "0.001", "--decode-ms-per-token", "0.01"];
    let writers = Hosts::start(1, &[&["--prefill-header", HEADER][..], &slow].concat());
    let ask = |path: &str, header: &str, stream: bool| {
        let prompt = "a".repeat(16_000);
        let body = json!({
            "model": "m", "prompt": prompt, "messages": [{"role": "user", "content": prompt}],
            "max_tokens": 4, "max_completion_tokens": 4, "stream": stream,
        });
        writers.ask(0, "POST", path, header, &body.to_string())
    };
    let named = format!("{HEADER}: {}\r\n", readers.addresses[0]);
    for (path, stream) in [("/v1/completions", false), ("/v1/chat/completions", true)] {
        assert_eq!(ask(path, &named, stream).status, 200);
    }
    let (read, written) = (readers.log(), writers.log());
    assert_eq!((read.len(), written.len()), (2, 2));
    for (read, written) in read.iter().zip(&written) {
        assert_eq!(read.blocks, written.blocks);
        assert_eq!(read.read_by, None);
        assert_eq!(written.read_by, Some(readers.addresses[0]));
        // One token, and four.
        assert_eq!((read.decode_us, written.decode_us), (25, 40_000));
    }
    let nobody = format!("{HEADER}: 127.0.0.1:1\r\n");
    let nonsense = format!("{HEADER}: nobody\r\n");
    for (header, status, reason) in [
        (nobody, 502, "the prompt was not read by 127.0.0.1:1"),
        (nonsense, 400, "is not the address of a host"),
    ] {
        let answer = ask("/v1/completions", &header, false);
        assert_eq!(answer.status, status);
        assert!(answer.body.contains(reason), "{}", answer.body);
    }
    assert_eq!(writers.log().len(), 2);
}

/// The first is read for 1,000 s, the second for a quarter of one.
#[test]
fn when_a_caller_leaves_the_next_in_the_queue_begins() {
    let hosts = Hosts::start(1, &["--prefill-tokens-per-second", "4"]);
    let send = |prompt: &str| {
        let (headers, body) = completion("a", prompt, 0);
        hosts.send(0, "POST", "/v1/completions", &headers, &body)
    };
    let until_there = |metric: &str| {
        until(metric, || {
            hosts.get(0, "/metrics").contains(metric).then_some(())
        });
    };
    let first = send(&"a".repeat(16_000));
    until_there("weir_host_in_progress 1");
    let mut second = send("b");
    until_there("weir_host_in_progress 2");
    drop(first);
    second.set_read_timeout(Some(LIMIT)).unwrap();
    let mut answer = String::new();
    second.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn an_answer_tells_what_it_took_and_what_is_left() {
    // Eight tokens of prompt are read for 200 ms.
    let hosts = Hosts::start(1, &["--prefill-tokens-per-second", "40"]);
    let answer = hosts.complete(0, "a", &"a".repeat(32), 0);
    assert_eq!(answer.number("x-worker-wait-us"), 0);
    assert_eq!(answer.number("x-worker-fetch-us"), 200_000);
    assert!(
        answer
            .head
            .contains("endpoint-load-metrics: TEXT named_metrics.weir.in_progress=0")
    );
}

/// What a caller of a stream reads, as it comes.
struct Events(BufReader<TcpStream>);

impl Events {
    fn of(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Self(BufReader::new(stream))
    }

    /// The next one's data; none at the end.
    fn next(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(data.trim_end().to_owned());
            }
        }
    }
}

fn is_idle(hosts: &Hosts) -> Option<()> {
    let page = hosts.get(0, "/metrics");
    let idle = page.contains("weir_host_in_progress 0");
    (idle && page.contains("vllm:kv_cache_usage_perc{model_name=\"m\"} 0.0")).then_some(())
}

#[test]
fn a_stream_has_the_events_of_its_api() {
    let hosts = Hosts::start(1, &["--speed-up", "1000"]);
    let ask = |path: &str, mut body: Value, tokens: u64| {
        body["model"] = json!("m");
        body["max_tokens"] = json!(tokens);
        let whole = hosts.ask(0, "POST", path, "", &body.to_string()).body;
        body["stream"] = json!(true);
        body["stream_options"] = json!({ "include_usage": true });
        let mut events = Events::of(hosts.send(0, "POST", path, "", &body.to_string()));
        let mut data: Vec<String> = std::iter::from_fn(|| events.next()).collect();
        assert_eq!(data.pop().unwrap(), "[DONE]");
        let parse = |text: &String| -> Value { serde_json::from_str(text).unwrap() };
        let mut chunks: Vec<Value> = data.iter().map(parse).collect();
        let used = chunks.pop().unwrap();
        assert_eq!(
            (&used["choices"], &used["usage"]["completion_tokens"]),
            (&json!([]), &json!(tokens))
        );
        let last = chunks.pop().unwrap();
        assert_eq!(last["choices"][0]["finish_reason"], "length");
        assert!(
            chunks
                .iter()
                .all(|chunk| chunk["choices"][0]["finish_reason"].is_null())
        );
        (parse(&whole), chunks)
    };
    let text = |chunks: &[Value], at: &str| -> String {
        let texts = chunks
            .iter()
            .map(|chunk| chunk.pointer(at).unwrap().as_str().unwrap());
        texts.collect()
    };
    let (whole, chunks) = ask("/v1/completions", json!({ "prompt": "x" }), 3);
    assert_eq!(
        (chunks.len(), &chunks[0]["object"]),
        (3, &json!("text_completion"))
    );
    assert_eq!(
        text(&chunks, "/choices/0/text"),
        whole["choices"][0]["text"]
    );
    let messages = json!({ "messages": [{ "role": "user", "content": "x" }] });
    let (whole, chunks) = ask("/v1/chat/completions", messages, 1000);
    assert_eq!(
        (chunks.len(), &chunks[0]["object"]),
        (63, &json!("chat.completion.chunk"))
    );
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let message = &whole["choices"][0]["message"]["content"];
    assert_eq!(text(&chunks, "/choices/0/delta/content"), *message);
    assert_eq!(hosts.log().len(), 4);
    let models: Value = serde_json::from_str(&hosts.get(0, "/v1/models")).unwrap();
    assert_eq!(models["data"][0]["id"], "m");
}

/// Each answer takes a thousand seconds, so that nobody comes to its end.
#[test]
fn a_stream_begins_before_its_end_and_frees_what_it_held_when_its_caller_leaves() {
    let hosts = Hosts::start(1, &["--decode-ms-per-token", "1000"]);
    let body =
        json!({ "model": "m", "prompt": "x".repeat(80), "max_tokens": 1000, "stream": true });
    let mut events = Events::of(hosts.send(0, "POST", "/v1/completions", "", &body.to_string()));
    assert!(events.next().unwrap().contains("EMULATED"));
    assert!(is_idle(&hosts).is_none() && hosts.log().is_empty());
    drop(events);
    until("an idle host", || is_idle(&hosts));
    assert!(hosts.log().is_empty(), "nobody was answered");
}

#[test]
fn a_chat_that_goes_on_finds_what_was_read_of_it() {
    let hosts = Hosts::start(1, &["--speed-up", "1e6"]);
    let ask = |talk: &[Value]| {
        let body = json!({ "model": "m", "messages": talk }).to_string();
        let answer = hosts.ask(0, "POST", "/v1/chat/completions", "", &body);
        [
            answer.number("x-worker-blocks"),
            answer.number("x-worker-hit-blocks"),
        ]
    };
    let said = |role: &str| json!({ "role": role, "content": "sixteen letters.".repeat(4) });
    let mut talk = vec![said("user")];
    let [first, _] = ask(&talk);
    talk.extend([said("assistant"), said("user")]);
    let [all, found] = ask(&talk);
    assert!(
        first >= 8 && found >= first && all > 2 * found,
        "{first} {found} {all}"
    );
}

#[test]
fn keys_are_listed_while_their_own_blocks_are_cached() {
    let hosts = Hosts::start(1, &["--capacity-blocks", "4", "--speed-up", "1e6"]);
    let prompt = |own: &str| format!("{}{}", "system..", own.repeat(8));
    let listed = |since: &str| -> Value {
        serde_json::from_str(&hosts.get(0, &format!("/cache{since}"))).unwrap()
    };
    hosts.complete(0, "a", &prompt("a"), 0);
    hosts.complete(0, "b", &prompt("b"), 0);
    let all = listed("");
    assert_eq!(all["reset"], true);
    let mut keys: Vec<_> = all["added"].as_array().unwrap().iter().collect();
    keys.sort_by_key(|key| key.to_string());
    assert_eq!(keys, ["a", "b"]);
    let again = hosts.complete(0, "a", &prompt("a"), 0);
    let found = [
        again.number("x-worker-blocks"),
        again.number("x-worker-hit-blocks"),
    ];
    assert_eq!(found, [2, 2]);
    hosts.complete(0, "c", &format!("{}{}", prompt("c"), "more.of."), 0);
    let (version, epoch) = (&all["version"], &all["epoch"]);
    let changes = listed(&format!("?since={version}&epoch={epoch}"));
    assert_eq!(
        (&changes["reset"], &changes["added"], &changes["removed"]),
        (&json!(false), &json!(["c"]), &json!(["b"]))
    );
}

/// Many requests on several hosts at once; then the hits are counted again from the log alone: a
/// block is found if this host has read it to its end before, and so for all before it.
#[test]
fn hits_are_what_somebody_else_counts() {
    let hosts = Hosts::start(3, &["--speed-up", "100"]);
    let told: u64 = thread::scope(|scope| {
        let client = |client: usize| {
            let hosts = &hosts;
            scope.spawn(move || {
                let ask = |n: usize| {
                    let session = (client * 7 + n * 5) % 11;
                    let turns: String = (0..n % 4)
                        .map(|turn| format!("s{session:03}t{turn:03}"))
                        .collect();
                    let prompt = format!("system..{turns}rest");
                    let answer = hosts.complete((client + n) % 3, &session.to_string(), &prompt, 3);
                    assert_eq!(answer.status, 200, "{}", answer.body);
                    answer.number("x-worker-hit-blocks")
                };
                (0..40).map(ask).sum::<u64>()
            })
        };
        let clients: Vec<_> = (0..4).map(client).collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    });
    let mut log = hosts.log();
    assert_eq!(log.len(), 160);
    // Prefills of a host do not overlap: in this order, each begins after the one before has ended.
    log.sort_by_key(|line| line.begun_us);
    let mut read: HashMap<SocketAddr, HashSet<String>> = HashMap::new();
    let mut counted = 0;
    for line in &log {
        let here = read.entry(line.host).or_default();
        let found = line
            .blocks
            .iter()
            .take_while(|block| here.contains(*block))
            .count();
        assert_eq!(found, line.hit_blocks, "{line:?}");
        counted += found as u64;
        here.extend(line.blocks.iter().cloned());
    }
    assert_eq!(counted, told);
    assert!(counted > 100, "{counted}");
}
