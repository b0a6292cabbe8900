// SPDX-License-Identifier: Apache-2.0
//! With all of weir-control in the test's own process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use weir_control::{Listeners, config as control};

use self::logged::Log;
use self::waits::until;
use super::*;
use crate::pressure;
use crate::sense::certificates::{Authority, Pair};

#[path = "../../../../control-plane/tests/logged/mod.rs"]
mod logged;
#[allow(dead_code)] // Other tests use more of it.
#[path = "../../../../control-plane/tests/waits/mod.rs"]
mod waits;

/// weir-control with one host, whose metrics page says what a test wants.
struct Control {
    xds: SocketAddr,
    admin: SocketAddr,
    host: SocketAddr,
    /// For how long each of the next jobs waits.
    wait: Arc<Mutex<Duration>>,
    path: PathBuf,
    _folder: tempfile::TempDir,
    running: Option<DropGuard>,
}

impl Control {
    async fn start() -> Self {
        Self::with_tls("").await
    }

    async fn of(pair: &Pair, authority: &Authority) -> Self {
        let files = [
            ("control.pem", &pair.certificate),
            ("control.key", &pair.key),
            ("ca.pem", &authority.certificate),
        ];
        let tls = "tls: { certificate: control.pem, key: control.key, client_ca: ca.pem }";
        Self::with(&files, tls).await
    }

    async fn with_tls(tls: &str) -> Self {
        Self::with(&[], tls).await
    }

    async fn with(files: &[(&str, &String)], tls: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let wait = Arc::new(Mutex::new(Duration::from_millis(3)));
        let host = page(wait.clone()).await;
        let path = folder.path().join("c.yaml");
        let text = format!(
            "xds: {{ listen: \"127.0.0.1:0\", {tls} }}\nadmin: {{ listen: \"127.0.0.1:0\" }}\n\
             clusters: {{ c: {{ hosts: [ {{ address: \"{host}\" }} ], scrape: {{ interval: 10ms }} }} }}\n"
        );
        std::fs::write(&path, text).unwrap();
        let mut control = Self {
            xds: SocketAddr::from(([127, 0, 0, 1], 0)),
            admin: SocketAddr::from(([127, 0, 0, 1], 0)),
            host,
            wait,
            path,
            _folder: folder,
            running: None,
        };
        control.run().await;
        control
    }

    /// As it was, on the same ports.
    async fn again(&mut self) {
        let text = std::fs::read_to_string(&self.path).unwrap();
        let text = text
            .replacen("127.0.0.1:0", &self.xds.to_string(), 1)
            .replacen("127.0.0.1:0", &self.admin.to_string(), 1);
        std::fs::write(&self.path, text).unwrap();
        self.run().await;
    }

    async fn run(&mut self) {
        let loaded = control::load(&self.path)
            .map_err(|(error, _)| error)
            .unwrap();
        let listeners = Listeners::bind(&loaded.config).await.unwrap();
        self.xds = listeners.xds.local_addr().unwrap();
        self.admin = listeners.admin.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let running = weir_control::run(
            self.path.clone(),
            loaded,
            listeners,
            Default::default(),
            shutdown.clone(),
        );
        tokio::spawn(running);
        self.running = Some(shutdown.drop_guard());
    }

    /// Waits until its table has this capacity.
    async fn until_capacity(&self, millicores: u64) {
        until(&format!("a capacity of {millicores}"), async || {
            let page = crate::get::get(self.admin, "/tables").await.unwrap();
            let tables: Value = serde_json::from_str(&page).unwrap();
            let host = &tables["clusters"]["c"]["hosts"][0];
            let is = host["capacity_millicores"] == millicores;
            is.then_some(()).ok_or_else(|| host.clone())
        })
        .await;
    }

    fn mesh(&self) -> config::Mesh {
        mesh(format!("http://{}", self.xds), self.host)
    }

    /// With certificates: as this one, who trusts that authority.
    fn secure(&self, pair: Option<&Pair>, authority: &Authority) -> config::Mesh {
        let bytes = |text: &String| text.clone().into_bytes();
        config::Mesh {
            control: format!("https://localhost:{}", self.xds.port()),
            trust: config::Trust {
                authority: Some(bytes(&authority.certificate)),
                identity: pair.map(|pair| (bytes(&pair.certificate), bytes(&pair.key))),
                ..config::Trust::default()
            },
            ..self.mesh()
        }
    }
}

