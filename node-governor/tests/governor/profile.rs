// SPDX-License-Identifier: Apache-2.0
//! What `weir-governor profile` proposes is a configuration.

use std::path::PathBuf;
use std::time::Duration;

use weir_governor::config;
use weir_profile::{Calls, Candidate, Function, Report, Share, choose};

fn report(function: Function) -> Report {
    let mut calls = Calls::default();
    (1..=100).for_each(|ms| calls.add(Duration::from_millis(ms)));
    let candidates = vec![Candidate {
        share: Share {
            function,
            of_all: 0.7,
            entered: 1.0,
            depth: 3.0,
        },
        calls: Some(calls),
        refused: None,
    }];
    Report {
        is_observed: true,
        time: Duration::from_secs(10),
        queries: Some(5.0),
        lost: 0,
        chosen: choose(&candidates),
        path: Vec::new(),
        candidates,
    }
}

fn loaded(report: &Report) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir-governor.yaml");
    let text = report.configuration().unwrap();
    std::fs::write(&file, &text).unwrap();
    let read = config::load(&file).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    format!("{read:?}")
}

#[test]
fn what_is_proposed_for_a_jvm_can_be_read() {
    let report = report(Function::method("org.x.Query$Phase.execute"));
    let read = loaded(&report);
    assert!(read.contains("Query$Phase.execute"), "{read}");
    let told = report.to_string();
    assert!(told.contains("hot=1:org.x.Query$Phase.execute"), "{told}");
    // 100 calls in 10 s, of 5 queries each second.
    assert!(told.contains("   10.0     2.00  "), "{told}");
}

#[test]
fn what_is_proposed_for_another_program_can_be_read() {
    let mut function = Function::method("_ZN6search8evaluateEi");
    function.binary = Some(PathBuf::from("/usr/bin/a \"b\\c\""));
    let read = loaded(&report(function));
    assert!(read.contains("_ZN6search8evaluateEi"), "{read}");
    assert!(read.contains("search::evaluate"), "{read}");
}

#[test]
fn without_calls_nothing_is_proposed_and_why_is_said() {
    let mut report = report(Function::method("a.A.b"));
    report.candidates[0].calls = None;
    report.chosen = choose(&report.candidates);
    report.is_observed = false;
    assert_eq!(report.configuration(), None);
    assert!(
        report
            .to_string()
            .contains("with --agent weir-events-agent.jar")
    );
}
