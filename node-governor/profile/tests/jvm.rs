// SPDX-License-Identifier: Apache-2.0
//! A program of the JVM, sampled by its recorder and observed by the agent.

mod running;

use std::path::{Path, PathBuf};
use std::process::Command;

use running::Running;
use weir_needs::provided_or_skip;
use weir_profile::{Error, Report};

/// The first is enough on most machines; where the program hardly runs the profile asks for longer, and gets it.
const SECONDS: [u64; 3] = [8, 32, 128];

/// What is said of it once it has run for long enough.
fn profile(running: &Running, agent: Option<&PathBuf>) -> Report {
    let mut reports =
        SECONDS
            .into_iter()
            .filter_map(|seconds| match running.profile(seconds, agent.cloned()) {
                Err(Error::Idle { .. }) => None,
                report => Some(report.expect("it runs")),
            });
    reports.next().expect("it runs for a second of each minute")
}

#[test]
fn a_jvm_is_profiled_again_and_again_and_never_while_another_observes_it() {
    let Some(agent) = provided_or_skip("WEIR_EVENTS_AGENT") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/Search.java");
    let mut compiler = Command::new("javac");
    let built = compiler.arg("-d").arg(folder.path()).arg(source).status();
    assert!(built.expect("there is a JDK").success());
    let mut java = Command::new("java");
    let running = Running::start(java.arg("-cp").arg(folder.path()).arg("Search"));
    running.wait_for_file("/libjvm.so");
    for _ in 0..2 {
        let report = profile(&running, Some(&agent));
        let (proposed, calls) = report
            .proposed()
            .unwrap_or_else(|| panic!("none:\n{report}"));
        // It is the first that another class calls; the loop that calls it never returns.
        assert_eq!(
            proposed.function().name,
            "Search$Index.evaluate",
            "{report}"
        );
        assert!(calls.count() > 20, "{report}");
    }
    let alone = profile(&running, None);
    assert!(alone.proposed().is_none(), "{alone}");
    assert!(alone.to_string().contains("--agent"), "{alone}");
    let ring = folder.path().join("governors.events");
    let observed = format!("\"ring={},hot=1:Search$Index.evaluate\"", ring.display());
    let mut jcmd = Command::new("jcmd");
    jcmd.arg(running.0.id().to_string()).arg("JVMTI.agent_load");
    let attached = jcmd.arg(&agent).arg(observed).output().expect("a JDK");
    assert!(attached.status.success(), "{attached:?}");
    let refused = running.profile(3, Some(agent)).expect_err("it is observed");
    assert!(
        refused.to_string().contains("governors.events already"),
        "{refused}"
    );
}
