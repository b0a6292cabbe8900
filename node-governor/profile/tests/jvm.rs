// SPDX-License-Identifier: Apache-2.0
//! A program of the JVM, sampled by its recorder and observed by the agent.

mod running;

use std::path::Path;
use std::process::Command;

use running::Running;
use weir_needs::provided_or_skip;

/// Enough samples for a report even where the program gets an eighth of a core.
const SECONDS: u64 = 8;

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
        let report = running
            .profile(SECONDS, Some(agent.clone()))
            .expect("it runs");
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
    let alone = running.profile(SECONDS, None).expect("it runs");
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
