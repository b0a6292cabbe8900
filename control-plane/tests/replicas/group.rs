// SPDX-License-Identifier: Apache-2.0
//! weir-control as processes that know of each other by Consul.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::config::{merge, write};
use crate::http;
use crate::process::{CONTROL, Process};
use crate::waits::until;

/// Consul frees the lock of a frozen leader after 20 s, and the machine is busy with other tests.
const LOOKS: usize = 4_500;
const PAUSE: Duration = Duration::from_millis(20);

/// A follower puts down no leader that is younger, and to spare.
pub(crate) const GROWN_MS: u64 = 6_000;

pub(crate) struct Replica {
    pub(crate) name: String,
    pub(crate) xds: SocketAddr,
    admin: SocketAddr,
    process: Process,
    folder: TempDir,
}

impl Replica {
    /// One of those with a lock in the Consul at this URL, with changes of its configuration. Absent: of none.
    pub(crate) fn start(consul: Option<&str>, name: &str, change: Value) -> Self {
        let mut config = json!({
            "xds": { "listen": "127.0.0.1:0" },
            "admin": { "listen": "127.0.0.1:0" },
            "clusters": { "rules": {
                "policy": { "stale_after": "1500ms" },
                "hosts": [ { "address": "127.0.0.1:1" }, { "address": "127.0.0.1:2" } ],
            } },
        });
        if let Some(consul) = consul {
            config["replicas"] = json!({
                "consul": { "address": consul }, "address": "127.0.0.1:0", "name": name,
            });
        }
        merge(&mut config, change);
        Self::with(name, &config)
    }

    /// One with this configuration.
    pub(crate) fn with(name: &str, config: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "c.yaml", config);
        let ports = folder.path().join("ports");
        let mut command = Command::new(CONTROL);
        command.arg("--config").arg(folder.path().join("c.yaml"));
        command.arg("--ports-file").arg(&ports);
        let mut process = Process::start(&mut command, &folder.path().join("log"));
        process.until_ports(&ports, &folder.path().join("log"));
        let ports: Value = serde_json::from_slice(&std::fs::read(ports).unwrap()).unwrap();
        let port = |name: &str| ports[name].as_str().unwrap().parse().unwrap();
        Self {
            name: name.to_owned(),
            xds: port("xds"),
            admin: port("admin"),
            process,
            folder,
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Waits until its process has ended.
    pub(crate) async fn ends(&mut self) {
        until("its end", async || {
            self.process
                .has_ended()
                .then_some(())
                .ok_or_else(|| self.log())
        })
        .await;
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub(crate) async fn page(&self, path: &str) -> Option<(u16, String)> {
        http::get(self.admin, path).await
    }

    /// What a look finds, in the end; until then it says what it waits for and what is there instead.
    async fn found<T>(&self, look: impl AsyncFn() -> Result<T, String>) -> T {
        let mut missing = String::new();
        for _ in 0..LOOKS {
            match look().await {
                Ok(found) => return found,
                Err(what) => missing = what,
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!(
            "{}: waited in vain for {missing}\n{}",
            self.name,
            self.log()
        );
    }

    /// `/tables`, once it looks like this.
    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        self.found(async || {
            let (_, page) = self.page("/tables").await.ok_or(what)?;
            let page = serde_json::from_str(&page).unwrap();
            if is(&page) {
                return Ok(page);
            }
            Err(format!("{what}: {page:#}"))
        })
        .await
    }

    /// Waits until it leads by the lock; its index.
    pub(crate) async fn leads(&self) -> u64 {
        let leads = |page: &Value| page["replica"]["role"] == "leading" && index(page) > 0;
        index(&self.until("the lead", leads).await)
    }

    /// Waits until it follows that one, and has its tables.
    pub(crate) async fn follows(&self, leader: &Replica) {
        let is = |page: &Value| page["replica"]["leader"]["name"] == *leader.name;
        self.until("another one's lead", is).await;
        self.ready().await;
    }

    /// Waits until `/ready` says so.
    pub(crate) async fn ready(&self) {
        self.found(async || match self.page("/ready").await {
            Some((200, _)) => Ok(()),
            other => Err(format!("/ready: {other:?}")),
        })
        .await;
    }

    /// Waits until `/ready` gives this reason against it.
    pub(crate) async fn unready(&self, why: &str) {
        self.found(async || match self.page("/ready").await {
            Some((503, page)) if page.contains(why) => Ok(()),
            other => Err(format!("/ready, {why:?}: {other:?}")),
        })
        .await;
    }

    /// Waits until its log holds this.
    pub(crate) async fn says(&self, what: &str) {
        self.found(async || match self.log().contains(what) {
            true => Ok(()),
            false => Err(format!("{what:?} in its log")),
        })
        .await;
    }

    /// Waits until it has led for so long that followers put it down.
    pub(crate) async fn is_grown(&self) {
        let grown = |page: &Value| page["replica"]["since_ms"].as_u64() >= Some(GROWN_MS);
        self.until("its age", grown).await;
    }

    /// A metric's value.
    pub(crate) async fn metric(&self, name: &str) -> Option<f64> {
        let (_, page) = self.page("/metrics").await?;
        crate::world::sum(&page, name)
    }

    /// Waits until a metric has this value.
    pub(crate) async fn counts(&self, name: &str, value: f64) {
        self.found(async || match self.metric(name).await {
            Some(now) if now == value => Ok(()),
            other => Err(format!("{name} at {value}, it is {other:?}")),
        })
        .await;
    }
}

pub(crate) fn index(page: &Value) -> u64 {
    page["replica"]["lock_index"].as_u64().unwrap_or_default()
}

/// So many, each following the first.
pub(crate) async fn group(consul: &str, names: &[&str]) -> Vec<Replica> {
    let mut replicas: Vec<Replica> = Vec::new();
    for name in names {
        let replica = Replica::start(Some(consul), name, json!({}));
        match replicas.first() {
            None => drop(replica.leads().await),
            Some(first) => replica.follows(first).await,
        }
        replicas.push(replica);
    }
    replicas
}
