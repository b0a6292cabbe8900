// SPDX-License-Identifier: Apache-2.0
//! weir-governor, told of the service's cgroup and of the job; in one way of the mesh, too.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::batch::{self, JOB, THREADS};
use super::mesh::{CLUSTER, Mesh};
use super::programs::Programs;
use crate::cgroups::Cgroups;
use crate::governor::Governor;

/// Starts it and waits until it governs. Without a mesh it goes by CPU use alone.
///
/// # Errors
/// It refuses its configuration, or does not say that it is ready.
pub fn start(
    programs: &Programs,
    cgroups: &Cgroups,
    mesh: Option<&Mesh>,
    folder: &Path,
) -> Result<Governor> {
    let configuration = configuration(programs, cgroups, mesh, folder);
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
fn configuration(
    programs: &Programs,
    cgroups: &Cgroups,
    mesh: Option<&Mesh>,
    folder: &Path,
) -> Value {
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
    if let Some(mesh) = mesh {
        written["mesh"] = json!({
            "control": format!("http://{}", mesh.control),
            "cluster": CLUSTER,
            "host": mesh.host,
            // Two jobs' time, which half of one core's load hardly ever waits: the default of 20 ms is one job's.
            "delay": "40ms",
            // Of a calm of seconds the job is to have most.
            "hold": "2s",
        });
    }
    written
}
