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
/// The workload has jobs of minutes, and its own deadline.
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
    let config = config(plan, run, (consul.http(), monitor), &fleet.filter);
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
fn config(
    plan: &Plan,
    run: Run,
    (consul, monitor): (SocketAddr, SocketAddr),
    filter: &Path,
) -> Value {
    let (selection, overload) = policy(run);
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
        scrape: json!({}),
        cores: plan.cores,
        timeout: NO_TIMEOUT,
    };
    let mut config = settings.config(&[], &[], filter);
    let second = json!({"interval": milliseconds(NEWS / 5)});
    // What is heard of hosts' load, and of their caches.
    let (load, heard, caches) = match run {
        Run::Estimate => ("scrape", second.clone(), second),
        _ => {
            let every = milliseconds(NEWS);
            let asked = json!({"address": format!("http://{monitor}"), "interval": every});
            ("prometheus", asked, json!({"interval": every}))
        }
    };
    if let Some(cluster) = config["clusters"][RULES].as_object_mut() {
        cluster.retain(|name, _| name != "hosts" && name != "scrape");
        cluster.insert(load.to_owned(), heard);
        cluster.insert("cache".to_owned(), caches);
        let found = json!({
            "address": format!("http://{consul}"),
            "connect": false,
            "weight_millicores": 1000 * plan.cores,
        });
        cluster.insert("consul".to_owned(), found);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn made(run: Run) -> Value {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        config(
            &Plan::emulated(1, 1),
            run,
            (at(1), at(2)),
            Path::new("f.wasm"),
        )
    }

    #[test]
    fn the_documents_scheduler_asks_at_its_pace_and_weirs_default_asks_hosts() {
        let rules = &made(Run::DagorDynamic)["clusters"][RULES];
        assert_eq!(rules["prometheus"]["interval"], "500ms");
        assert_eq!(rules["cache"]["interval"], "500ms");
        assert_eq!(rules["dagor"]["control"], "stalled_jobs");
        assert!(
            rules["scrape"].is_null() && rules["hosts"].is_null(),
            "{rules}"
        );
        let rules = &made(Run::Estimate)["clusters"][RULES];
        assert_eq!(rules["scrape"]["interval"], "100ms");
        assert!(rules["prometheus"].is_null(), "{rules}");
        assert_eq!(rules["policy"]["selection"], "estimate");
    }
}