fn mesh(control: String, host: SocketAddr) -> config::Mesh {
    config::Mesh {
        control,
        trust: config::Trust::default(),
        cluster: "c".to_owned(),
        host: host.to_string(),
        pressure: pressure::Params::default(),
    }
}

/// A host's page of metrics, on which ten more jobs have run each time.
async fn page(wait: Arc<Mutex<Duration>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let sums = Arc::new(Mutex::new((0, 0.0)));
    let page = async move || {
        let mut sums = sums.lock().unwrap();
        let wait = wait.lock().unwrap().as_secs_f64();
        *sums = (sums.0 + 10, sums.1 + 10.0 * wait);
        let (jobs, waited) = *sums;
        format!(
            "weir_host_in_progress 1\nweir_host_queued 0\n\
             weir_host_queuing_delay_seconds_sum {waited}\n\
             weir_host_queuing_delay_seconds_count {jobs}\n"
        )
    };
    let app = axum::Router::new().route("/metrics", axum::routing::get(page));
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// A governor's side, until it goes out of scope.
struct Governor {
    link: Link,
    task: tokio::task::JoinHandle<()>,
}

impl Governor {
    fn start(mesh: config::Mesh, capacity: u32) -> Self {
        let link = Link::default();
        link.report(capacity);
        let task = tokio::spawn(connect(mesh, link.clone()));
        Self { link, task }
    }

    async fn until(&self, what: &str, is: impl Fn(&Row) -> bool) -> Row {
        until(what, async || {
            let row = self.link.row();
            row.filter(&is).ok_or_else(|| format!("{row:?}"))
        })
        .await
    }
}

impl Drop for Governor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Why there is no stream; that there is none.
async fn trouble(mesh: &config::Mesh) -> Trouble {
    let link = Link::default();
    link.report(1);
    let answered = || panic!("answered");
    talk(
        endpoint(&mesh.control, &mesh.trust).unwrap().connect(),
        mesh,
        &link,
        answered,
    )
    .await
}

#[tokio::test]
async fn both_sides_hear_of_each_change() {
    let control = Control::start().await;
    let governor = Governor::start(control.mesh(), 1500);
    let waited = |ms| move |row: &Row| row.delay == Some(Duration::from_millis(ms));
    let calm = governor.until("a short delay", waited(3)).await;
    assert!(!calm.refuses);
    assert!(calm.at <= super::super::now());
    control.until_capacity(1500).await;
    governor.link.report(500);
    control.until_capacity(500).await;
    *control.wait.lock().unwrap() = Duration::from_millis(250);
    let busy = governor.until("a long delay", waited(250)).await;
    assert!(busy.at > calm.at);
}

#[test]
fn weir_control_is_asked_from_the_first_capacity_on() {
    Log::of(|log| {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let control = Control::start().await;
            let link = Link::default();
            let task = tokio::spawn(connect(control.mesh(), link.clone()));
            // It has its turn.
            tokio::task::yield_now().await;
            link.report(700);
            control.until_capacity(700).await;
            // It may be told before it is answered.
            until("a row", async || link.row().ok_or("none")).await;
            task.abort();
        });
        // No capacity at all is refused, and that is told before the next attempt.
        let log = messages(log);
        let refused = log.iter().find(|line| line.contains("refuses"));
        assert_eq!(refused, None, "{log:#?}");
        assert!(log.contains(&"INFO weir-control answers".to_owned()));
    });
}

#[tokio::test]
async fn a_weir_control_that_comes_back_is_found_again() {
    let mut control = Control::start().await;
    let governor = Governor::start(control.mesh(), 1500);
    let is_connected = async |connected: bool| {
        until("the end or the beginning of a stream", async || {
            let is_so = governor.link.is_connected() == connected;
            is_so.then_some(()).ok_or("not yet")
        })
        .await;
    };
    assert!(!governor.link.is_connected());
    governor.until("a row", |_| true).await;
    is_connected(true).await;
    control.running = None;
    is_connected(false).await;
    until("that nobody listens", async || {
        let connected = tokio::net::TcpStream::connect(control.xds).await;
        connected.err().ok_or("a listener")
    })
    .await;
    let last = governor.link.row();
    control.again().await;
    governor
        .until("a newer row", |row| Some(*row) != last)
        .await;
    is_connected(true).await;
    control.until_capacity(1500).await;
}

