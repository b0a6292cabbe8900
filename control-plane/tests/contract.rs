// SPDX-License-Identifier: Apache-2.0
//! The hosts of `envoy-config/host`, by which that page's contract is shown, before a whole weir-control: every figure
//! that the page names arrives, and weir-control has nothing to complain of.

#[allow(dead_code)] // Other tests use more of it.
mod inside;
#[allow(dead_code)] // Other tests use more of it.
mod waits;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use inside::Inside;
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinSet;
use waits::until;
use weir_filter::orca;
use weir_needs::{Need, free_port, skip};
use weir_processes::http::{self, Request};
use weir_processes::processes::Processes;

/// Generous: a busy machine has other things to do.
const LIMIT: Duration = Duration::from_secs(60);
/// Few, so that a hundred jobs of 60 ms wait for them.
const CORES: u32 = 4;
/// Keys that the cache of either host has room for.
const ROOM: u32 = 100;

fn source(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../envoy-config/host");
    folder.join(name)
}

/// Whether a program of the system is there.
fn has(program: &'static str, argument: &str) -> bool {
    let run = Command::new(program).arg(argument).output();
    match run {
        Ok(run) if run.status.success() => true,
        Ok(run) => {
            skip(
                Need::Installed(program),
                String::from_utf8_lossy(&run.stderr),
            );
            false
        }
        Err(error) => {
            skip(Need::Installed(program), error);
            false
        }
    }
}

fn python() -> Option<Command> {
    has("python3", "--version").then(|| {
        let mut command = Command::new("python3");
        command.arg(source("host.py"));
        command
    })
}

/// Of the standard library alone: nothing is fetched.
fn go(folder: &Path) -> Option<Command> {
    if !has("go", "version") {
        return None;
    }
    let program = folder.join("host");
    let build = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(source("host.go"))
        .envs([
            ("GOFLAGS", "-mod=mod"),
            ("GOTOOLCHAIN", "local"),
            ("GOPROXY", "off"),
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&build.stderr);
    assert!(build.status.success(), "host.go: {said}");
    Some(Command::new(program))
}

/// A host, and a weir-control that knows of it nothing but its address.
struct World {
    host: SocketAddr,
    control: Inside,
    _processes: Processes,
}

impl World {
    async fn start(mut command: Command, folder: &TempDir) -> Self {
        let port = free_port();
        let host = SocketAddr::from(([127, 0, 0, 1], port));
        command.args([port.to_string(), CORES.to_string()]);
        let mut processes = Processes::new(folder.path().join("logs")).unwrap();
        processes.start("host", command).unwrap();
        processes
            .wait_until("the host's page", LIMIT, || {
                http::get(host, "/metrics").ok()
            })
            .unwrap();
        let path = folder.path().join("weir-control.yaml");
        let text = format!(
            "xds: {{ listen: \"127.0.0.1:0\" }}\nadmin: {{ listen: \"127.0.0.1:0\" }}\nclusters:\n  rules:\n    \
             hosts: [ {{ address: \"{host}\" }} ]\n    scrape: {{ interval: 50ms, timeout: 30s }}\n    \
             cache: {{ interval: 50ms, timeout: 30s }}\n"
        );
        std::fs::write(&path, text).unwrap();
        Self {
            host,
            control: inside::start(path).await,
            _processes: processes,
        }
    }

    /// The host as weir-control has it, once it is as wanted. It has nothing to complain of on the way.
    async fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        until(what, async || {
            let tables = self.control.page("/tables").await;
            let host = tables["clusters"]["rules"]["hosts"][0].clone();
            for source in ["scrape", "cache"] {
                let source = &host["sources"][source];
                let complaints = source["complaints"].as_array();
                assert!(complaints.is_none_or(Vec::is_empty), "{host:#}");
                assert!(source["error"].is_null(), "{host:#}");
            }
            if is(&host) { Ok(host) } else { Err(host) }
        })
        .await
    }

    /// A decision sees the key at the host, or not any more: a shard is pushed when it has rested.
    async fn until_cached(&self, cached: &str) {
        until("a decision's view of the key", async || {
            let explained = self.control.page("/explain?cluster=rules&key=a").await;
            match explained["ranked"][0]["cached"] == cached {
                true => Ok(()),
                false => Err(explained),
            }
        })
        .await;
    }

    /// What the host answers to a request; in the background, as it may take its time.
    async fn ask(&self, headers: Vec<(&'static str, String)>) -> http::Answer {
        let host = self.host;
        let ask = move || {
            let headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| (*name, &**value))
                .collect();
            let request = Request {
                method: "POST",
                path: "/run",
                headers: &headers,
                body: "a body",
            };
            http::send(host, &request).unwrap()
        };
        tokio::task::spawn_blocking(ask).await.unwrap()
    }
}

