// SPDX-License-Identifier: Apache-2.0
//! A host over real sockets on port 0, one HTTP/1.1 exchange a connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use weir_executor::{Emulator, Eviction, Order, Settings, Timing};
use weir_worker::host::Host;
use weir_worker::metrics::Families;
use weir_worker::priorities::Priorities;
use weir_worker::server;
use weir_worker::server::app::App;
use weir_worker::server::emulated::{self, Model};
use weir_worker::server::faults::Faults;

/// A state that has not come by then never will. It makes a defect a failure instead of a hang.
const GIVE_UP: Duration = Duration::from_secs(120);

struct Running {
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<anyhow::Result<()>>,
}

async fn start(cores: usize, max_queued: usize, drain: Duration) -> Running {
    start_with(cores, max_queued, drain, None).await
}

async fn start_with(
    cores: usize,
    max_queued: usize,
    drain: Duration,
    faults: Option<Arc<Faults>>,
) -> Running {
    let settings = Settings {
        cores,
        cache_bytes: 1000,
        max_queued,
        change_log: 100,
        order: Order::Priority,
        eviction: Eviction::default(),
    };
    let timing = Timing {
        fetch_base: Duration::from_millis(1),
        fetch_bytes_per_second: 1_000_000,
    };
    let metrics = Families::default();
    let host = Host::start(Emulator::new(&settings, 42), metrics.clone());
    let list = ["high=0", "low=16"].map(|p| p.parse().unwrap());
    let priorities = Priorities::new(list.to_vec(), "low").unwrap();
    let model = Model {
        timing,
        default_run: Duration::from_millis(1),
        faults,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async {
        let _ = stopped.await;
    };
    let app = Arc::new(App::new(host, metrics, priorities, addr).unwrap());
    let jobs = emulated::router(Arc::clone(&app), model);
    let leaving = server::Leaving {
        notice: Duration::ZERO,
        drain,
    };
    let served = tokio::spawn(server::run(listener, app, jobs, leaving, shutdown));
    Running {
        addr,
        stop: Some(stop),
        served,
    }
}

impl Running {
    async fn send(&self, path: &str, headers: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn get(&self, path: &str, headers: &str) -> String {
        read(self.send(path, headers).await).await
    }

    /// Waits for a line of /metrics, as tests wait for states and never for times.
    async fn until_metric(&self, line: &str) {
        self.until("/metrics", line).await;
    }

    /// Waits until this is in the answer of that path.
    async fn until(&self, path: &str, wanted: &str) {
        let mut last = String::new();
        let reached = async {
            loop {
                last = self.get(path, "").await;
                if last.contains(wanted) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let reached = tokio::time::timeout(GIVE_UP, reached).await;
        assert!(
            reached.is_ok(),
            "waited in vain for {wanted:?} at {path}: {last}"
        );
    }
}

async fn read(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

const LONG: &str = "x-emulate-run-us: 3000000000\r\n";

#[tokio::test]
async fn an_answer_tells_where_the_time_went_and_how_loaded_the_host_is() {
    let host = start(2, 10, Duration::ZERO).await;
    let headers = "x-weir-key: a\r\nx-weir-priority: high\r\nx-emulate-bytes: 10\r\nx-emulate-run-us: 500\r\n";
    let first = host.get("/any/path", headers).await;
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    for line in [
        "x-worker-cache: miss\r\n",
        "x-worker-wait-us: 0\r\n",
        "x-worker-fetch-us: 1010\r\n",
        "x-worker-run-us: 500\r\n",
        &format!("x-worker-id: {}\r\n", host.addr),
        "endpoint-load-metrics: TEXT named_metrics.weir.in_progress=0,named_metrics.weir.busy_cores=0,\
         named_metrics.weir.queued.0=0,named_metrics.weir.work_seconds.0=0.000000,\
         named_metrics.weir.queued.16=0,named_metrics.weir.work_seconds.16=0.000000,\
         named_metrics.weir.queuing_delay_seconds=0.000000,request_cost.weir.run_seconds=0.000500,\
         request_cost.weir.fetch_seconds=0.001010\r\n",
    ] {
        assert!(first.contains(line), "{line} is not in {first}");
    }
    let second = host.get("/any/path", headers).await;
    assert!(second.contains("x-worker-cache: hit\r\n"), "{second}");
}

#[tokio::test]
async fn the_cache_is_told_whole_and_then_by_what_changed() {
    let host = start(2, 10, Duration::ZERO).await;
    host.get("/", "x-weir-key: a\r\n").await;
    let all = host.get("/cache", "").await;
    let expected = r#"{"version":1,"epoch":42,"reset":true,"added":["a"],"removed":[]}"#;
    assert!(all.ends_with(expected), "{all}");
    host.get("/", "x-weir-key: b\r\n").await;
    let delta = host.get("/cache?since=1&epoch=42", "").await;
    let expected = r#"{"version":2,"epoch":42,"reset":false,"added":["b"],"removed":[]}"#;
    assert!(delta.ends_with(expected), "{delta}");
    for query in ["since=1&epoch=41", "since=nonsense", "since=9", "epoch=x"] {
        let answer = host.get(&format!("/cache?{query}"), "").await;
        assert!(answer.contains(r#""reset":true"#), "{query}: {answer}");
    }
}

#[tokio::test]
async fn a_host_that_was_never_asked_tells_of_no_delay_in_every_class() {
    let host = start(1, 10, Duration::ZERO).await;
    let metrics = host.get("/metrics", "").await;
    for class in ["0", "16"] {
        let line = format!("weir_host_queuing_delay_seconds_count{{priority=\"{class}\"}} 0");
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }
}

#[tokio::test]
async fn metrics_show_every_class_and_the_queuing_delay() {
    let host = start(1, 10, Duration::ZERO).await;
    host.get("/", "x-weir-key: a\r\n").await;
    let metrics = host.get("/metrics", "").await;
    for line in [
        "weir_host_in_progress 0",
        "weir_host_queued{priority=\"0\"} 0",
        "weir_host_queued{priority=\"16\"} 0",
        "weir_host_stalled_joblets{kind=\"feed_source\"} 0",
        "weir_host_queuing_delay_seconds_sum{priority=\"16\"} 0.0",
        "weir_host_queuing_delay_seconds_count{priority=\"16\"} 1",
        "weir_host_cache_lookups_total{source=\"miss\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
}

#[tokio::test]
async fn a_malformed_header_is_answered_400_by_name() {
    let host = start(1, 10, Duration::ZERO).await;
    let answer = host.get("/", "x-emulate-run-us: soon\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(
        answer.contains("header x-emulate-run-us: is not a whole number"),
        "{answer}"
    );
    assert!(answer.contains("endpoint-load-metrics: TEXT"), "{answer}");
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_queued_job_with_it() {
    let host = start(1, 10, Duration::ZERO).await;
    let running = host.send("/", LONG).await;
    host.until_metric("weir_host_busy_cores 1").await;
    let queued = host.send("/", LONG).await;
    host.until_metric("weir_host_queued{priority=\"16\"} 1")
        .await;
    drop(queued);
    host.until_metric("weir_host_queued{priority=\"16\"} 0")
        .await;
    host.until_metric("weir_host_jobs_total{outcome=\"cancelled\"} 1")
        .await;
    drop(running);
}

#[tokio::test]
async fn one_job_too_many_is_refused_with_the_load() {
    let host = start(1, 1, Duration::ZERO).await;
    let _running = host.send("/", LONG).await;
    host.until_metric("weir_host_busy_cores 1").await;
    let _queued = host.send("/", LONG).await;
    host.until_metric("weir_host_queued{priority=\"16\"} 1")
        .await;
    let refused = host.get("/", LONG).await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(
        refused.contains("named_metrics.weir.in_progress=2"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_draining_host_is_not_ready_but_answers_until_its_last_caller_is_served() {
    let mut host = start(2, 10, Duration::from_secs(600)).await;
    let last = host.send("/", LONG).await;
    host.until_metric("weir_host_busy_cores 1").await;
    assert!(host.get("/ready", "").await.starts_with("HTTP/1.1 200"));
    host.stop.take();
    host.until("/ready", "HTTP/1.1 503").await;
    assert!(host.get("/", "").await.starts_with("HTTP/1.1 200"));
    drop(last);
    host.served.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_job_that_outlives_the_drain_is_answered_503_with_the_reason() {
    let mut host = start(1, 10, Duration::from_millis(1)).await;
    let job = host.send("/", LONG).await;
    host.until_metric("weir_host_busy_cores 1").await;
    host.stop.take();
    let answer = read(job).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(
        answer.contains("cancelled: the host is shutting down"),
        "{answer}"
    );
    host.served.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_host_notes_what_ran_and_fails_while_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let address = "127.0.0.1:7".parse().unwrap();
    let faults = Faults::open(folder.path(), address).unwrap();
    let host = start_with(2, 10, Duration::from_secs(30), Some(Arc::new(faults))).await;
    let failing = folder.path().join("127.0.0.1:7.failing");
    assert!(host.get("/", "x-emulate-id: a\r\n").await.contains(" 200 "));
    std::fs::write(&failing, "").unwrap();
    assert!(host.get("/", "x-emulate-id: b\r\n").await.contains(" 500 "));
    std::fs::remove_file(&failing).unwrap();
    // Nobody knows its id, so nobody can look for it.
    assert!(host.get("/", "").await.contains(" 200 "));
    assert!(host.get("/", "x-emulate-id: c\r\n").await.contains(" 200 "));
    let notes = std::fs::read_to_string(folder.path().join("127.0.0.1:7.executions")).unwrap();
    assert_eq!(notes, "began a\nended a\nbegan c\nended c\n");
}
