// SPDX-License-Identifier: Apache-2.0
//! Where everything of a mesh is: `mesh.json`, for programs that did not start it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::control::Control;
use crate::host::Host;

/// Where everything is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The HTTP API of Consul's agent, with which all services are registered.
    pub consul: SocketAddr,
    /// The HTTP API of Consul's server.
    pub consul_server: SocketAddr,
    /// The end of every cluster's name.
    pub trust_domain: String,
    /// Prometheus, where there is one.
    pub prometheus: Option<SocketAddr>,
    /// weir-controls; several are replicas.
    pub controls: Vec<Control>,
    /// Where requests are sent.
    pub callers: Vec<Caller>,
    /// Where they go.
    pub hosts: Vec<Host>,
    /// The folder of the logs, one for each process.
    pub logs: PathBuf,
    /// The process that ends everything when it ends.
    pub supervisor: u32,
}

impl Description {
    /// The file's name in a mesh's folder.
    pub const FILE: &str = "mesh.json";

    /// Of the mesh in this folder.
    ///
    /// # Errors
    /// None is up there, or its file is another's.
    pub fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(Self::FILE);
        let text = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("reading {}", file.display()))
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let file = folder.join(Self::FILE);
        weir_whole_file::write(&file, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("writing {}", file.display()))
    }
}
