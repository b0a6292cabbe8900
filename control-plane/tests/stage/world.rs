// SPDX-License-Identifier: Apache-2.0
//! weir-control, hosts and a sidecar.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, MutexGuard};

use crate::client::{Answer, Caller, keyed};
use crate::config::{self, merge, write};
use crate::process::{self, Process};
use crate::sidecar::Sidecar;
use crate::{http, tools};

/// One world at a time: they would starve each other of processor time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Looks, every 50 ms, before a wait is in vain.
const LOOKS: usize = 1_200;

/// An emulated host, alive or dead.
pub(crate) struct Worker {
    pub(crate) address: SocketAddr,
    options: Vec<String>,
    process: Option<Process>,
}

impl Worker {
    fn start(&mut self, folder: &Path) {
        let mut command = Command::new(process::worker_program());
        command
            .args(["--emulate", "--listen", &self.address.to_string()])
            .args(&self.options);
        let log = folder.join(format!("host-{}.log", self.address.port()));
        self.process = Some(Process::start(&mut command, &log));
    }

    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_none_or(Process::has_ended)
    }

    /// Asks it to leave.
    pub(crate) fn terminate(&self) {
        self.process.as_ref().unwrap().signal("TERM");
    }
}

pub(crate) struct World {
    // Dropped in this order: the sidecar first, so that it does not fill its log on the way.
    pub(crate) sidecar: Sidecar,
    pub(crate) egress: SocketAddr,
    pub(crate) control: Option<Process>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) config: Value,
    pub(crate) xds: SocketAddr,
    bootstrap: &'static str,
    /// Of the sidecars, where one can take over from another.
    base_id: Option<BaseId>,
    filter: PathBuf,
    folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// The parts of a world.
pub(crate) struct Plan {
    workers: usize,
    options: Vec<String>,
    hosts: Vec<Value>,
    change: Value,
    filter: PathBuf,
    tls: Option<Tls>,
    hot_restarts: bool,
}

/// That the sidecar is in; hosts are in none unless their rows say so.
pub(crate) const ZONE: &str = "near";

/// So long an older Envoy asks its callers to leave; it ends after three times that. Until then the newer one
/// has to have its filter, which a busy machine is long about.
const DRAIN_SECONDS: u32 = 5;

/// The number that tells Envoys apart which may take over from each other.
struct BaseId(u32);

impl Drop for BaseId {
    /// Envoy leaves the memory that its epochs share.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(format!("/dev/shm/envoy_shared_memory_{}", self.0 * 10));
    }
}