fn keyed(key: &str) -> Vec<(&'static str, String)> {
    vec![("x-weir-key", key.to_owned())]
}

/// An answer's load and cost, as the filter reads them.
fn said(answer: &http::Answer) -> orca::Said {
    let load = answer.header("endpoint-load-metrics").unwrap();
    orca::parse(load.as_bytes(), Duration::ZERO).unwrap()
}

/// All that the page promises of a host.
async fn keeps_the_contract(command: Command, folder: TempDir) {
    let world = World::start(command, &folder).await;
    let idle = world
        .until("an idle host", |host| {
            host["queuing_delay_ms"] == 0.0 && host["capacity_millicores"] == 1000 * CORES
        })
        .await;
    assert_eq!(
        (&idle["state"], &idle["stale"]),
        (&"up".into(), &false.into())
    );
    assert_eq!(
        (&idle["in_progress"], &idle["known_keys"]),
        (&0.into(), &0.into())
    );
    assert_eq!(
        (&idle["from"], &idle["capacity_from"]),
        (&"scrape".into(), &"page".into())
    );

    // A miss tells what the fetch cost, and a hit has none.
    let (miss, hit) = (world.ask(keyed("a")).await, world.ask(keyed("a")).await);
    let (miss, hit) = (said(&miss), said(&hit));
    assert!(miss.spent.unwrap().fetch.is_some() && hit.spent.unwrap().fetch.is_none());
    let load = hit.load.unwrap();
    assert_eq!(
        (load.in_progress, load.queued, load.busy_cores),
        (0, 0, Some(0))
    );
    assert!(load.queuing_delay.is_some());
    world.until("the key", |host| host["known_keys"] == 1).await;
    world.until_cached("known").await;

    // More than it has cores and room for, of both classes.
    let mut crowd = JoinSet::new();
    let (jobs, host) = (ROOM + 20, world.host);
    for number in 0..jobs {
        let priority = if number % 2 == 0 { "high" } else { "low" };
        let key = format!("k{number}");
        crowd.spawn_blocking(move || {
            let request = Request {
                method: "GET",
                path: "/",
                headers: &[("x-weir-key", &key), ("x-weir-priority", priority)],
                body: "",
            };
            http::send(host, &request).unwrap().status
        });
    }
    let queued = |host: &Value, class: usize| host["queued"][class].as_u64().unwrap_or(0);
    // A core between two jobs is not in use, on a busy machine for long.
    world
        .until("a queue before cores that are all in use", |host| {
            let delay = host["queuing_delay_ms"].as_f64().unwrap_or(0.0);
            let (high, low) = (queued(host, 0), queued(host, 16));
            let all = high + low + u64::from(CORES);
            high > 0 && low > 0 && delay > 1.0 && host["in_progress"] == all
        })
        .await;
    // One that may not wait is given back, with the load.
    let impatient = vec![("x-weir-may-wait", "0;id=00000000000000ff".to_owned())];
    let mut bounced = world.ask(impatient.clone()).await;
    while bounced.status != "429" && !crowd.is_empty() {
        while let Some(status) = crowd.try_join_next() {
            assert_eq!(status.unwrap(), "200");
        }
        bounced = world.ask(impatient.clone()).await;
    }
    assert_eq!(bounced.status, "429");
    assert!(bounced.header("x-weir-bounced").is_some());
    assert!(said(&bounced).load.unwrap().queued > 0);

    while let Some(status) = crowd.join_next().await {
        assert_eq!(status.unwrap(), "200");
    }
    // What came first went first.
    world
        .until("a full cache", |host| {
            host["known_keys"] == ROOM && host["in_progress"] == 0
        })
        .await;
    world.until_cached("no").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_in_python_tells_all_that_the_contract_names() {
    let Some(command) = python() else { return };
    keeps_the_contract(command, tempfile::tempdir().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_in_go_tells_all_that_the_contract_names() {
    let folder = tempfile::tempdir().unwrap();
    let Some(command) = go(folder.path()) else {
        return;
    };
    keeps_the_contract(command, folder).await;
}
