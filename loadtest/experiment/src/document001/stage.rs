// SPDX-License-Identifier: Apache-2.0
//! The processes of one run: Consul, Prometheus, hosts, weir-control and sidecars, new ones for every run.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};
use weir_mesh::{Consul, prometheus};
use weir_sim::document001::Experiment as Run;
use weir_stage::envoy::Envoy;
use weir_stage::processes::Processes;

use super::Programs;
use super::plan::{NEWS, Plan, Work};
use super::workload::Workload;
use crate::callers::settings::Settings;
use crate::callers::{Sidecars, start_told};
use crate::hosts;
use crate::sampler::Sights;

/// The service, and Consul's name of it.
const RULES: &str = "rules";
/// As weir-sim has them: seconds to a fetch's first byte, and bytes a second of it, are its parameters.
const NO_TIMEOUT: &str = "0s";

/// Starts them all; returns the sidecars, and where to look while requests are sent.
pub(super) fn start(
    (plan, workload): (&Plan, &Workload),
    programs: &Programs,
    run: Run,
    processes: &mut Processes,
    folder: &Path,
) -> Result<(Vec<Envoy>, Sights)> {
    let fleet = &programs.demo.fleet;
    let command = || host(&fleet.worker, plan, workload);
    let hosts = hosts::start(processes, plan.hosts, command, folder)?;
    let consul = Consul::alone(processes, &programs.consul, folder.join("consul"))?;
    for (host, number) in hosts.iter().zip(1..) {
        consul.register(&registration(host, number))?;
    }
    let (path, settings) = (folder.join("prometheus"), scraping(plan, &hosts));
    let monitor = prometheus::alone(processes, &programs.prometheus, &path, &settings)?;
    let config = config(plan, run, (&consul, monitor), &fleet.filter);
    let sidecars = Sidecars::single(plan.callers);
    let (callers, control) = start_told(processes, fleet, sidecars, &config, folder)?;
    Ok((callers, Sights::of(hosts, Some(control.admin))))
}

fn host(program: &Path, plan: &Plan, workload: &Workload) -> Command {
    let mut command = Command::new(program);
    match &plan.work {
        Work::Emulated(stretch) => {
            let (speed, params) = (f64::from(plan.speed), &stretch.params);
            let base = 1e6 * params.fetch_base_s / speed;
            let rate = params.fetch_rate * speed;
            command
                .arg("--emulate")
                .args(["--fetch-base-us", &format!("{base:.0}")])
                .args(["--fetch-bytes-per-second", &format!("{rate:.0}")])
                .args(["--max-queued", "100000"])
        }
        Work::Real(_) => command.arg("--store").args(&workload.feeds),
    };
    command
        .args(["--cores", &plan.cores.to_string()])
        .args(["--cache-bytes", &plan.cache_bytes.to_string()]);
    command
}

/// Consul asks for the page of metrics, as it would ask for one of health.
fn registration(host: &SocketAddr, number: usize) -> Value {
    json!({
        "ID": format!("{RULES}-{number}"),
        "Name": RULES,
        "Address": host.ip(),
        "Port": host.port(),
        "Check": {"HTTP": format!("http://{host}/metrics"), "Interval": "10s", "Status": "passing"},
    })
}

fn scraping(plan: &Plan, hosts: &[SocketAddr]) -> Value {
    // Twice as often as it is asked, so that what it says is not an interval older still.
    let every = format!("{}ms", plan.compressed(NEWS / 2).as_millis().max(100));
    json!({
        "global": {"scrape_interval": every, "scrape_timeout": every},
        "scrape_configs": [{"job_name": "hosts", "static_configs": [{"targets": hosts}]}],
    })
}

/// weir-control's configuration: the document's scheduler, or what Weir has by default in the document's time.
fn config(plan: &Plan, run: Run, from: (&Consul, SocketAddr), filter: &Path) -> Value {
    let (selection, overload) = policy(run);
    let (consul, monitor) = from;
    let milliseconds = |time| format!("{}ms", plan.compressed(time).as_millis());
    let settings = Settings {
        selection,
        overload,
        breaker_queued_jobs: plan.queued_jobs,
        // Section 9.1.3: it goes by stalled jobs. A window is a second of the document, and a level moves on news only.
        dagor: json!({
            "control": "stalled_jobs",
            "queued_jobs": plan.queued_jobs,
            "window": milliseconds(NEWS / 5),
        }),
        scrape: json!({"interval": milliseconds(NEWS / 5)}),
        cores: plan.cores,
        timeout: NO_TIMEOUT,
    };
    let mut config = settings.config(&[], &[], filter);
    let cluster = &mut config["clusters"][RULES];
    cluster["consul"] = json!({
        "address": format!("http://{}", consul.http()),
        "connect": false,
        "weight_millicores": 1000 * plan.cores,
    });
    if let Some(cluster) = cluster.as_object_mut() {
        cluster.remove("hosts");
        let by_default = run == Run::Estimate;
        cluster.insert(
            "cache".to_owned(),
            json!({"interval": milliseconds(if by_default { NEWS / 5 } else { NEWS })}),
        );
        if !by_default {
            cluster.remove("scrape");
            let asked = json!({
                "address": format!("http://{monitor}"),
                "interval": milliseconds(NEWS),
            });
            cluster.insert("prometheus".to_owned(), asked);
        }
    }
    config
}

/// Selection and overload policy of a run.
fn policy(run: Run) -> (&'static str, &'static str) {
    match run {
        Run::Production | Run::BaselineBaseline => ("baseline", "none"),
        Run::BreakerBaseline => ("baseline", "breaker"),
        Run::DagorBaseline => ("baseline", "dagor"),
        Run::BaselineDynamic => ("dynamic", "none"),
        Run::BreakerDynamic => ("dynamic", "breaker"),
        Run::DagorDynamic => ("dynamic", "dagor"),
        Run::Estimate => ("estimate", "none"),
    }
}
