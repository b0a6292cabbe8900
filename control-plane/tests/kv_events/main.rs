// SPDX-License-Identifier: Apache-2.0
//! weir-control and an emulated engine as processes: what requests leave in the engine's prefix cache is known at once,
//! under the names that a filter reads from requests that begin alike.

#[allow(dead_code)] // Other tests use more of it.
#[path = "../stage/process.rs"]
mod process;
#[allow(dead_code)] // Other tests use more of it.
#[path = "../envoy/tools.rs"]
mod tools;
#[allow(dead_code)] // Other tests use more of it.
#[path = "../waits/mod.rs"]
mod waits;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use process::Process;
use serde_json::{Value, json};
use waits::until_there;
use weir_body::Body;
use weir_processes::http;

const BLOCK_BYTES: usize = 64;

/// An engine with room for so many blocks of 32 bytes, where an earlier one was, if there was one.
struct Engine {
    _process: Process,
    ports: Value,
}

impl Engine {
    fn start(folder: &Path, flags: &[&str]) -> Self {
        let (ports, log) = (folder.join("engine.json"), folder.join("engine.log"));
        let mut command = Command::new(process::llm_host_program());
        command.args([
            "--kv-events",
            "--block-tokens",
            "8",
            "--capacity-blocks",
            "40",
        ]);
        command.args(["--speed-up", "1000"]).args(flags);
        command
            .arg("--kv-tokenizer")
            .arg(folder.join("tokenizer.json"));
        if ports.exists() {
            let earlier = folder.join("earlier.json");
            std::fs::rename(&ports, &earlier).unwrap();
            command.arg("--ports-of").arg(earlier);
        }
        command.arg("--ports-file").arg(&ports);
        let mut process = Process::start(&mut command, &log);
        process.until_ports(&ports, &log);
        let text = std::fs::read(&ports).unwrap();
        Self {
            _process: process,
            ports: serde_json::from_slice(&text).unwrap(),
        }
    }

    fn at(&self, what: &str) -> SocketAddr {
        self.ports[what][0].as_str().unwrap().parse().unwrap()
    }

    fn complete(&self, prompt: &str) {
        self.post("/v1/completions", &request(prompt));
    }

    fn post(&self, path: &str, body: &str) {
        let answer = http::send(
            self.at("hosts"),
            &http::Request {
                method: "POST",
                path,
                headers: &[("content-type", "application/json")],
                body,
            },
        );
        assert_eq!(answer.unwrap().status, "200");
    }
}

fn request(prompt: &str) -> String {
    json!({"model": "m", "prompt": prompt, "max_tokens": 1}).to_string()
}

/// What a filter reads of a request.
fn names(request: &str) -> Vec<String> {
    let mut body = Body::prompt(BLOCK_BYTES);
    body.read(request.as_bytes());
    body.end();
    let names = body.names().into_iter();
    names.map(|name| String::from_utf8(name).unwrap()).collect()
}

struct Control {
    _process: Process,
    admin: SocketAddr,
}

impl Control {
    fn start(folder: &Path, engine: &Engine) -> Self {
        Self::start_with(folder, engine, "none")
    }

    fn start_with(folder: &Path, engine: &Engine, template: &str) -> Self {
        let kv_events = json!({
            "template": template,
            "port": engine.at("kv_events").port(), "replay_port": engine.at("kv_replays").port(),
            "model": "m", "tokenizer": "tokenizer.json", "block_bytes": BLOCK_BYTES,
        });
        let config = json!({
            "xds": {"listen": "127.0.0.1:0"}, "admin": {"listen": "127.0.0.1:0"},
            "clusters": {"c": {"hosts": [{"address": engine.at("hosts")}], "kv_events": kv_events}},
        });
        let (file, ports, log) = (
            folder.join("c.yaml"),
            folder.join("ports"),
            folder.join("log"),
        );
        std::fs::write(&file, config.to_string()).unwrap();
        let mut command = Command::new(process::CONTROL);
        command
            .arg("--config")
            .arg(&file)
            .arg("--ports-file")
            .arg(&ports);
        let mut process = Process::start(&mut command, &log);
        process.until_ports(&ports, &log);
        let text: Value = serde_json::from_slice(&std::fs::read(&ports).unwrap()).unwrap();
        Self {
            _process: process,
            admin: text["admin"].as_str().unwrap().parse().unwrap(),
        }
    }

    /// How many of a prompt's names the host is known to have, from the first on.
    fn known(&self, prompt: &str) -> Result<usize, String> {
        self.known_of(&request(prompt))
    }

