// SPDX-License-Identifier: Apache-2.0
//! Callers' sidecars: Envoys that know everything, or that weir-control tells everything.

pub(crate) mod balancer;
pub(crate) mod bootstrap;
pub(crate) mod settings;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use weir_stage::bootstrap::standalone;
use weir_stage::control::{self, Control};
use weir_stage::envoy::{self, Envoy};
use weir_stage::http;
use weir_stage::processes::Processes;

use crate::programs::Programs;

/// From the start of a sidecar to the filter's first choice from a table.
const FIRST_TABLE: Duration = Duration::from_secs(20);

/// How many sidecars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sidecars {
    pub(crate) count: usize,
    /// Worker threads of each.
    pub(crate) workers: usize,
}

impl Sidecars {
    /// So many of one worker thread each.
    pub(crate) const fn single(count: usize) -> Self {
        Self { count, workers: 1 }
    }

    fn nodes(self) -> impl Iterator<Item = String> {
        (1..=self.count).map(|n| format!("caller-{n}"))
    }

    fn start(
        self,
        processes: &mut Processes,
        programs: &Programs,
        (node, bootstrap): (&str, &str),
        folder: &Path,
    ) -> Result<Envoy> {
        let (envoy, workers) = (&programs.envoy, self.workers);
        envoy::start_with_workers(processes, envoy, workers, node, bootstrap, folder)
    }
}

/// Starts sidecars that know everything.
pub(crate) fn start_alone(
    processes: &mut Processes,
    programs: &Programs,
    callers: Sidecars,
    bootstrap: impl Fn(&str) -> Value,
    folder: &Path,
) -> Result<Vec<Envoy>> {
    let start = |node: String| {
        let bootstrap = bootstrap(&node).to_string();
        callers.start(processes, programs, (&node, &bootstrap), folder)
    };
    callers.nodes().map(start).collect()
}

/// Starts weir-control with the configuration, and sidecars that it tells everything. Each chooses from a table then.
pub(crate) fn start_told(
    processes: &mut Processes,
    programs: &Programs,
    callers: Sidecars,
    config: &Value,
    folder: &Path,
) -> Result<(Vec<Envoy>, Control)> {
    let control = control::start(processes, &programs.control, config, folder)?;
    let start = |node: String| {
        let bootstrap = standalone(&node, control.xds)?;
        let caller = callers.start(processes, programs, (&node, &bootstrap), folder)?;
        wait_for_table(processes, &node, caller.listener)?;
        Ok(caller)
    };
    let callers = callers.nodes().map(start).collect::<Result<_>>()?;
    Ok((callers, control))
}

/// Sends requests of no consequence until the filter chooses from a table.
fn wait_for_table(processes: &mut Processes, node: &str, caller: SocketAddr) -> Result<()> {
    processes.wait_until(&format!("the first table of {node}"), FIRST_TABLE, || {
        // A host that works for real has no answer to this but an error.
        let answer = http::ask(caller, "/").ok()?;
        let reason = answer.header("x-weir-reason")?;
        (reason != "no_table").then_some(())
    })
}
