// SPDX-License-Identifier: Apache-2.0
//! Unsafe code under Miri, which sees an access that is nobody's right where a test would pass, and shows a thread
//! the stores of others in any order that a processor may.

use anyhow::{Result, ensure};

use crate::nightly;
use crate::test::summary::Outcome;
use crate::workspace::Workspace;
use weir_stage::command::Run;

/// By package, the tests of unsafe code that Miri can run: it has no files in memory, no forks and no proxy's
/// functions. And with how many seeds: with each, threads take turns elsewhere and see other stores.
const TESTS: [(&str, &str, u32); 2] = [
    ("weir-events", "map::tests", 64),
    ("weir-uprobe", "memory::tests", 1),
];
const COMPONENTS: [&str; 2] = ["miri", "rust-src"];

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    if let Err(error) = nightly::install_components(&COMPONENTS) {
        println!("UNSAFE CODE IS NOT RUN UNDER MIRI, which cannot be installed: {error:#}");
        return Ok(Outcome::Skipped(
            "the components miri and rust-src of a nightly compiler cannot be installed here",
        ));
    }
    for (package, tests, seeds) in TESTS {
        let miri = || {
            let mut command = nightly::command(workspace);
            command
                .args(["cargo", "miri", "test", "--lib"])
                .args(["--package", package, tests]);
            command
        };
        let listed = miri().args(["--", "--list"]).captured()?;
        ensure!(
            listed.lines().any(|line| line.ends_with(": test")),
            "{package} has no tests in {tests}"
        );
        miri()
            .env("MIRIFLAGS", format!("-Zmiri-many-seeds=0..{seeds}"))
            // Seeds run side by side already.
            .env("RUST_TEST_THREADS", "1")
            .shown()?;
    }
    Ok(Outcome::Passed)
}