#[tokio::test]
async fn certificates_of_the_authority_are_taken_both_ways() {
    let authority = Authority::new();
    let control = Control::of(&authority.sign("localhost"), &authority).await;
    let ours = authority.sign("governor-1");
    let governor = Governor::start(control.secure(Some(&ours), &authority), 1500);
    governor.until("a row", |_| true).await;
    control.until_capacity(1500).await;
}

#[tokio::test]
async fn a_weir_control_of_another_authority_or_name_is_refused_and_the_reason_said() {
    let (authority, other) = (Authority::new(), Authority::new());
    let ours = authority.sign("governor-1");
    for (pair, reason) in [
        (other.sign("localhost"), "invalid peer certificate"),
        (
            authority.sign("someone-else"),
            "not valid for name \"localhost\"",
        ),
    ] {
        let control = Control::of(&pair, &authority).await;
        let trouble = trouble(&control.secure(Some(&ours), &authority)).await;
        assert!(trouble.to_string().contains(reason), "{trouble}");
        assert!(trouble.mends_itself());
    }
}

#[tokio::test]
async fn a_governor_that_shows_nothing_or_another_authoritys_certificate_is_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    let control = Control::of(&authority.sign("localhost"), &authority).await;
    let another = other.sign("governor-1");
    for pair in [None, Some(&another)] {
        // An alert, or a connection that is gone before it is read.
        trouble(&control.secure(pair, &authority)).await;
    }
}

#[tokio::test]
async fn what_an_operator_has_to_do_is_said() {
    let control = Control::start().await;
    let nobody = mesh(
        format!("http://{}", control.xds),
        SocketAddr::from(([127, 0, 0, 1], 9)),
    );
    let trouble = trouble(&nobody).await;
    assert!(!trouble.mends_itself());
    assert_eq!(
        trouble.to_string(),
        "no host \"127.0.0.1:9\" in a cluster \"c\": mesh.cluster and mesh.host have to be as in its configuration"
    );
}

#[tokio::test]
async fn a_weir_control_that_does_not_know_nodes_is_told_from_one_that_is_gone() {
    let (updates, _kept) = mpsc::channel(1);
    let limits = weir_control::config::ReportLimits {
        max_proxies: 1,
        max_vms: 1,
        max_rows: 1,
        max_waiting_bytes: 1 << 20,
        forget_after: Duration::from_secs(60),
    };
    let metrics = weir_control::metrics::Metrics::default();
    let shutdown = CancellationToken::new();
    let reports = weir_control::reports::Service::server(updates, limits, metrics, shutdown);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tonic::transport::Server::builder().add_service(reports);
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    let server = tokio::spawn(server.serve_with_incoming(incoming));
    let mesh = mesh(format!("http://{address}"), address);
    let older = trouble(&mesh).await;
    assert!(!older.mends_itself());
    assert!(older.to_string().ends_with("update it"), "{older}");
    server.abort();
    let _ = server.await;
    let gone = trouble(&mesh).await;
    assert!(gone.mends_itself());
    assert!(gone.to_string().contains("refused"), "{gone}");
}

#[tokio::test]
async fn the_older_of_two_governors_of_a_host_is_told() {
    let control = Control::start().await;
    let (mesh, link) = (control.mesh(), Link::default());
    link.report(1);
    let endpoint = endpoint(&mesh.control, &mesh.trust).unwrap();
    let (answered, was) = tokio::sync::oneshot::channel();
    let older = talk(endpoint.connect(), &mesh, &link, || {
        answered.send(()).unwrap();
    });
    let newer = async {
        was.await.unwrap();
        Governor::start(control.mesh(), 2)
    };
    let (trouble, _newer) = tokio::join!(older, newer);
    assert!(!trouble.mends_itself());
    assert!(
        trouble.to_string().contains("another governor"),
        "{trouble}"
    );
}

/// The lines since the last call, without fields.
fn messages(log: &Log) -> Vec<String> {
    let message = |line: &String| line.split(" control=").next().unwrap().trim().to_owned();
    log.lines().iter().map(message).collect()
}

