// SPDX-License-Identifier: Apache-2.0
//! What cannot be is refused, and what makes no sense is said.

use std::process::{Command, Output};
use std::time::Duration;

use weir_sim::scenario::{HostFault, Impossible, Preemption, Trouble};
use weir_sim::{Scenario, simulate};

use crate::{SECOND, scenario};

#[test]
fn impossible_scenarios_are_refused_with_the_field_and_the_reason() {
    let refused = |change: fn(&mut Scenario), named: &str| {
        let mut scenario = scenario();
        change(&mut scenario);
        let error = simulate(&scenario, &[], [], |_| {})
            .unwrap_err()
            .to_string();
        assert!(error.contains(named), "{error:?} does not name {named:?}");
    };
    refused(|s| s.hosts = 0, "hosts");
    refused(|s| s.hosts = weir_policy::MAX_HOSTS + 1, "limit");
    refused(|s| s.host.cores = 0, "cores");
    refused(|s| s.callers = 0, "callers");
    refused(|s| s.heavy_caller = Some(1.1), "heavy caller");
    refused(|s| s.heavy_caller = Some(f64::NAN), "heavy caller");
    refused(|s| s.attempts = 0, "attempts");
    refused(|s| s.poll = Duration::ZERO, "poll");
    refused(|s| s.publish = Duration::ZERO, "publish");
    refused(|s| s.report = Duration::ZERO, "report");
    refused(|s| s.backoff.base = Duration::ZERO, "backoff");
    let model = || weir_llm_host::Settings {
        slots: 1,
        max_queued: 1,
        capacity_blocks: 1,
        block_tokens: 512,
        timing: weir_llm_host::Timing::new(8000.0, 25.0, 1.0),
        change_log: 1,
    };
    let mut prompts = scenario();
    prompts.language_model = Some(model());
    assert_eq!(prompts.check(), Ok(()));
    prompts.timeouts.queue = Some(SECOND);
    assert_eq!(
        prompts.check(),
        Err(Impossible::NotKnown("a time-out of the queue"))
    );
    let (slots, capacity_blocks) = (0, 0);
    prompts.language_model = Some(weir_llm_host::Settings { slots, ..model() });
    assert_eq!(prompts.check(), Err(Impossible::NoRoom("slots")));
    prompts.language_model = Some(weir_llm_host::Settings {
        capacity_blocks,
        ..model()
    });
    assert_eq!(prompts.check(), Err(Impossible::NoRoom("blocks")));
    let away = |hosts, from, to| {
        Some(Preemption {
            hosts,
            life: SECOND,
            notice: SECOND,
            away: (from * SECOND, to * SECOND),
        })
    };
    let mut taken = scenario();
    taken.preemption = away(5, 1, 2);
    assert_eq!(taken.check(), Err(Impossible::TooManyTaken(5, 4)));
    taken.preemption = away(4, 2, 1);
    assert_eq!(taken.check(), Err(Impossible::AwayReversed));
    let trouble = |host, what| Trouble {
        at: SECOND,
        host,
        what,
    };
    let mut troubled = scenario();
    troubled.troubles = vec![trouble(4, HostFault::Lost)];
    assert_eq!(troubled.check(), Err(Impossible::NoSuchHost(4, 4)));
    for factor in [0.0, -1.0, 1e300, f64::NAN, f64::INFINITY] {
        troubled.troubles = vec![trouble(3, HostFault::Slowed(factor))];
        assert_eq!(troubled.check(), Err(Impossible::BadSlowdown(3)));
    }
}

fn run(workload: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("workload.csv");
    std::fs::write(&path, workload).unwrap();
    Command::new(env!("CARGO_BIN_EXE_weir-sim"))
        .arg("run")
        .args(arguments)
        .arg("--workload")
        .arg(path)
        .output()
        .unwrap()
}

