// SPDX-License-Identifier: Apache-2.0
//! weir-governor, told of the service's cgroup and of the job; in one way of the mesh, too.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::batch::{self, JOB, THREADS};
use super::mesh::CLUSTER;
use super::programs::Programs;
use crate::cgroups::Cgroups;
use crate::governor::Governor;

/// The host and its weir-control.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The host, as weir-control has it.
    pub host: SocketAddr,
    /// Its xDS listener.
    pub control: SocketAddr,
}

/// Starts it and waits until it governs. Without a row it goes by CPU use alone.
///
/// # Errors
/// It refuses its configuration, or does not say that it is ready.
pub fn start(
    programs: &Programs,
    cgroups: &Cgroups,
    row: Option<Row>,
    folder: &Path,
) -> Result<Governor> {
    let configuration = configuration(programs, cgroups, row, folder);
    let governor = Governor::start(&programs.governor, None, &configuration, folder)?;
    cgroups.keep(governor.pid())?;
    Ok(governor)
}

/// How often it has moved the service's cores; never where none runs.
///
/// # Errors
/// It does not answer.
pub fn moves(governor: Option<&Governor>) -> Result<u64> {
    governor.map_or(Ok(0), |governor| {
        governor.counted("weir_governor_service_moves_total")
    })
}

/// Two cores: one is the service's, and one is its or the job's.
fn configuration(programs: &Programs, cgroups: &Cgroups, row: Option<Row>, folder: &Path) -> Value {
    let mut written = json!({
        "service": {"cgroup": cgroups.service()},
        "core_policy": {"blocks": {"reserved": 0, "small": 1, "large": "none", "calm": "100ms"}},
        "jobs": [{
            "name": JOB,
            "queue": "long",
            "threads": THREADS,
            "command": batch::line(programs, "{threads}"),
        }],
        "batch": {
            "cgroup": cgroups.batch(),
            // Their files are in a folder of this user's.
            "user": rustix::process::geteuid().as_raw(),
            "logs": folder.join("jobs"),
            "on_stop": "end",
            "grace": "2s",
        },
        "admin": {"listen": "127.0.0.1:0"},
        // Of its own, beside another governor's.
        "events": {"path": folder.join("weir.events")},
        "state_directory": folder.join("state"),
    });
    if let Some(Row { host, control }) = row {
        written["mesh"] = json!({
            "control": format!("http://{control}"),
            "cluster": CLUSTER,
            "host": host,
            // Five jobs' time, and a fifth of the threshold of the levels: the default of 20 ms is one job's.
            "delay": "100ms",
            // Of a calm of seconds the job is to have most.
            "hold": "2s",
        });
    }
    written
}
