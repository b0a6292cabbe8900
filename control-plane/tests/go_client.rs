// SPDX-License-Identifier: Apache-2.0
//! The discovery protocol by somebody else's client: go-control-plane's types, in `deploy/tools/xds-client`, which
//! accepts what it gets unless a resource breaks the rules of Envoy's protobuf files.
//!
//! That nothing more comes is shown by what comes next: a stream's responses are in order.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use weir_control::xds::types::{CLUSTER, ENDPOINTS};
use weir_processes::http;
use weir_processes::ports;
use weir_processes::processes::Processes;

const CONTROL: &str = "weir-control";
const HOST_TABLE: &str = "type.googleapis.com/weir.v1.HostTable";
/// Envoy knows it, weir-control does not.
const RUNTIME: &str = "type.googleapis.com/envoy.service.runtime.v3.Runtime";
/// Of a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Deserialize)]
struct Ports {
    xds: SocketAddr,
    admin: SocketAddr,
}

/// weir-control, the clusters `a` and `b` with a host each, and what its client is.
struct Stage {
    folder: TempDir,
    processes: Processes,
    ports: Ports,
    client: PathBuf,
}

impl Stage {
    /// None where the client cannot be had.
    fn up() -> Option<Self> {
        let client = weir_needs::provided_or_skip("WEIR_XDS_CLIENT")?;
        let folder = tempfile::tempdir().unwrap();
        hosts(folder.path(), "a", 1);
        hosts(folder.path(), "b", 1);
        configure(folder.path(), "127.0.0.1:0".parse().unwrap());
        let ports_file = folder.path().join("ports.json");
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-control"));
        command
            .arg("--config")
            .arg(folder.path().join("c.yaml"))
            .arg("--ports-file")
            .arg(&ports_file);
        let mut processes = Processes::new(folder.path().join("logs")).unwrap();
        processes.start(CONTROL, command).unwrap();
        let ports: Ports = ports::wait(&mut processes, CONTROL, &ports_file).unwrap();
        Some(Self {
            folder,
            processes,
            ports,
            client,
        })
    }

    fn client(&self, arguments: &[&str]) -> Client {
        let mut command = Command::new(&self.client);
        command
            .args(["-node", "caller", "-server", &self.ports.xds.to_string()])
            .args(arguments);
        Client::start(command)
    }

    fn metric(&self, name: &str, type_url: &str) -> f64 {
        let page = http::get(self.ports.admin, "/metrics").unwrap().body;
        let (_, message) = type_url.rsplit_once('.').unwrap();
        let line = format!("{name}{{type=\"{message}\"}} ");
        let value = page.lines().find_map(|of| of.strip_prefix(&line));
        value.map_or(0.0, |value| value.parse().unwrap())
    }
}

fn configure(folder: &Path, xds: SocketAddr) {
    let cluster = |name: &str| json!({ "hosts_file": format!("{name}.yaml") });
    let config = json!({
        "xds": { "listen": xds },
        "admin": { "listen": "127.0.0.1:0" },
        "clusters": { "a": cluster("a"), "b": cluster("b") },
        "standalone": {
            "filter": { "wasm": folder.join("filter.wasm"), "delivery": "path" },
            "listeners": [ { "name": "egress", "address": "127.0.0.1:0", "cluster": "a" } ],
        },
    });
    weir_whole_file::write(folder.join("c.yaml"), config.to_string()).unwrap();
}

/// Gives a cluster so many hosts.
fn hosts(folder: &Path, cluster: &str, number: u16) {
    let host = |port| json!({ "address": format!("127.0.0.1:{port}") });
    let hosts: Value = (1..=number).map(host).collect();
    let file = folder.join(format!("{cluster}.yaml"));
    weir_whole_file::write(&file, hosts.to_string()).unwrap();
}

/// What the client says: a response, or how its stream ended.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Said {
    r#type: String,
    nonce: String,
    resources: BTreeMap<String, String>,
    removed: Vec<String>,
    invalid: String,
    ended: String,
    message: String,
}