#[test]
fn each_change_is_logged_once() {
    let mesh = mesh("http://x".to_owned(), SocketAddr::from(([127, 0, 0, 1], 9)));
    let gone = || Trouble::Unreachable("refused".to_owned());
    let unknown = || Trouble::from(tonic::Status::not_found("no host"));
    Log::of(|log| {
        let mut said = Said::default();
        let twice = |said: &mut Said, trouble: &dyn Fn() -> Trouble| {
            let connected = [(); 2].map(|()| said.ended(&mesh, &trouble()));
            (connected, messages(log))
        };
        let silent = vec!["WARN weir-control does not answer".to_owned()];
        assert_eq!(twice(&mut said, &gone), ([false; 2], silent));
        let refuses = vec!["WARN weir-control refuses".to_owned()];
        assert_eq!(twice(&mut said, &unknown), ([false; 2], refuses.clone()));
        said.answered(&mesh);
        assert_eq!(messages(log), ["INFO weir-control answers"]);
        let lost = vec!["INFO weir-control is lost".to_owned()];
        assert_eq!(twice(&mut said, &gone), ([true, false], lost));
        said.answered(&mesh);
        messages(log);
        assert_eq!(twice(&mut said, &unknown), ([true, false], refuses));
    });
}

/// A way to one that takes whatever comes.
struct Silent(Option<DuplexStream>);

impl Service<Uri> for Silent {
    type Response = TokioIo<DuplexStream>;
    type Error = std::io::Error;
    type Future = std::future::Ready<std::io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let stream = self.0.take().map(TokioIo::new);
        std::future::ready(stream.ok_or(std::io::ErrorKind::NotConnected.into()))
    }
}

/// Time passes as fast as it can: no bytes are in a kernel meanwhile.
#[tokio::test(start_paused = true)]
async fn one_that_takes_connections_and_says_nothing_is_given_up() {
    let (governor, _control) = tokio::io::duplex(1 << 16);
    let host = SocketAddr::from(([127, 0, 0, 1], 9));
    let mesh = mesh("http://control".to_owned(), host);
    let endpoint = endpoint(&mesh.control, &mesh.trust).unwrap();
    let channel = endpoint.connect_with_connector(Silent(Some(governor)));
    let link = Link::default();
    link.report(1);
    let trouble = talk(channel, &mesh, &link, || panic!("answered")).await;
    assert!(matches!(trouble, Trouble::Silent(PATIENCE)), "{trouble}");
}

#[test]
fn what_cannot_be_a_server_is_refused() {
    for control in ["", "http://", "not a server", "https://\u{7f}"] {
        assert!(
            endpoint(control, &config::Trust::default()).is_err(),
            "{control}"
        );
    }
    let secure = |authority, identity| {
        let trust = config::Trust {
            authority,
            identity,
            ..config::Trust::default()
        };
        endpoint("https://localhost:1", &trust)
    };
    let authority = Some(Authority::new().certificate.into_bytes());
    assert!(secure(authority.clone(), None).is_ok());
    let reason = secure(None, None).unwrap_err();
    assert!(reason.starts_with("mesh.authority: required"), "{reason}");
    let garbage = Some((b"x".to_vec(), b"y".to_vec()));
    assert!(secure(authority, garbage).is_err());
}

proptest! {
    #[test]
    fn no_row_is_too_odd(admission_level: u32, queuing_delay_us: Option<u64>, age_ms: Option<u32>, now: u64) {
        let message = HostRow { admission_level, queuing_delay_us, age_ms };
        let row = row(&message, Nanos(now));
        prop_assert_eq!(row.is_some(), age_ms.is_some());
        let link = Link::default();
        link.said(row);
        if let Some(row) = row {
            prop_assert!(row.at.0 <= now);
            prop_assert_eq!(row.refuses, admission_level < 4096);
            prop_assert!(link.row().is_some());
        }
    }
}

#[test]
fn the_longest_delay_and_the_highest_level_are_a_row() {
    let message = HostRow {
        admission_level: u32::MAX,
        queuing_delay_us: Some(u64::MAX),
        age_ms: Some(u32::MAX),
    };
    let row = row(&message, Nanos(1)).unwrap();
    assert_eq!((row.at, row.refuses), (Nanos(0), false));
    assert_eq!(row.delay, Some(Duration::from_micros(u64::MAX)));
}