    fn known_of(&self, request: &str) -> Result<usize, String> {
        let names = names(request).join(";");
        let path = format!("/explain?cluster=c&key_separator=;&key={names}");
        let answer = http::get(self.admin, &path).map_err(|error| error.to_string())?;
        let page: Value = serde_json::from_str(&answer.body).map_err(|error| error.to_string())?;
        let rows = ["ranked", "others"]
            .into_iter()
            .flat_map(|list| page[list].as_array().cloned().unwrap_or_default());
        let row = rows.into_iter().next().ok_or_else(|| page.to_string())?;
        Ok(row["cached_keys"].as_u64().unwrap() as usize)
    }

    fn until_known(&self, prompt: &str, names: usize) {
        until_there(&format!("{names} names"), || match self.known(prompt)? {
            known if known == names => Ok(()),
            known => Err(format!("{known} names")),
        });
    }

    fn metric(&self, series: &str) -> f64 {
        let page = http::get(self.admin, "/metrics").unwrap().body;
        let line = page.lines().find_map(|line| line.strip_prefix(series));
        line.map_or(0.0, |value| value.trim().parse().unwrap())
    }
}

/// 640 bytes: 20 blocks of the engine, 10 of the filter.
fn prompt(beginning: &str, letter: &str) -> String {
    format!("{beginning}{}", letter.repeat(640 - beginning.len()))
}

fn what_an_engine_holds_is_known(flags: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let engine = Engine::start(folder, flags);
    let control = Control::start(folder, &engine);
    let (one, two) = (prompt("", "a"), prompt(&"a".repeat(320), "b"));
    control.until_known(&one, 0);
    // Whoever listens hears of what comes from now on.
    until_there("a connection", || {
        let tables = http::get(control.admin, "/tables").unwrap().body;
        let tables: Value = serde_json::from_str(&tables).unwrap();
        let text = tables.to_string();
        match text.contains("\"kv_events\"") && !text.contains("timed_out") {
            true => Ok(()),
            false => Err(text),
        }
    });
    engine.complete(&one);
    control.until_known(&one, 10);
    assert_eq!(control.known(&two), Ok(5), "it begins alike");
    assert_eq!(control.known(&prompt("x", "a")), Ok(0));
    engine.complete(&two);
    control.until_known(&two, 10);
    assert_eq!(control.known(&one), Ok(10));
    // There is room for 40 blocks and 30 are there: what was used longest ago goes, from its end.
    engine.complete(&prompt("", "c"));
    control.until_known(&prompt("", "c"), 10);
    until_there("evictions", || match control.known(&one)? {
        5..10 => Ok(()),
        known => Err(format!("{known} names")),
    });
    assert_eq!(
        control.metric("weir_control_kv_gaps_total{cluster=\"c\",outcome=\"lost\"}"),
        0.0
    );
    // Another process in its place has nothing of that.
    drop(engine);
    let engine = Engine::start(folder, flags);
    control.until_known(&two, 0);
    control.until_known(&one, 0);
    engine.complete(&two);
    control.until_known(&two, 10);
    assert_eq!(
        control.metric("weir_control_kv_gaps_total{cluster=\"c\",outcome=\"restarted\"}"),
        1.0
    );
}

#[test]
fn what_an_engine_holds_is_known_at_once_and_no_longer_than_it_does() {
    what_an_engine_holds_is_known(&[]);
}

#[test]
fn the_same_of_an_engine_that_writes_arrays() {
    what_an_engine_holds_is_known(&["--kv-arrays"]);
}

/// weir-control comes late, to an engine that has still all that it said.
#[test]
fn what_was_said_before_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(folder.path(), &[]);
    let one = prompt("", "a");
    engine.complete(&one);
    let control = Control::start(folder.path(), &engine);
    control.until_known(&one, 10);
}

/// A chat's marks are tokens of the engine, out of which its messages are read.
#[test]
fn chats_have_the_names_of_their_messages() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(folder.path(), &[]);
    // In this order, as clients write them.
    let said = |role: &str, letter: &str| {
        let content = letter.repeat(200);
        format!(r#"{{"role":"{role}","content":"{content}"}}"#)
    };
    let chat = |messages: &[String]| {
        let messages = messages.join(",");
        format!(r#"{{"model":"m","messages":[{messages}],"max_tokens":1}}"#)
    };
    let mut talk = vec![said("system", "a"), said("user", "b")];
    engine.post("/v1/chat/completions", &chat(&talk));
    let control = Control::start_with(folder.path(), &engine, "chatml");
    let begun = names(&chat(&talk)).len();
    until_there("a chat's names", || {
        match control.known_of(&chat(&talk))? {
            known if known == begun => Ok(()),
            known => Err(format!("{known} of {begun} names")),
        }
    });
    talk.extend([said("assistant", "c"), said("user", "d")]);
    assert_eq!(control.known_of(&chat(&talk)), Ok(begun), "it begins alike");
    talk.swap(0, 1);
    assert_eq!(control.known_of(&chat(&talk)), Ok(0));
}
