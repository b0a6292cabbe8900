// SPDX-License-Identifier: Apache-2.0
//! Figures and verdicts made up here, and the smallest real runs.

use std::net::TcpListener;

use clap::Parser;
use serde_json::{Value, json};
use weir_needs::provided_or_skip;
use weir_stage::record;

use super::*;
use crate::callers::bootstrap;
use crate::load::figures::Figures;
use crate::load::verdict::{line, verdicts};

fn plan(thresholds: Value) -> Plan {
    let stage = |name: &str, from: f64, measured: bool| json!({"name": name, "from_s": from, "to_s": from + 10.0, "measured": measured, "requests": 9, "run_s": 1});
    serde_json::from_value(json!({
        "scenario": "s", "objective": "o", "seed": 1, "deadline_ms": 1000, "requests": 27, "mean_run_ms": 80,
        "capacity": {"cores": 2.0, "requests_per_s": 25.0},
        "priorities": ["high", "low"],
        "stages": [stage("warm", 0.0, false), stage("calm", 10.0, true), stage("crowd", 20.0, true)],
        "thresholds": thresholds,
    }))
    .unwrap()
}

/// As k6 exports it, with as much as is read.
fn summary() -> Value {
    let mut metrics = json!({
        "weir_lag": {"p(99)": 1.0, "max": 4.0},
        "weir_began_ms": {"value": 1e12},
        "weir_good_work_ms{stage:calm}": {"count": 6000, "rate": 1},
        "weir_good_work_ms{stage:crowd}": {"count": 19000, "rate": 1},
    });
    for (stage, p99) in [("calm", 100.0), ("crowd", 140.0)] {
        for tags in ["", ",priority:high", ",priority:low"] {
            metrics[format!("weir_success{{stage:{stage}{tags}}}")] =
                json!({"passes": 999, "fails": 1, "value": 0.999});
            metrics[format!("weir_duration{{stage:{stage}{tags}}}")] =
                json!({"p(50)": 10.0, "p(95)": 50.0, "p(99)": p99});
        }
    }
    metrics["weir_outcomes{stage:crowd,priority:low,outcome:refused}"] = json!({"count": 7});
    json!({ "metrics": metrics })
}

fn figures(plan: &Plan) -> Figures {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("k6.json");
    fs::write(&file, summary().to_string()).unwrap();
    Figures::read(&file, plan).unwrap()
}

#[test]
fn figures_are_those_of_measured_stages_and_goodput_is_a_share_of_the_cores() {
    let figures = figures(&plan(json!([])));
    let rows: Vec<_> = figures
        .rows
        .iter()
        .map(|row| (&*row.stage, row.priority.as_deref()))
        .collect();
    let all = [Some("high"), Some("low"), None];
    let wanted: Vec<_> = ["calm", "crowd"]
        .into_iter()
        .flat_map(|stage| all.map(|priority| (stage, priority)))
        .collect();
    assert_eq!(rows, wanted);
    // 10 s of 2 cores.
    assert_eq!(figures.goodput["calm"], 0.3);
    let low = figures.row("crowd", Some("low")).unwrap();
    assert_eq!((low.requests, low.success, low.p99), (1000, 0.999, 140.0));
    assert_eq!((low.outcomes["refused"], low.outcomes["late"]), (7, 0));
    assert_eq!(figures.dropped, 0);
}

#[test]
fn a_summary_of_another_plan_is_refused() {
    let mut other = plan(json!([]));
    other.stages[2].name = "lull".to_owned();
    let error = Figures::parse(&summary()["metrics"], &other).unwrap_err();
    assert!(format!("{error:#}").contains("weir_success{stage:lull,priority:high}"));
}

#[test]
fn thresholds_are_met_or_missed_and_say_by_what() {
    let plan = plan(json!([
        {"stage": "crowd", "priority": "high", "figure": "success", "at_least": 0.999, "objective": "a"},
        {"stage": "crowd", "figure": "goodput", "at_least": 0.96, "objective": "b"},
        {"stage": "crowd", "priority": "high", "figure": "p99_ms",
         "at_most_times": {"factor": 1.5, "stage": "calm"}, "objective": "c"},
        {"stage": "crowd", "priority": "high", "figure": "p99_ms", "at_most": 139, "objective": "d"},
        {"stage": "warm", "figure": "p50_ms", "at_most": 1, "objective": "e"},
    ]));
    let verdicts = verdicts(&plan, &figures(&plan), false);
    let lines: Vec<String> = verdicts.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "met: crowd, high: success 99.90 % (at least 99.90 %): a",
            "MISSED: crowd: goodput 0.950 of the capacity (at least 0.960 of the capacity): b",
            "met: crowd, high: p99 140 ms (1.40 times that of calm, 100 ms; at most 1.5 times): c",
            "MISSED: crowd, high: p99 140 ms (at most 139 ms): d",
            // Not to know is not to have met it.
            "MISSED: warm: p50 unknown (at most 1.00 ms): e",
        ]
    );
    let met: Vec<bool> = verdicts.iter().map(|verdict| verdict.holds).collect();
    assert_eq!(met, [true, false, true, false, false]);
}

#[test]
fn ways_are_taken_by_name_and_all_is_each_once() {
    let ways = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        super::ways(&names)
    };
    assert_eq!(ways(&["least_request", "all"]).unwrap().len(), 8);
    assert_eq!(ways(&["weir"]).unwrap(), [Way::Weir]);
    let error = ways(&["round_robin"]).unwrap_err().to_string();
    assert!(
        error.contains("there is no way round_robin: weir, "),
        "{error}"
    );
}

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    args: Args,
}