impl Said {
    /// The resources of a response that breaks no rule.
    fn of(&self, type_url: &str) -> Vec<&str> {
        assert_eq!((&*self.r#type, &*self.invalid), (type_url, ""), "{self:?}");
        assert!(!self.nonce.is_empty(), "{self:?}");
        assert!(self.resources.values().all(|version| !version.is_empty()));
        self.resources.keys().map(String::as_str).collect()
    }
}

struct Client {
    process: Child,
    commands: ChildStdin,
    lines: Receiver<Said>,
}

impl Client {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (commands, output) = (
            process.stdin.take().unwrap(),
            process.stdout.take().unwrap(),
        );
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let said = serde_json::from_str(&line.unwrap()).unwrap();
                if sender.send(said).is_err() {
                    break;
                }
            }
        });
        Self {
            process,
            commands,
            lines,
        }
    }

    fn tell(&mut self, command: &Value) {
        writeln!(self.commands, "{command}").unwrap();
    }

    fn subscribe(&mut self, type_url: &str, names: &[&str]) {
        self.tell(&json!({ "type": type_url, "subscribe": names }));
    }

    fn next(&self) -> Said {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn what_is_accepted_is_not_sent_again_and_what_is_asked_for_again_is() {
    let Some(stage) = Stage::up() else { return };
    let mut client = stage.client(&[]);
    client.subscribe(CLUSTER, &[]);
    let clusters = client.next();
    assert_eq!(clusters.of(CLUSTER), ["a", "b"]);
    client.subscribe(ENDPOINTS, &["a"]);
    let endpoints = client.next();
    assert_eq!(endpoints.of(ENDPOINTS), ["a"]);
    client.subscribe(ENDPOINTS, &["a"]);
    let again = client.next();
    assert_eq!(again.of(ENDPOINTS), ["a"]);
    assert_eq!(again.resources, endpoints.resources);
    assert_ne!(again.nonce, endpoints.nonce);
    let sent = |type_url| stage.metric("weir_xds_responses_total", type_url);
    assert_eq!((sent(CLUSTER), sent(ENDPOINTS)), (1.0, 2.0));
}

#[test]
fn another_list_of_names_is_answered_by_what_is_new_in_it() {
    let Some(stage) = Stage::up() else { return };
    let mut client = stage.client(&[]);
    client.subscribe(ENDPOINTS, &["a"]);
    assert_eq!(client.next().of(ENDPOINTS), ["a"]);
    client.tell(&json!({ "type": ENDPOINTS, "subscribe": ["b", "none"], "unsubscribe": ["a"] }));
    let other = client.next();
    assert_eq!(other.of(ENDPOINTS), ["b"]);
    assert_eq!(other.removed, ["none"], "there is no such resource");
    // Nobody asks for the first any more.
    hosts(stage.folder.path(), "a", 2);
    hosts(stage.folder.path(), "b", 2);
    let changed = client.next();
    assert_eq!(changed.of(ENDPOINTS), ["b"]);
    assert_ne!(changed.resources, other.resources);
}

#[test]
fn a_refused_version_is_counted_and_sent_no_more() {
    let Some(stage) = Stage::up() else { return };
    let mut client = stage.client(&[]);
    client.tell(&json!({ "refuse": "not today" }));
    client.subscribe(ENDPOINTS, &["a"]);
    let refused = client.next();
    assert_eq!(refused.of(ENDPOINTS), ["a"]);
    client.subscribe(ENDPOINTS, &["b"]);
    assert_eq!(client.next().of(ENDPOINTS), ["b"]);
    assert_eq!(stage.metric("weir_xds_nacks_total", ENDPOINTS), 1.0);
    hosts(stage.folder.path(), "a", 2);
    let newer = client.next();
    assert_eq!(newer.of(ENDPOINTS), ["a"]);
    assert_ne!(newer.resources, refused.resources);
    assert_eq!(stage.metric("weir_xds_nacks_total", ENDPOINTS), 1.0);
}

#[test]
fn a_type_that_is_not_served_is_not_answered_and_harms_nothing() {
    let Some(stage) = Stage::up() else { return };
    let mut client = stage.client(&[]);
    client.subscribe(RUNTIME, &["a"]);
    client.subscribe(CLUSTER, &[]);
    assert_eq!(client.next().of(CLUSTER), ["a", "b"]);
    client.subscribe(RUNTIME, &[]);
    client.subscribe(ENDPOINTS, &["a"]);
    assert_eq!(client.next().of(ENDPOINTS), ["a"]);
    // The filter's own have a stream of their own.
    client.subscribe(HOST_TABLE, &["a"]);
    let end = client.next();
    assert_eq!(end.ended, "InvalidArgument", "{end:?}");
    assert!(end.message.contains("need a stream each"), "{end:?}");
}

#[test]
fn the_older_protocol_is_refused_in_words() {
    let Some(stage) = Stage::up() else { return };
    let end = stage.client(&["-sotw"]).next();
    assert_eq!(end.ended, "Unimplemented", "{end:?}");
    assert!(end.message.contains("DELTA_GRPC"), "{end:?}");
}

#[test]
fn after_a_restart_a_stream_goes_on_with_what_its_client_has() {
    let Some(mut stage) = Stage::up() else { return };
    let mut client = stage.client(&[]);
    client.subscribe(CLUSTER, &[]);
    let clusters = client.next();
    assert_eq!(clusters.of(CLUSTER), ["a", "b"]);
    client.subscribe(ENDPOINTS, &["a", "b"]);
    let before = client.next();
    assert_eq!(before.of(ENDPOINTS), ["a", "b"]);
    stage.processes.kill(CONTROL).unwrap();
    assert_eq!(client.next().ended, "Unavailable");
    hosts(stage.folder.path(), "b", 2);
    // Where its client looks for it.
    configure(stage.folder.path(), stage.ports.xds);
    stage.processes.again(CONTROL).unwrap();
    // For an Envoy that waits to hear that it has all.
    assert_eq!(client.next().of(CLUSTER), [""; 0]);
    let after = client.next();
    assert_eq!(after.of(ENDPOINTS), ["b"]);
    assert_ne!(after.resources["b"], before.resources["b"]);
}
