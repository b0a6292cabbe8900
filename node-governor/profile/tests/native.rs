// SPDX-License-Identifier: Apache-2.0
//! Programs of machine code, sampled and observed by the real kernel.

use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use weir_needs::{Need, skip};
use weir_profile::{Error, Report, Request, profile};

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }

    /// None, and the test skipped, where the kernel does not allow it.
    fn profile(&self, seconds: u64) -> Option<Result<Report, Error>> {
        let request = Request {
            process: NonZeroU32::new(self.0.id()).expect("a process has a number"),
            time: Duration::from_secs(seconds),
            queries: None,
            agent: None,
        };
        if let Err(error) = weir_uprobe::doctor() {
            skip(Need::Uprobes, error);
            return None;
        }
        Some(profile(&request, &mut |_| ()))
    }
}

#[test]
fn the_function_that_is_called_once_for_each_query_is_found() {
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
    let Some(report) = running.profile(6) else {
        return;
    };
    let report = report.expect("it runs");
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
    let running = Running::start(Command::new("sleep").arg("1000"));
    let Some(found) = running.profile(1) else {
        return;
    };
    let error = found.expect_err("it sleeps").to_string();
    assert!(error.contains("the program hardly runs"), "{error}");
}

#[test]
fn a_process_that_is_not_there_is_said() {
    let mut running = Running::start(&mut Command::new("true"));
    running.0.wait().expect("it ends");
    let Some(found) = running.profile(1) else {
        return;
    };
    let error = found.expect_err("it has ended").to_string();
    assert!(error.ends_with("there is none of this number"), "{error}");
}
