// SPDX-License-Identifier: Apache-2.0
//! The processes of one way: hosts, sidecars and, where Weir chooses, weir-control.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use weir_stage::bootstrap::standalone;
use weir_stage::processes::Processes;
use weir_stage::{envoy, http};

use crate::demo::sampler::Sights;
use crate::demo::ways::{Kind, Way};
use crate::demo::{Demo, bootstrap, control, hosts};

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
        let nodes: Vec<String> = (1..=demo.plan.callers)
            .map(|n| format!("caller-{n}"))
            .collect();
        let (callers, control) = match way.kind {
            Kind::Envoy(balancer) => {
                let start = |node: &String| {
                    let bootstrap = bootstrap::alone(node, balancer, &hosts).to_string();
                    let envoy = envoy::start(processes, &programs.envoy, node, &bootstrap, folder)?;
                    Ok(envoy.listener)
                };
                (nodes.iter().map(start).collect::<Result<_>>()?, None)
            }
            Kind::Weir {
                selection,
                overload,
            } => {
                let config =
                    control::config(selection, overload, &demo.plan, &hosts, &programs.filter);
                let control =
                    weir_stage::control::start(processes, &programs.control, &config, folder)?;
                let mut start = |node: &String| {
                    let bootstrap = standalone(node, control.xds)?;
                    let caller =
                        envoy::start(processes, &programs.envoy, node, &bootstrap, folder)?;
                    wait_for_table(processes, node, caller.listener)?;
                    Ok(caller.listener)
                };
                let callers = nodes.iter().map(&mut start).collect::<Result<_>>()?;
                (callers, Some(control.admin))
            }
        };
        let sights = Sights { hosts, control };
        Ok(Self { callers, sights })
    }
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
