// SPDX-License-Identifier: Apache-2.0
//! weir-governor, told of the service's cgroup and of the job; in one way of the mesh, too.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use weir_colocation::child::Started;
use weir_stage::{http, interrupt};

use crate::batch::{self, THREADS};
use crate::mesh::CLUSTER;
use crate::place::{JOB, Place};
use crate::programs::Programs;

const READY: Duration = Duration::from_secs(30);
const END: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

/// The host and its weir-control.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The host, as weir-control has it.
    pub host: SocketAddr,
    /// Its xDS listener.
    pub control: SocketAddr,
}

/// One that runs.
pub struct Governor {
    process: Started,
    admin: SocketAddr,
}

#[derive(Deserialize)]
struct Ports {
    admin: SocketAddr,
}

impl Governor {
    /// Starts it and waits until it governs. Without a row it goes by CPU use alone.
    ///
    /// # Errors
    /// It refuses its configuration, or does not say that it is ready.
    pub fn start(
        programs: &Programs,
        place: &Place,
        row: Option<Row>,
        folder: &Path,
    ) -> Result<Self> {
        let file = folder.join("weir-governor.yaml");
        // JSON is YAML too.
        let text = serde_json::to_vec_pretty(&configuration(programs, place, row, folder))?;
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        let ports = folder.join("weir-governor.ports");
        let mut command = Command::new(&programs.governor);
        command.arg("run").arg("--config").arg(&file);
        command.arg("--ports-file").arg(&ports);
        let mut process = Started::new("weir-governor", command, folder)?;
        let begun = Instant::now();
        loop {
            let told = fs::read(&ports).ok();
            if let Some(Ports { admin }) = told.and_then(|text| serde_json::from_slice(&text).ok())
            {
                return Ok(Self { process, admin });
            }
            interrupt::check()?;
            process.must_live()?;
            ensure!(begun.elapsed() < READY, "weir-governor is not ready");
            std::thread::sleep(POLL);
        }
    }

    /// How often it has moved the service's cores.
    ///
    /// # Errors
    /// It does not answer.
    pub fn moves(&self) -> Result<u64> {
        let page = http::get(self.admin, "/metrics")?.body;
        let name = "weir_governor_service_moves_total ";
        let value = page.lines().find_map(|line| line.strip_prefix(name));
        let value = value.with_context(|| format!("no {name} on the governor's page"))?;
        Ok(value.trim().parse::<f64>()? as u64)
    }

    /// # Errors
    /// It has ended, with the end of its log.
    pub fn must_live(&mut self) -> Result<()> {
        self.process.must_live()
    }

    /// Ends it; it ends the job and puts everything back.
    ///
    /// # Errors
    /// It could not, or did not end.
    pub fn end(self) -> Result<()> {
        let status = self.process.end(END)?;
        ensure!(status.success(), "weir-governor ended with {status}");
        Ok(())
    }
}

/// Two cores: one is the service's, and one is its or the job's.
fn configuration(programs: &Programs, place: &Place, row: Option<Row>, folder: &Path) -> Value {
    let mut written = json!({
        "service": {"cgroup": place.service()},
        "core_policy": {"blocks": {"reserved": 0, "small": 1, "large": "none", "calm": "100ms"}},
        "jobs": [{
            "name": JOB,
            "queue": "long",
            "threads": THREADS,
            "command": batch::line(programs, "{threads}"),
        }],
        "batch": {
            "cgroup": place.batch(),
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