/// Runs the command on these bytes with `--out`: what it said, and whether it left anything.
fn refused_workload(bytes: &[u8], arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("workload");
    std::fs::write(&path, bytes).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_weir-sim"))
        .args(["run", "--workload"])
        .arg(&path)
        .arg("--out")
        .arg(folder.path().join("out.csv"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(!output.status.success() && output.stdout.is_empty());
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1, "nothing but the workload is there");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn broken_workloads_are_refused_with_line_field_and_reason_and_nothing_is_written() {
    let header = "t_us,key,priority,user,run_us,bytes\n";
    let good = "5,p,low,,10,1\n";
    for (rows, words) in [
        ("4,p,low,,10,1\n", "line 3: t_us: 4 is before 5"),
        (
            "-6,p,low,,10,1\n",
            "line 3: t_us: \"-6\" is not a whole number",
        ),
        (
            "6,p,low,,-10,1\n",
            "line 3: run_us: \"-10\" is not a whole number",
        ),
        (
            "6,p,low,,10,\n",
            "line 3: bytes: \"\" is not a whole number",
        ),
        ("6,p,low,,10\n", "line 3: line: has 5 fields instead of 6"),
        ("6,p,,,10,1\n", "line 3: priority: is empty"),
        (
            "6,p,urgent,,10,1\n",
            "line 3: priority: \"urgent\" is neither high nor low",
        ),
    ] {
        let text = format!("{header}{good}{rows}");
        let error = refused_workload(text.as_bytes(), &[]);
        assert!(error.contains(words), "{rows:?}: {error}");
    }
    let missing = "{\"t_us\":1,\"key\":\"p\",\"priority\":\"low\",\"user\":\"\",\"run_us\":1}\n";
    let error = refused_workload(missing.as_bytes(), &[]);
    assert!(error.contains("line 1: bytes: is missing"), "{error}");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, too_much().as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let error = refused_workload(&packed[..packed.len() / 2], &[]);
    assert!(
        error.contains("line ") && error.contains("cut short"),
        "{error}"
    );
}

#[test]
fn an_impossible_fleet_writes_nothing() {
    for (arguments, words) in [
        (&["--hosts", "0"][..], "hosts"),
        (&["--cores", "0"], "cores"),
        (&["--language-model", "--model-blocks", "0"], "blocks"),
        (
            &["--language-model", "--prefill-tokens-per-second", "0"],
            "prefill",
        ),
        (&["--language-model", "--queue-timeout", "1s"], "queue"),
        (&["--language-model", "--trouble", "1s:0:3.0"], "slowdown"),
        (&["--trouble", "1s:99:lost"], "host 99"),
        (&["--trouble", "1s:0:1e300"], "0.001 to 1000"),
        (&["--hosts", "1000000"], "limit"),
        (&["--deadline", "1e18m"], "--deadline"),
    ] {
        let error = refused_workload(too_much().as_bytes(), arguments);
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
}

#[test]
fn more_prompts_than_hosts_can_read_without_shedding_are_flagged() {
    let lines = (0..200).map(|n| format!("{},a{n};b,low,,25000,4000000\n", n * 5000));
    let header = "t_us,key,priority,user,run_us,bytes\n".to_owned();
    let text = header + &lines.collect::<String>();
    let said = |more: &[&str]| {
        let arguments = [&["--language-model", "--hosts", "2"], more].concat();
        let output = run(&text, &arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&[]).contains("more work than the fleet can do without caches"));
    assert!(!said(&["--overload", "breaker"]).contains("more work"));
}

/// 200 requests, each of a core second, within a second.
fn too_much() -> String {
    let lines = (0..200).map(|n| format!("{},p,low,,1000000,1\n", n * 5000));
    "t_us,key,priority,user,run_us,bytes\n".to_owned() + &lines.collect::<String>()
}

#[test]
fn the_command_line_refuses_the_same() {
    for flag in ["--hosts", "--cores", "--callers"] {
        let output = run(&too_much(), &[flag, "0"]);
        assert!(!output.status.success());
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(&flag[2..]), "{error}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn absurd_numbers_are_refused_with_the_flag_and_what_may_stand_there() {
    for (arguments, named) in [
        (&["document-001", "--hours", "1e18"][..], "at most 240"),
        (&["fit", "--hours", "241"], "at most 240"),
        (
            &["workload", "document-001", "--out", "x", "--hours", "1e18"],
            "at most 240",
        ),
        (&["overload", "--load", "1e300"], "0.01 to 100"),
        (
            &["workload", "overload", "--out", "x", "--load", "1e-9"],
            "0.01 to 100",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-sim"));
        let output = command.args(arguments).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty());
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(named), "{arguments:?}: {error}");
    }
}

#[test]
fn a_summary_says_that_it_is_simulated() {
    let output = run("t_us,key,priority,user,run_us,bytes\n5,p,low,,10,1\n", &[]);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["what"], "SIMULATED");
    assert_eq!(summary["all"]["requests"], 1);
}

#[test]
fn more_work_than_cores_without_shedding_is_flagged() {
    let said = |workload: &str, arguments: &[&str]| {
        let output = run(workload, arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("more work than")
    };
    assert!(said(&too_much(), &["--hosts", "2", "--cores", "2"]));
    assert!(!said(&too_much(), &["--hosts", "20", "--cores", "20"]));
    let shedding = ["--hosts", "2", "--cores", "2", "--overload", "breaker"];
    assert!(!said(&too_much(), &shedding));
}
