// SPDX-License-Identifier: Apache-2.0
//! The processes of one way: hosts, sidecars and, where Weir chooses, weir-control. New ones for every way, so all
//! hosts start with empty caches.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};
use weir_stage::processes::Processes;

use crate::callers::settings::Settings;
use crate::callers::{bootstrap, start_alone, start_told};
use crate::demo::envoys::Envoys;
use crate::demo::plan::{Plan, Work};
use crate::demo::ways::{BeforeHosts, Kind, Way};
use crate::demo::workload::Workload;
use crate::hosts;
use crate::programs::Programs;
use crate::sampler::Sights;
use crate::sidecar::filters;

/// The workload has jobs of minutes, and its own deadline; time-outs are not what is compared.
const NO_TIMEOUT: &str = "0s";

/// Starts them all; returns the Envoys, and where to look while requests are sent.
pub(super) fn start(
    (plan, workload): (&Plan, &Workload),
    programs: &Programs,
    way: &Way,
    processes: &mut Processes,
    folder: &Path,
) -> Result<(Envoys, Sights)> {
    let host = || {
        let mut command = host(&programs.worker, plan, workload);
        command.args(way.host_flags());
        command
    };
    let pages = hosts::start(processes, plan.hosts, host, folder)?;
    let before = before_hosts(way, plan, programs).map_or(Ok(Vec::new()), |filters| {
        let filters = (NO_TIMEOUT, &*filters);
        hosts::start_before(processes, &programs.envoy, &pages, filters, folder)
    })?;
    let hosts = match &before[..] {
        [] => pages.clone(),
        before => before.iter().map(|envoy| envoy.listener).collect(),
    };
    let (callers, control) = match way.kind {
        Kind::Envoy(balancer) => {
            let bootstrap = |node: &str| bootstrap::alone(node, balancer, &hosts, NO_TIMEOUT, &[]);
            let callers = start_alone(processes, programs, way.sidecars, bootstrap, folder)?;
            (callers, None)
        }
        Kind::Weir {
            selection,
            overload,
        } => {
            let settings = settings(plan, selection, overload);
            let config = settings.config(&hosts, &pages, &programs.filter);
            let (callers, control) =
                start_told(processes, programs, way.sidecars, &config, folder)?;
            (callers, Some(control.admin))
        }
    };
    let sights = Sights {
        hosts: pages,
        named: hosts,
        control,
    };
    let hosts = before;
    Ok((Envoys { callers, hosts }, sights))
}

pub(super) fn settings<'a>(plan: &Plan, selection: &'a str, overload: &'a str) -> Settings<'a> {
    let limits = &plan.limits;
    Settings {
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
    }
}

/// The filters of the Envoy before each host, where there is one.
fn before_hosts(way: &Way, plan: &Plan, programs: &Programs) -> Option<Vec<Value>> {
    match way.before_hosts {
        BeforeHosts::Nothing => None,
        BeforeHosts::Envoy => Some(Vec::new()),
        // As in `envoy-config/static/host.yaml`.
        BeforeHosts::Weir => {
            let role = json!({"role": "host", "cores": plan.cores, "bodies": true});
            let mut filter = filters::wasm("weir", &programs.filter, &role);
            filter["typed_config"]["config"]["allow_on_headers_stop_iteration"] = true.into();
            Some(vec![filter])
        }
    }
}

fn host(program: &Path, plan: &Plan, workload: &Workload) -> Command {
    let mut command = Command::new(program);
    match &plan.work {
        Work::Emulated(trace) => command
            .arg("--emulate")
            .args(["--fetch-bytes-per-second", trace.fetch_bytes_per_second]),
        Work::Real(_) => command.arg("--store").args(&workload.feeds),
    };
    command
        .args(["--cores", &plan.cores.to_string()])
        .args(["--cache-bytes", plan.cache_bytes]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_stage::command::describe;

    #[test]
    fn emulated_hosts_are_told_so_and_real_ones_where_the_feeds_are() {
        let workload = |feeds: Option<&str>| Workload {
            file: "w.ndjson".into(),
            feeds: feeds.map(Into::into),
            description: String::new(),
        };
        let said = |plan: &Plan, workload: &Workload| {
            describe(&host(Path::new("weir-worker"), plan, workload))
        };
        let emulated = said(&Plan::emulated(true), &workload(None));
        assert!(emulated.starts_with("weir-worker --emulate "), "{emulated}");
        let real = said(&Plan::real(true), &workload(Some("feeds")));
        assert!(real.starts_with("weir-worker --store feeds "), "{real}");
        assert!(!real.contains("emulate"), "{real}");
    }
}
