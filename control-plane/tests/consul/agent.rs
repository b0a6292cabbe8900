// SPDX-License-Identifier: Apache-2.0
//! The real Consul: one agent that is its own server, with everything in memory, ended on drop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tempfile::TempDir;
use weir_needs::free_port;

/// It elects itself within a second or two where nothing else runs.
const ATTEMPTS: u32 = 1200;
const PAUSE: Duration = Duration::from_millis(50);
/// Somebody may take a port between our look and Consul's.
const STARTS: u32 = 5;

/// None, and the test skipped, without it.
pub(crate) fn program() -> Option<PathBuf> {
    weir_needs::provided_or_skip("WEIR_CONSUL")
}

/// Where an agent listens, so that another one can take its place.
#[derive(Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) http: u16,
    pub(crate) https: u16,
    pub(crate) dns: u16,
    server: u16,
    serf: u16,
}

impl Ports {
    pub(crate) fn free() -> Self {
        Self {
            http: free_port(),
            https: free_port(),
            dns: free_port(),
            server: free_port(),
            serf: free_port(),
        }
    }
}

pub(crate) struct Agent {
    child: Child,
    folder: TempDir,
    pub(crate) ports: Ports,
}

impl Agent {
    /// Starts it with these settings over the usual ones, on any ports, and waits until it has elected itself.
    pub(crate) async fn start(program: &PathBuf, settings: Value) -> Self {
        Self::start_with(program, settings, &[]).await
    }

    /// The same, with files beside its configuration, which `FOLDER` in a setting stands for.
    pub(crate) async fn start_with(
        program: &PathBuf,
        settings: Value,
        files: &[(&str, &str)],
    ) -> Self {
        for _ in 0..STARTS {
            let agent = Self::spawn(program, Ports::free(), &settings, files);
            if let Some(agent) = agent.elected().await {
                return agent;
            }
        }
        panic!("Consul did not start, {STARTS} times");
    }

    /// Ends this one, and another one with these settings takes its place: what it knew is forgotten.
    pub(crate) async fn replace(self, program: &PathBuf, settings: Value) -> Self {
        let ports = self.ports;
        drop(self);
        Self::start_at(program, ports, settings).await
    }

    /// Starts it where another one was.
    pub(crate) async fn start_at(program: &PathBuf, ports: Ports, settings: Value) -> Self {
        for _ in 0..STARTS {
            let agent = Self::spawn(program, ports, &settings, &[]);
            if let Some(agent) = agent.elected().await {
                return agent;
            }
        }
        panic!("Consul did not start again, {STARTS} times");
    }

    fn spawn(program: &PathBuf, ports: Ports, settings: &Value, files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, contents) in files {
            std::fs::write(folder.path().join(name), contents).unwrap();
        }
        let mut config = json!({
            "node_name": "node",
            "bind_addr": "127.0.0.1",
            "disable_update_check": true,
            "ports": {
                "http": ports.http, "https": ports.https, "server": ports.server, "serf_lan": ports.serf,
                "serf_wan": -1, "dns": ports.dns, "grpc": -1, "grpc_tls": -1,
            },
        });
        config
            .as_object_mut()
            .unwrap()
            .extend(settings.as_object().unwrap().clone());
        let config = config
            .to_string()
            .replace("FOLDER", folder.path().to_str().unwrap());
        let file = folder.path().join("agent.json");
        std::fs::write(&file, config).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(program);
        command
            .args(["agent", "-dev", "-log-level", "warn", "-config-file"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        Self {
            child: command.spawn().unwrap(),
            folder,
            ports,
        }
    }

    /// None where it has ended instead.
    async fn elected(mut self) -> Option<Self> {
        for _ in 0..ATTEMPTS {
            if self.child.try_wait().unwrap().is_some() {
                eprintln!("Consul has ended: {}", self.log());
                return None;
            }
            let leader = self.ask("GET", "/v1/status/leader", None, "").await;
            if leader.is_some_and(|leader| leader.contains(':')) {
                return Some(self);
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("Consul has no leader: {}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Where its API is, without TLS.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.http)
    }

    /// The body of a 200 answer.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        token: &str,
    ) -> Option<String> {
        let address = SocketAddr::from(([127, 0, 0, 1], self.ports.http));
        let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
        let request = http::Request::builder()
            .method(method)
            .uri(format!("http://{address}{path}"))
            .header("X-Consul-Token", token)
            .body(Full::new(body))
            .unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let answer = client.request(request).await.ok()?;
        let good = answer.status() == 200;
        let body = answer.into_body().collect().await.ok()?.to_bytes();
        good.then(|| String::from_utf8_lossy(&body).into_owned())
    }

    /// Changes something, until Consul takes it: right after its election it takes little.
    pub(crate) async fn put(&self, path: &str, body: Value, token: &str) -> String {
        for _ in 0..ATTEMPTS {
            if let Some(said) = self.ask("PUT", path, Some(body.clone()), token).await {
                return said;
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("Consul does not take {path}: {}", self.log());
    }

    /// Registers a service `rules` with a sidecar that is as well as the service's own check.
    pub(crate) async fn register(&self, number: u16, token: &str) {
        let id = format!("rules-{number}");
        let sidecar = json!({
            "Port": 21_000 + number,
            "Weights": { "Passing": 4, "Warning": 1 },
            "Checks": [ { "Name": "the service's", "AliasService": id } ],
        });
        let service = json!({
            "ID": id, "Name": "rules", "Address": "127.0.0.1", "Port": 9000 + number,
            "Tags": ["v2"], "Meta": { "zone": "a", "weir-metrics-port": "9100" },
            "Check": { "CheckID": format!("{id}-life"), "TTL": "1h", "Status": "passing" },
            "Connect": { "SidecarService": sidecar },
        });
        self.put("/v1/agent/service/register", service, token).await;
    }

    /// Sets the service's own check: `pass`, `warn` or `fail`.
    pub(crate) async fn set(&self, number: u16, status: &str) {
        let path = format!("/v1/agent/check/{status}/rules-{number}-life");
        self.put(&path, json!({}), "").await;
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