/// Four seconds of the smallest scenario, with what `cargo xtask test` names; none without it.
fn real(folder: &Path, flags: &[&str]) -> Option<Load> {
    let loadtest = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let programs = provided_or_skip("WEIR_BIN_DIR")?;
    let given = [
        ("--envoy", provided_or_skip("WEIR_ENVOY")?),
        ("--filter", provided_or_skip("WEIR_FILTER_WASM")?),
        ("--control", programs.join("weir-control")),
        ("--worker", programs.join("weir-worker")),
        ("--k6", provided_or_skip("WEIR_K6")?),
        ("--scenarios", loadtest.join("scenarios")),
        ("--script", loadtest.join("k6/load.js")),
    ];
    let given = given.map(|(flag, file)| format!("{flag}={}", file.display()));
    let typed = ["load", "smoke", "--seconds=4"].iter().chain(flags);
    let line = typed.map(|word| (*word).to_owned()).chain(given);
    Some(Load::set_up(Typed::parse_from(line).args, folder).unwrap())
}

#[test]
fn k6_sends_a_scenario_through_a_real_envoy_and_weir_answers_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut load) = real(folder.path(), &[]) else {
        return;
    };
    let tried = load.try_way(Way::Weir).unwrap();
    let sent: u64 = tried.figures.by_priority().map(|row| row.requests).sum();
    let planned = load.made.plan.requests as u64;
    assert_eq!((sent, tried.figures.dropped), (planned, 0));
    let all = tried.figures.row("smoke", None).unwrap();
    assert_eq!(answered(&tried), all.requests);
    assert!(
        tried.samples.iter().any(|sample| sample.level.is_some()),
        "{:?}",
        tried.samples
    );
    // They would have ended with a killed command, and who they were is known.
    let recorded = record::read(&folder.path().join("weir").join(record::FILE)).unwrap();
    assert_eq!(recorded.len(), stage::HOSTS + stage::CALLERS.count + 1);
    assert!(!recorded.iter().any(record::Entry::lives), "{recorded:?}");
    // Both summaries are kept, and each objective stands in the text.
    let text = fs::read_to_string(folder.path().join("weir/k6.txt")).unwrap();
    assert!(
        text.contains("objective (smoke, high, success): nothing fails where"),
        "{text}"
    );
    assert!(text.contains("weir_success"), "{text}");
}

#[test]
fn k6_sends_a_scenario_through_sidecars_of_consul() {
    let folder = tempfile::tempdir().unwrap();
    let Some(consul) = provided_or_skip("WEIR_CONSUL") else {
        return;
    };
    let consul = format!("--consul={}", consul.display());
    let Some(mut load) = real(folder.path(), &["--against=mesh", &consul]) else {
        return;
    };
    let tried = load.try_way(Way::Weir).unwrap();
    let planned = load.made.plan.requests as u64;
    let all = tried.figures.row("smoke", None).unwrap();
    assert_eq!(all.requests, planned);
    assert_eq!(answered(&tried), planned);
    assert!(
        tried.samples.iter().any(|sample| sample.level.is_some()),
        "{:?}",
        tried.samples
    );
}

/// Requests with a good answer. How long it took is the machine's affair.
fn answered(tried: &Tried) -> u64 {
    let rows = tried.figures.rows.iter();
    rows.flat_map(|row| [row.outcomes.get("good"), row.outcomes.get("late")])
        .flatten()
        .sum()
}

#[test]
fn envoy_takes_the_configuration_of_each_way() {
    let folder = tempfile::tempdir().unwrap();
    let Some(load) = real(folder.path(), &[]) else {
        return;
    };
    for way in Way::value_variants() {
        let hosts = ["127.0.0.1:1".parse().unwrap()];
        let bootstrap = bootstrap::alone("n", way.balancer(), &hosts, "2s", &way.filters().1);
        let file = folder.path().join(way.name());
        fs::write(&file, bootstrap.to_string()).unwrap();
        let mut command = Command::new(&load.args.programs.fleet.envoy);
        // It tells formats by the name.
        let file = {
            fs::rename(&file, file.with_extension("json")).unwrap();
            file.with_extension("json")
        };
        command.args(["--mode", "validate", "-c"]).arg(&file);
        command.captured().unwrap();
    }
}

#[test]
fn objectives_are_missed_where_nobody_answers_and_k6_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let Some(load) = real(folder.path(), &[]) else {
        return;
    };
    let (programs, made) = (&load.args.programs, &load.made);
    // Nobody listens there once it is dropped.
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let k6 = |settings: &[(&str, String)]| {
        let mut command = Command::new(&programs.k6);
        command.args(["run", "--address", "", "--quiet", "--no-usage-report"]);
        for (name, value) in settings {
            command.arg("-e").arg(format!("{name}={value}"));
        }
        command.arg(&programs.script).output().unwrap()
    };
    let path = |file: &Path| file.display().to_string();
    let mut settings = vec![
        ("PLAN", path(&made.plan_file)),
        ("WORKLOAD", path(&made.workload)),
        ("TARGETS", format!("http://{nobody}")),
    ];
    let output = k6(&settings);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(99), "{said}");
    assert!(
        said.contains("weir_success{stage:smoke,priority:high}"),
        "{said}"
    );
    // Nothing is sent to other machines, or without a setting.
    settings[2].1 = "http://192.0.2.1:80".to_owned();
    let output = k6(&settings);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("ALLOW_REMOTE=1"),
        "{said}"
    );
    let output = k6(&settings[..1]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    for name in ["-e WORKLOAD=", "-e TARGETS="] {
        assert!(said.contains(name), "{said}");
    }
}
