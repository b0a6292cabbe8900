// SPDX-License-Identifier: Apache-2.0
//! The processes of one way: hosts, sidecars and, where Weir chooses, weir-control.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use weir_stage::bootstrap::standalone;
use weir_stage::processes::Processes;
use weir_stage::{envoy, http};

use crate::demo::control::Settings;
use crate::demo::programs::Programs;
use crate::demo::sampler::Sights;
use crate::demo::ways::{Kind, Way};
use crate::demo::{Demo, bootstrap, control, hosts};

/// The workload has jobs of minutes, and its own deadline; time-outs are not what is compared.
const NO_TIMEOUT: &str = "0s";

/// From the start of the sidecars to the filter's first choice from a table.
const FIRST_TABLE: Duration = Duration::from_secs(20);

/// Where to send requests, and where to look meanwhile.
pub(super) struct Stage {
    pub(super) callers: Vec<SocketAddr>,
    pub(super) sights: Sights,
}

impl Stage {
    /// Starts them all.
    pub(super) fn start(
        demo: &Demo,
        way: &Way,
        processes: &mut Processes,
        folder: &Path,
    ) -> Result<Self> {
        let programs = &demo.programs;
        let hosts = hosts::start(
            processes,
            &programs.worker,
            &demo.plan,
            &demo.workload,
            folder,
        )?;
        let plan = &demo.plan;
        let (callers, control) = match way.kind {
            Kind::Envoy(balancer) => {
                let bootstrap =
                    |node: &str| bootstrap::alone(node, balancer, &hosts, NO_TIMEOUT, &[]);
                let callers = alone(processes, programs, plan.callers, bootstrap, folder)?;
                (callers, None)
            }
            Kind::Weir {
                selection,
                overload,
            } => {
                let limits = &plan.limits;
                let settings = Settings {
                    selection,
                    overload,
                    breaker_queued_jobs: limits.breaker_queued_jobs,
                    dagor: json!({
                        "control": "paper",
                        "threshold": limits.dagor_threshold,
                        "alpha": limits.dagor_step,
                        "beta": limits.dagor_step,
                    }),
                    scrape: json!({}),
                    cores: plan.cores,
                    timeout: NO_TIMEOUT,
                };
                let config = control::config(&settings, &hosts, &programs.filter);
                let (callers, admin) =
                    with_control(processes, programs, plan.callers, &config, folder)?;
                (callers, Some(admin))
            }
        };
        let sights = Sights {
            named: hosts.clone(),
            hosts,
            control,
        };
        Ok(Self { callers, sights })
    }
}

/// Starts sidecars that know everything; returns where they listen.
pub(crate) fn alone(
    processes: &mut Processes,
    programs: &Programs,
    callers: usize,
    bootstrap: impl Fn(&str) -> Value,
    folder: &Path,
) -> Result<Vec<SocketAddr>> {
    let start = |node: String| {
        let bootstrap = bootstrap(&node).to_string();
        let envoy = envoy::start(processes, &programs.envoy, &node, &bootstrap, folder)?;
        Ok(envoy.listener)
    };
    nodes(callers).map(start).collect()
}

/// Starts weir-control with the configuration, and sidecars that it tells everything; returns where these
/// listen once each chooses from a table, and the admin pages of weir-control.
pub(crate) fn with_control(
    processes: &mut Processes,
    programs: &Programs,
    callers: usize,
    config: &Value,
    folder: &Path,
) -> Result<(Vec<SocketAddr>, SocketAddr)> {
    let control = weir_stage::control::start(processes, &programs.control, config, folder)?;
    let start = |node: String| {
        let bootstrap = standalone(&node, control.xds)?;
        let caller = envoy::start(processes, &programs.envoy, &node, &bootstrap, folder)?;
        wait_for_table(processes, &node, caller.listener)?;
        Ok(caller.listener)
    };
    let callers = nodes(callers).map(start).collect::<Result<_>>()?;
    Ok((callers, control.admin))
}

fn nodes(callers: usize) -> impl Iterator<Item = String> {
    (1..=callers).map(|n| format!("caller-{n}"))
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
