// SPDX-License-Identifier: Apache-2.0
//! Envoys that Consul configures.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use weir_stage::http;
use weir_stage::processes::Processes;

use crate::consul::Consul;
use crate::network::Place;

/// What users take, and the mesh as well.
const STATS_TAGS: &str = include_str!("../../../deploy/consul/stats-tags.yaml");
/// Certificates and endpoints come from Consul, and the filter is compiled: seconds on a busy machine.
const READY: Duration = Duration::from_secs(60);

/// The program of all sidecars, and the folder of their bootstraps.
pub(crate) struct Sidecars {
    pub(crate) envoy: PathBuf,
    pub(crate) folder: PathBuf,
}

/// A sidecar's name among the processes.
pub(crate) fn name(id: &str) -> String {
    format!("{id}-sidecar")
}

impl Sidecars {
    /// Writes the bootstrap of a registered service's sidecar.
    pub(crate) fn bootstrap(
        &self,
        consul: &Consul,
        id: &str,
        place: &Place,
        admin: u16,
    ) -> Result<PathBuf> {
        let bootstrap = consul
            .bootstrap(id, place, admin)
            .with_context(|| format!("the bootstrap of {id}'s sidecar"))?;
        self.write(id, &bootstrap)
    }

    /// Writes a bootstrap to the file of its Envoy.
    pub(crate) fn write(&self, id: &str, bootstrap: &str) -> Result<PathBuf> {
        let file = self.folder.join(format!("{id}-bootstrap.json"));
        fs::write(&file, bootstrap).with_context(|| format!("writing {}", file.display()))?;
        Ok(file)
    }

    /// The command that runs it.
    pub(crate) fn command(&self, bootstrap: &Path, threads: u32) -> Command {
        let mut command = Command::new(&self.envoy);
        command
            .arg("-c")
            .arg(bootstrap)
            .args(["--config-yaml", STATS_TAGS])
            .args(["--concurrency", &threads.to_string()])
            .arg("--disable-hot-restart")
            .args(["--log-level", "warning"])
            .args(["--component-log-level", "wasm:info"]);
        command
    }
}

/// Waits until a sidecar has its certificates, clusters and listeners.
pub(crate) fn wait(processes: &mut Processes, id: &str, admin: SocketAddr) -> Result<()> {
    processes.wait_until(&format!("readiness of {id}'s sidecar"), READY, || {
        http::get(admin, "/ready").ok()
    })?;
    Ok(())
}
