// SPDX-License-Identifier: Apache-2.0
//! weir-control with nothing but a real Prometheus, which reads two hosts.

#[allow(dead_code)] // Other tests use more of it.
mod inside;
#[allow(dead_code)] // Other tests use more of it.
mod waits;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use inside::Inside;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use waits::until;
use weir_processes::http;
use weir_processes::processes::Processes;

/// Generous: what is waited for takes a few scrapes.
const LIMIT: Duration = Duration::from_secs(60);

fn program() -> Option<PathBuf> {
    weir_needs::provided_or_skip("WEIR_PROMETHEUS")
}

/// A host's page, until the guard is dropped: each time it is read, ten more jobs have waited for 50 ms.
async fn host(jobs: u32, queued: u32) -> (SocketAddr, DropGuard) {
    let reads = AtomicU32::new(0);
    let page = move || {
        let waited = 10 * reads.fetch_add(1, Ordering::Relaxed);
        let seconds = f64::from(waited) * 0.05;
        format!(
            "weir_host_in_progress {jobs}\nweir_host_queued{{priority=\"16\"}} {queued}\nweir_host_draining 0\n\
             weir_host_queuing_delay_seconds_sum {seconds}\nweir_host_queuing_delay_seconds_count {waited}\n"
        )
    };
    let page = Arc::new(page);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let gone = CancellationToken::new();
    let app = Router::new().route("/metrics", get(async move || page()));
    let (server, ended) = (axum::serve(listener, app), gone.clone());
    tokio::spawn(async move {
        tokio::select! {
            _ = server => {}
            () = ended.cancelled() => {}
        }
    });
    (address, gone.drop_guard())
}

/// A port that is free now.
fn free() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn prometheus(program: &Path, folder: &Path, targets: &[SocketAddr]) -> (Processes, SocketAddr) {
    let targets: Vec<String> = targets
        .iter()
        .map(|target| format!("\"{target}\""))
        .collect();
    let targets = targets.join(", ");
    // 300 ms is well within stale_after below.
    let config = format!(
        "global: {{ scrape_interval: 300ms, scrape_timeout: 300ms }}\n\
         scrape_configs: [ {{ job_name: hosts, static_configs: [ {{ targets: [ {targets} ] }} ] }} ]\n"
    );
    let file = folder.join("prometheus.yaml");
    std::fs::write(&file, config).unwrap();
    let address = free();
    let mut command = Command::new(program);
    command
        .arg(format!("--config.file={}", file.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.join("data").display()
        ))
        .arg(format!("--web.listen-address={address}"));
    let mut processes = Processes::new(folder.join("logs")).unwrap();
    processes.start("prometheus", command).unwrap();
    processes
        .wait_until("Prometheus' readiness", LIMIT, || {
            http::get(address, "/-/ready").ok()
        })
        .unwrap();
    (processes, address)
}

struct Control(Inside);

impl Control {
    async fn start(folder: &Path, hosts: [SocketAddr; 2], prometheus: SocketAddr) -> Self {
        let path = folder.join("weir-control.yaml");
        // The first is known by its metrics address, the second by its own.
        let text = format!(
            "xds: {{ listen: \"127.0.0.1:0\" }}\nadmin: {{ listen: \"127.0.0.1:0\" }}\n\
             clusters:\n  rules:\n    policy: {{ stale_after: 2s }}\n    hosts:\n    \
             - {{ address: \"127.0.0.2:1\", metrics_address: \"{}\" }}\n    - address: \"{}\"\n    \
             prometheus: {{ address: \"http://{prometheus}\", interval: 200ms, timeout: 30s }}\n",
            hosts[0], hosts[1]
        );
        std::fs::write(&path, text).unwrap();
        Self(inside::start(path).await)
    }

    /// What a decision sees of a host, once it is as wanted.
    async fn until_explained(&self, host: SocketAddr, is: impl Fn(&Value) -> bool) -> Value {
        until("a decision's view of the host", async || {
            let explained = self.0.page("/explain?cluster=rules&key=a").await;
            let rows = ["ranked", "others"].map(|rows| explained[rows].as_array().cloned());
            let mut rows = rows.into_iter().flatten().flatten();
            let row = rows.find(|row| row["address"] == host.to_string());
            row.filter(&is).ok_or(explained)
        })
        .await
    }

    /// The hosts, once they are as wanted.
    async fn until(&self, what: &str, is: impl Fn(&[Value; 2]) -> bool) -> [Value; 2] {
        until(what, async || {
            let tables = self.0.page("/tables").await;
            let hosts = &tables["clusters"]["rules"]["hosts"];
            // By the address, as text: 127.0.0.1 before 127.0.0.2.
            let hosts = [hosts[1].clone(), hosts[0].clone()];
            if is(&hosts) { Ok(hosts) } else { Err(tables) }
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_only_prometheus_reads_are_in_the_table_until_they_die() {
    let Some(program) = program() else { return };
    let folder = tempfile::tempdir().unwrap();
    let ((first, _first), (second, second_ends)) = (host(3, 1).await, host(5, 2).await);
    let (_processes, prometheus) = prometheus(&program, folder.path(), &[first, second]);
    let control = Control::start(folder.path(), [first, second], prometheus).await;

    let fresh = |host: &Value| host["stale"] == false && host["queuing_delay_ms"].is_number();
    let hosts = control
        .until("both hosts' figures", |hosts| hosts.iter().all(fresh))
        .await;
    for (host, jobs, queued) in [(&hosts[0], 3, 1), (&hosts[1], 5, 2)] {
        assert_eq!(host["in_progress"], jobs);
        assert_eq!(host["queued"][16], queued);
        let delay = host["queuing_delay_ms"].as_f64().unwrap();
        assert!((delay - 50.0).abs() < 0.1, "{delay}");
        assert_eq!(host["from"], "prometheus");
        assert_eq!(host["state"], "up");
    }
    let is_from = |row: &Value| row["load_from"] == "prometheus" && row["load_stale"] == false;
    control.until_explained(second, is_from).await;

    // Its series get the staleness marker, and its figures age.
    drop(second_ends);
    let hosts = control
        .until("the dead host's figures to be stale", |hosts| {
            hosts[1]["stale"] == true
        })
        .await;
    assert_eq!(hosts[0]["stale"], false);
    assert_eq!(hosts[1]["in_progress"], 5, "the last good ones");
    let complaints = hosts[1]["sources"]["prometheus"]["complaints"].to_string();
    assert!(
        complaints.contains("in_progress: no series"),
        "{complaints}"
    );
    let row = control
        .until_explained(second, |row| row["load_stale"] == true)
        .await;
    assert!(
        row["trouble"]
            .to_string()
            .contains("prometheus: in_progress: no series"),
        "{row:#}"
    );
}
