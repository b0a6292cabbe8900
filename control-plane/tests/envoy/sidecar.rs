// SPDX-License-Identifier: Apache-2.0
//! A real Envoy, ended on drop.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::http;
use crate::tools::{self, shell};

/// Envoy compiles the filter first, on a machine that is busy with other tests.
const ATTEMPTS: u32 = 3_000;
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Sidecar {
    child: Child,
    folder: TempDir,
    pub(crate) admin: SocketAddr,
}

impl Sidecar {
    /// Starts Envoy with one worker thread and waits until it is ready.
    pub(crate) async fn start(config: &str) -> Self {
        Self::start_with(config, 1).await
    }

    /// Starts Envoy with so many worker threads and waits until it is ready.
    pub(crate) async fn start_with(config: &str, threads: u8) -> Self {
        Self::launch(config, threads, &["--disable-hot-restart".to_owned()]).await
    }

    /// The same with these options.
    pub(crate) async fn launch(config: &str, threads: u8, options: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (file, admin) = (
            folder.path().join("envoy.yaml"),
            folder.path().join("admin"),
        );
        let (config, of_shell) = shell::envoy(config);
        std::fs::write(&file, config).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(tools::envoy())
            .args(["--concurrency", &threads.to_string()])
            .args(options)
            .args(of_shell)
            .args(["-l", "info", "-c"])
            .arg(&file)
            .arg("--admin-address-path")
            .arg(&admin)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut sidecar = Self {
            child,
            folder,
            admin: nowhere,
        };
        sidecar.admin = sidecar
            .wait("an admin address", async |_| address(&admin))
            .await;
        sidecar
            .wait("readiness", async |sidecar| sidecar.page("/ready").await)
            .await;
        sidecar
    }

    /// A page of the admin interface, if it is there and the answer is 200.
    pub(crate) async fn page(&self, path: &str) -> Option<String> {
        if path.starts_with("/stats") {
            shell::counted().await;
        }
        let (status, body) = http::get(self.admin, path).await?;
        (status == 200).then_some(body)
    }

    /// Where the listener of that name listens. Envoy says that it is ready also where weir-control has not served it in
    /// time.
    pub(crate) async fn listener(&self, name: &str) -> SocketAddr {
        let status = async |sidecar: &Self| {
            let page = sidecar.page("/listeners?format=json").await?;
            let page: Value = serde_json::from_str(&page).ok()?;
            let mut all = page["listener_statuses"].as_array()?.iter();
            all.find(|status| status["name"] == name).cloned()
        };
        let status = self.wait(&format!("listener {name}"), status).await;
        let address = &status["local_address"]["socket_address"];
        format!(
            "{}:{}",
            address["address"].as_str().unwrap(),
            address["port_value"]
        )
        .parse()
        .unwrap()
    }

    /// Asks again and again until there is an answer; fails with Envoy's log.
    pub(crate) async fn wait<T>(&self, what: &str, ask: impl AsyncFn(&Self) -> Option<T>) -> T {
        for _ in 0..ATTEMPTS {
            if let Some(answer) = ask(self).await {
                return answer;
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("waited in vain for {what}\n{}", self.log());
    }

    /// Whether it has this file in its memory.
    pub(crate) fn maps(&self, file: &Path) -> bool {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.child.id())).unwrap();
        maps.contains(file.to_str().unwrap())
    }

    /// Whether the process is gone.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Ends Envoy without giving it a chance to say so.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// What Envoy has said.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

fn address(file: &Path) -> Option<SocketAddr> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.folder.path().join("log"));
            eprintln!("Envoy said:\n{}", log.unwrap_or_default());
        }
    }
}
