// SPDX-License-Identifier: Apache-2.0
//! Hosts: applications, emulated or real, with sidecars.

use std::net::SocketAddr;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::programs::Programs;

/// A host of the mesh. Its processes are `<name>` and `<name>-sidecar`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Consul's id of the instance: `rules-1`.
    pub name: String,
    /// The sidecar's, which the filter names and other sidecars connect to.
    pub address: SocketAddr,
    /// The application's own: jobs, `/metrics`, `/cache`.
    pub application: SocketAddr,
    /// The sidecar's admin pages.
    pub admin: SocketAddr,
    /// Where both run, if not beside the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl Host {
    /// What runs the application.
    pub(crate) fn command(&self, programs: &Programs, plan: &Plan) -> Command {
        let mut command = Command::new(&programs.worker);
        let cores = match &plan.work {
            Some(work) => {
                command.arg("--store").arg(&work.store);
                work.threads
            }
            None => {
                command.arg("--emulate");
                plan.cores
            }
        };
        command
            .args(["--listen", &self.application.to_string()])
            .args(["--cores", &cores.to_string()])
            .args(&plan.host_flags);
        command
    }
}