/// Files of certificates by name, as `bootstrap-tls.yaml` names them; `control.pem` and `.key` are
/// weir-control's.
pub(crate) type Tls = Vec<(&'static str, String)>;

impl Plan {
    /// Emulated hosts.
    pub(crate) fn workers(workers: usize, options: &[&str]) -> Self {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let (hosts, change, filter) = (Vec::new(), json!({}), tools::filter());
        let (tls, hot_restarts) = (None, false);
        Self {
            workers,
            options,
            hosts,
            change,
            filter,
            tls,
            hot_restarts,
        }
    }

    /// Hosts that are there already, which nobody polls.
    pub(crate) fn hosts(hosts: Vec<Value>) -> Self {
        let unpolled = json!({"clusters": {"rules": {"scrape": null, "cache": null}}});
        let plan = Self::workers(0, &[]).with(unpolled);
        Self { hosts, ..plan }
    }

    /// Merges over weir-control's configuration.
    pub(crate) fn with(mut self, change: Value) -> Self {
        merge(&mut self.change, change);
        self
    }

    pub(crate) fn filter(self, filter: PathBuf) -> Self {
        Self { filter, ..self }
    }

    /// The sidecar reaches weir-control by TLS in both directions.
    pub(crate) fn tls(self, files: Tls) -> Self {
        let tls = json!({"xds": {"tls": {
            "certificate": "control.pem", "key": "control.key", "client_ca": "ca.pem",
        }}});
        let plan = self.with(tls);
        Self {
            tls: Some(files),
            ..plan
        }
    }

    /// The sidecar listens on a port of its own, which it can hand over ([`World::hot_restart`]).
    pub(crate) fn hot_restarts(self) -> Self {
        let address = process::free_address();
        let listener = json!({"name": "egress", "address": address, "cluster": "rules"});
        let plan = self.with(json!({"standalone": {"listeners": [listener]}}));
        Self {
            hot_restarts: true,
            ..plan
        }
    }

    /// Starts everything and waits until tables decide.
    pub(crate) async fn start(self) -> World {
        let turn = ONE_AT_A_TIME.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let xds = process::free_address();
        let worker = |_| Worker {
            address: process::free_address(),
            options: self.options.clone(),
            process: None,
        };
        let mut workers: Vec<Worker> = (0..self.workers).map(worker).collect();
        for worker in &mut workers {
            worker.start(folder.path());
        }
        let mut config = config::base(xds, &self.filter);
        merge(&mut config, self.change);
        let mut hosts = self.hosts;
        hosts.extend(
            workers
                .iter()
                .map(|worker| json!({"address": worker.address})),
        );
        write(folder.path(), "hosts.yaml", &Value::Array(hosts));
        write(folder.path(), "weir-control.yaml", &config);
        for (name, pem) in self.tls.iter().flatten() {
            std::fs::write(folder.path().join(name), pem).unwrap();
        }
        let control = Some(start_control(folder.path(), CONTROL));
        let bootstrap = match self.tls {
            Some(_) => "standalone/bootstrap-tls.yaml",
            None => "standalone/bootstrap.yaml",
        };
        let base_id = folder.path().join("base-id");
        let mut options = match self.hot_restarts {
            true => vec![
                "--use-dynamic-base-id".to_owned(),
                "--base-id-path".to_owned(),
                base_id.display().to_string(),
                "--drain-time-s".to_owned(),
                DRAIN_SECONDS.to_string(),
            ],
            false => vec!["--disable-hot-restart".to_owned()],
        };
        options.extend(["--service-zone".to_owned(), ZONE.to_owned()]);
        let sidecar = start_sidecar(xds, bootstrap, folder.path(), &options).await;
        let base_id = self.hot_restarts.then(|| {
            let text = std::fs::read_to_string(base_id).unwrap();
            BaseId(text.trim().parse().unwrap())
        });
        let egress = sidecar.listener("egress").await;
        let world = World {
            sidecar,
            egress,
            control,
            workers,
            config,
            xds,
            bootstrap,
            base_id,
            filter: self.filter,
            folder,
            _turn: turn,
        };
        world.until_tables_decide().await;
        world
    }
}

impl World {
    /// A connection to the sidecar, and so one of its threads.
    pub(crate) async fn connect(&self) -> SendRequest<Full<Bytes>> {
        let connection = TcpStream::connect(self.egress).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(connection)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller::new(self.egress)
    }

    /// Waits until requests are decided by a table that names a host, be it one without such a path; in each of the
    /// sidecar's workers, of which one gets all of a connection's requests.
    pub(crate) async fn until_tables_decide(&self) {
        let decided = async || {
            Caller::is_decided_by_tables(self.egress)
                .await
                .then_some(())
        };
        self.until("a table", decided).await;
    }

    /// Changes weir-control's configuration file.
    pub(crate) fn configure(&mut self, change: Value) {
        merge(&mut self.config, change);
        write(self.folder.path(), "weir-control.yaml", &self.config);
    }

    /// Writes the hosts file.
    pub(crate) fn set_hosts(&self, hosts: &[SocketAddr]) {
        let hosts: Vec<Value> = hosts
            .iter()
            .map(|address| json!({"address": address}))
            .collect();
        write(self.folder.path(), "hosts.yaml", &json!(hosts));
    }

    /// Leaves the hosts file there, with nothing in it.
    pub(crate) fn empty_hosts_file(&self) {
        std::fs::write(self.folder.path().join("hosts.yaml"), "").unwrap();
    }

    /// Puts a file in the place of another one.
    pub(crate) fn replace(&self, name: &str, contents: &str) {
        let new = self.folder.path().join(format!("{name}.new"));
        std::fs::write(&new, contents).unwrap();
        std::fs::rename(new, self.folder.path().join(name)).unwrap();
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.workers.iter().map(|worker| worker.address).collect()
    }

    pub(crate) fn start_worker(&mut self, index: usize) {
        self.workers[index].start(self.folder.path());
    }

    /// weir-control again, on the same port.
    pub(crate) fn start_control(&mut self) {
        self.control = Some(start_control(self.folder.path(), CONTROL));
    }

    /// Another weir-control beside the one there is, on another port.
    pub(crate) fn start_second_control(&self, xds: SocketAddr) -> Process {
        self.configure_second(xds, json!({}));
        start_control(self.folder.path(), SECOND)
    }

    /// Its configuration: the first one's with a change.
    pub(crate) fn configure_second(&self, xds: SocketAddr, change: Value) {
        let mut config = self.config.clone();
        merge(&mut config, json!({"xds": {"listen": xds}}));
        merge(&mut config, change);
        write(self.folder.path(), &format!("{SECOND}.yaml"), &config);
    }

    /// Another sidecar, which has both weir-controls as endpoints.
    pub(crate) async fn start_sidecar_of_both(&self, second: SocketAddr) -> Sidecar {
        let both = [self.xds, second];
        let replace = [
            ("id: sidecar-1", "id: sidecar-2"),
            ("port_value: 9901", "port_value: 0"),
        ];
        let config = config::bootstrap_of_both(both, &replace);
        Sidecar::start_with(&config, 2).await
    }

    /// Another sidecar, whose cluster has all of the filter and not the policy that reads what it says.
    pub(crate) async fn start_sidecar_that_ignores_choices(&self, hosts: &[SocketAddr]) -> Sidecar {
        let port = format!("port_value: {}", self.xds.port());
        let endpoint = |host: &SocketAddr| {
            let port = host.port();
            json!({"endpoint": {"address": {"socket_address": {
                "address": "127.0.0.1", "port_value": port,
            }}}})
        };
        let endpoints = json!(hosts.iter().map(endpoint).collect::<Vec<_>>());
        let replace = [
            ("id: sidecar-1", "id: sidecar-2"),
            ("port_value: 9901", "port_value: 0"),
            ("port_value: 15001", "port_value: 0"),
            ("port_value: 18000", &*port),
            ("/etc/weir/weir_filter.wasm", self.filter.to_str().unwrap()),
            (
                "\"control_cluster\":",
                "\"debug\": true, \"control_cluster\":",
            ),
        ];
        let config = tools::envoy_config("static/envoy.yaml", &replace);
        let (before, rest) = config.split_once("      load_balancing_policy:").unwrap();
        let (_, rest) = rest.split_once("      # WEIR 5").unwrap();
        let (rules, _) = rest.split_once("          - lb_endpoints:").unwrap();
        let (_, control) = rest.split_once("    # WEIR 7").unwrap();
        let config = format!(
            "{before}      # WEIR 5{rules}          - lb_endpoints: {endpoints}\n    # WEIR 7{control}"
        );
        Sidecar::start_with(&config, 2).await
    }

    /// Another sidecar in place of the one that there was, which is killed.
    pub(crate) async fn restart_sidecar(&mut self) {
        self.sidecar.kill();
        let alone = ["--disable-hot-restart".to_owned()];
        self.sidecar = start_sidecar(self.xds, self.bootstrap, self.folder.path(), &alone).await;
        self.egress = self.sidecar.listener("egress").await;
    }

    /// Another sidecar that takes over the port of the one there is, which is returned: it drains and then
    /// ends by itself.
    pub(crate) async fn hot_restart(&mut self, epoch: u32) -> Sidecar {
        let base_id = self.base_id.as_ref().unwrap().0;
        let options = [
            ("--base-id", base_id),
            ("--restart-epoch", epoch),
            ("--drain-time-s", DRAIN_SECONDS),
            ("--parent-shutdown-time-s", 3 * DRAIN_SECONDS),
        ];
        let options = options.map(|(name, value)| [name.to_owned(), value.to_string()]);
        let folder = self.folder.path();
        let next = start_sidecar(self.xds, self.bootstrap, folder, options.as_flattened()).await;
        std::mem::replace(&mut self.sidecar, next)
    }

    /// Sum over all lines of weir-control's metrics that begin so.
    pub(crate) async fn control_metric(&self, start: &str) -> Option<f64> {
        let (_, page) = http::get(self.admin()?, "/metrics").await?;
        sum(&page, start)
    }

    /// weir-control's view of everything.
    pub(crate) async fn tables(&self) -> Option<Value> {
        serde_json::from_str(&self.page("/tables").await?).ok()
    }

    /// A page of weir-control.
    pub(crate) async fn page(&self, path: &str) -> Option<String> {
        let (_, page) = http::get(self.admin()?, path).await?;
        Some(page)
    }

    fn admin(&self) -> Option<SocketAddr> {
        let ports = std::fs::read(self.folder.path().join("weir-control.ports")).ok()?;
        let ports: Value = serde_json::from_slice(&ports).ok()?;
        ports["admin"].as_str()?.parse().ok()
    }

    /// Sum over all lines of Envoy's metrics that begin so.
    pub(crate) async fn envoy_metric(&self, start: &str) -> Option<f64> {
        sum(&self.sidecar.page("/stats/prometheus").await?, start)
    }

    /// Asks again and again until there is an answer.
    pub(crate) async fn until<T>(&self, what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
        for _ in 0..LOOKS {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let control = std::fs::read_to_string(self.folder.path().join("weir-control.log"));
        let control = control.unwrap_or_default();
        panic!(
            "waited in vain for {what}\n{control}\n{}",
            self.sidecar.log()
        );
    }

    /// Waits until Envoy's metric is this.
    pub(crate) async fn until_envoy(&self, start: &str, wanted: impl Fn(f64) -> bool) {
        let reached = async || {
            self.envoy_metric(start)
                .await
                .filter(|value| wanted(*value))
        };
        self.until(start, reached).await;
    }

    /// Waits until weir-control's metric is this.
    pub(crate) async fn until_control(&self, start: &str, wanted: impl Fn(f64) -> bool) {
        let reached = async || {
            self.control_metric(start)
                .await
                .filter(|value| wanted(*value))
        };
        self.until(start, reached).await;
    }

    /// Changes how hosts are chosen and waits until a request is decided so: proof that tables arrive.
    pub(crate) async fn prove_tables_arrive(&mut self, selection: &str, reason: &str) {
        self.configure(config::select(selection));
        let caller = self.caller();
        let arrived = async || {
            let answer: Answer = caller.send("/", &keyed(0)).await;
            (answer.reason == reason).then_some(())
        };
        self.until(reason, arrived).await;
    }
}

/// Names of weir-control's files.
const CONTROL: &str = "weir-control";
const SECOND: &str = "second";

fn start_control(folder: &Path, name: &str) -> Process {
    let file = |kind: &str| folder.join(format!("{name}.{kind}"));
    let ports = file("ports");
    let _ = std::fs::remove_file(&ports);
    let mut command = Command::new(process::CONTROL);
    command.arg("--config").arg(file("yaml"));
    command.arg("--ports-file").arg(&ports);
    let mut process = Process::start(&mut command, &file("log"));
    process.until_ports(&ports, &file("log"));
    process
}

async fn start_sidecar(
    xds: SocketAddr,
    bootstrap: &str,
    folder: &Path,
    options: &[String],
) -> Sidecar {
    let port = format!("port_value: {}", xds.port());
    let replace = [
        ("port_value: 18000", &*port),
        ("port_value: 9901", "port_value: 0"),
    ];
    let config = tools::envoy_config(bootstrap, &replace);
    let config = config.replace("/etc/weir", folder.to_str().unwrap());
    Sidecar::launch(&config, 2, options).await
}

/// The sum of a page's metrics whose lines begin so; none if there is no such line.
pub(crate) fn sum(page: &str, start: &str) -> Option<f64> {
    let lines = page.lines().map(renamed);
    let values = lines
        .filter(|line| line.starts_with(start))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    values.reduce(|sum, value| sum + value)
}

/// Envoys before 1.39 have the filter's metrics among those of the cluster whose attempts it looks after: as newer ones
/// have them.
fn renamed(line: &str) -> Cow<'_, str> {
    let as_now = || {
        let (name, rest) = line
            .strip_prefix("envoy_cluster_wasmcustom_")?
            .split_once('{')?;
        let (labels, count) = rest.split_once('}')?;
        let labels = labels.split(',');
        let own = labels.filter(|label| !label.starts_with("envoy_cluster_name="));
        let own: Vec<_> = own.collect();
        Some(match own.as_slice() {
            [] => format!("{name}{count}"),
            own => format!("{name}{{{}}}{count}", own.join(",")),
        })
    };
    as_now().map_or(Cow::Borrowed(line), Cow::Owned)
}
