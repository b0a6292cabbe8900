// SPDX-License-Identifier: Apache-2.0
//! Every query of the dashboard and of the rules, asked of a real Prometheus that reads real processes: weir-control,
//! an Envoy with the filter under traffic, two hosts, and a governor on made-up cores.

#[path = "live/programs.rs"]
mod programs;
#[path = "live/stage.rs"]
mod stage;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::Value;
use weir_dashboard_checks::dashboard::Dashboard;
use weir_dashboard_checks::{deploy, expression};
use weir_stage::http;

use programs::Programs;
use stage::Stage;

/// Generous: rates need two scrapes, and a busy machine a while to start everything.
const LIMIT: Duration = Duration::from_secs(180);

/// Metrics that are not there while all is well, or on a machine whose cores cannot be divided; and why.
const ABSENT: &[(&str, &str)] = &[
    (
        "weir_control_records_dropped_total",
        "counted by reason when a record is dropped",
    ),
    (
        "weir_control_certificate_expiry_timestamp_seconds",
        "of the certificates in weir-control's configuration: all is plain on loopback here",
    ),
    (
        "weir_control_certificate_not_before_timestamp_seconds",
        "of the certificates in weir-control's configuration: all is plain on loopback here",
    ),
    (
        "weir_control_leader",
        "of replicas, which agree on a leader: one weir-control is alone here",
    ),
    (
        "weir_control_node_capacity_cores",
        "a governor that divides cores tells it: needs cgroups of its own",
    ),
    (
        "weir_control_node_silent",
        "a governor that divides cores has to have reported: needs cgroups of its own",
    ),
    (
        "weir_governor_service_cores",
        "where cores are divided: needs cgroups of its own",
    ),
    (
        "weir_governor_service_cpu_cores",
        "where cores are divided: needs cgroups of its own",
    ),
    (
        "weir_governor_core_write_errors_total",
        "where cores are divided: needs cgroups of its own",
    ),
    (
        "weir_governor_job_state",
        "of batch jobs, where cores are divided: needs cgroups of its own",
    ),
    (
        "weir_governor_job_paused_seconds_total",
        "of batch jobs, where cores are divided: needs cgroups of its own",
    ),
    (
        "weir_governor_mesh_connected",
        "where cores are divided: needs cgroups of its own",
    ),
    (
        "weir_governor_mesh_pressed",
        "where cores are divided: needs cgroups of its own",
    ),
    (
        "weir_host_joblets_failed_total",
        "counted by kind when a joblet of real work fails",
    ),
];

fn is_absent(query: &str) -> bool {
    let names = expression::metrics(query);
    ABSENT.iter().any(|(name, _)| names.contains(*name))
}

/// How many series a query has.
fn series(prometheus: SocketAddr, query: &str) -> Result<usize> {
    let answer = http::ask(prometheus, &weir_promql::path("", query))?;
    let answer = weir_promql::read(answer.body.as_bytes());
    answer
        .map(|answer| answer.series.len())
        .map_err(|error| anyhow::anyhow!("{query}: {error}"))
}

/// Name, expression and whether it is recorded, of each rule.
fn rules(prometheus: SocketAddr) -> Result<Vec<(String, String, bool)>> {
    let page: Value = serde_json::from_str(&http::get(prometheus, "/api/v1/rules")?.body)?;
    let groups = page["data"]["groups"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let rules = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().cloned());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rule = |rule: Value| {
        (
            text(&rule["name"]),
            text(&rule["query"]),
            rule["type"] == "recording",
        )
    };
    Ok(rules.flatten().map(rule).collect())
}

#[test]
fn every_query_says_something_of_real_processes() {
    let Some(programs) = Programs::find() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::start(&programs, folder.path()).unwrap();
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    let dashboard = Dashboard::read(&deploy().join("grafana/weir.json")).unwrap();
    let queries = dashboard.queries().unwrap();
    wanted.extend(queries.into_iter().map(|(_, query)| query));
    let mut alerts = BTreeSet::new();
    let rules = rules(stage.prometheus).unwrap();
    assert!(rules.len() > 30, "{rules:?}");
    for (name, query, recorded) in rules {
        match recorded {
            true => wanted.extend([name, query]),
            // All is well, so alerts have no series; but what they ask for has.
            false => {
                wanted.extend(expression::metrics(&query));
                alerts.insert(query);
            }
        }
    }
    for (name, _) in ABSENT {
        let used = wanted
            .iter()
            .any(|query| expression::metrics(query).contains(*name));
        assert!(used, "{name} is listed, and nobody asks for it");
    }
    wanted.retain(|query| !is_absent(query));
    let begun = std::time::Instant::now();
    while !wanted.is_empty() {
        stage.traffic().unwrap();
        // A query that does not parse is an error at once, one without data is asked again.
        wanted.retain(|query| match series(stage.prometheus, query) {
            Ok(found) => found == 0,
            Err(error) if error.is::<std::io::Error>() => true,
            Err(error) => panic!("{error:#}"),
        });
        assert!(begun.elapsed() < LIMIT, "no data of {wanted:#?}");
    }
    for alert in alerts {
        series(stage.prometheus, &alert).unwrap();
    }
    let absent = ABSENT
        .iter()
        .map(|(name, _)| (*name, series(stage.prometheus, name)));
    for (name, found) in absent {
        assert_eq!(found.unwrap(), 0, "{name} is there: take it off the list");
    }
}

/// Fails where a program has ended meanwhile.
fn alive(processes: &mut weir_stage::processes::Processes) -> Result<()> {
    match processes.check() {
        Ok(()) => Ok(()),
        Err(error) => bail!("{error:#}"),
    }
}
