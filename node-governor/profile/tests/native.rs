// SPDX-License-Identifier: Apache-2.0
//! Programs of machine code, sampled and observed by the real kernel.

mod running;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use running::Running;
use weir_needs::{Need, skip};

/// False, and the test skipped, where the kernel does not allow it.
fn can_observe() -> bool {
    let can = weir_uprobe::doctor();
    if let Err(error) = &can {
        skip(Need::Uprobes, error);
    }
    can.is_ok()
}

#[test]
fn the_function_that_is_called_once_for_each_query_is_found() {
    if !can_observe() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let binary = folder.path().join("search");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/search.cpp");
    let mut compiler = Command::new("c++");
    let options = [
        "-O2",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-pthread",
    ];
    let built = compiler
        .args(options)
        .arg("-o")
        .arg(&binary)
        .arg(source)
        .status();
    assert!(built.expect("there is a compiler").success());
    let running = Running::start(&mut Command::new(&binary));
    let report = running.profile(6, None).expect("it runs");
    let (proposed, calls) = report
        .proposed()
        .unwrap_or_else(|| panic!("none:\n{report}"));
    assert_eq!(
        proposed.function().written(),
        "index_of::evaluate(int)",
        "{report}"
    );
    assert!(proposed.share.of_all > 0.5, "{report}");
    assert!(calls.quantile(0.5) > Duration::from_micros(100), "{report}");
    let named = |name: &str| {
        let mut all = report.candidates.iter();
        let found = all.find(|one| one.function().written().starts_with(name));
        found.unwrap_or_else(|| panic!("no {name}:\n{report}"))
    };
    // The loop of the server never returns, and each query scores thousands of documents.
    let of_loop = named("server::run").calls.as_ref();
    assert_eq!(of_loop.map(weir_profile::Calls::count), Some(0), "{report}");
    let score = named("scorer::score");
    assert!(score.calls.is_none(), "{report}");
    assert!(
        score
            .refused
            .as_ref()
            .is_some_and(|reason| reason.contains("times a second")),
        "{report}"
    );
    let configuration = report.configuration().expect("one is proposed");
    assert!(
        configuration.contains("symbol: \"_ZN8index_of8evaluateEi\""),
        "{configuration}"
    );
}

#[test]
fn of_a_program_that_does_nothing_that_is_said() {
    if !can_observe() {
        return;
    }
    let running = Running::start(Command::new("sleep").arg("1000"));
    let error = running.profile(1, None).expect_err("it sleeps").to_string();
    assert!(error.contains("the program hardly runs"), "{error}");
}

#[test]
fn a_process_that_is_not_there_is_said() {
    let mut running = Running::start(&mut Command::new("true"));
    running.0.wait().expect("it ends");
    let error = running.profile(1, None).expect_err("it has ended");
    let error = error.to_string();
    assert!(error.ends_with("there is none of this number"), "{error}");
}
