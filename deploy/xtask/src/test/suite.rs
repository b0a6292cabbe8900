// SPDX-License-Identifier: Apache-2.0
//! `cargo test` over the workspace, counting what it reports while showing it.

use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::ops::AddAssign;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::test::{Args, SetUp};
use crate::tools;
use crate::workspace::Workspace;

/// Tests over all test binaries.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

impl Counts {
    /// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; …`; none for any other line.
    fn parse(line: &str) -> Option<Self> {
        let (_, fields) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let mut counts = Self::default();
        for field in fields.split("; ") {
            let (number, what) = field.split_once(' ')?;
            match what {
                "passed" => counts.passed = number.parse().ok()?,
                "failed" => counts.failed = number.parse().ok()?,
                "ignored" => counts.skipped = number.parse().ok()?,
                _ => {}
            }
        }
        Some(counts)
    }
}

/// Runs the tests and adds what they report to `counts`, also when some fail.
pub(super) fn run(
    workspace: &Workspace,
    args: &Args,
    set_up: &SetUp,
    counts: &mut Counts,
) -> Result<()> {
    let mut command = workspace.cargo();
    command.args(["test", "--no-fail-fast"]);
    match &args.package {
        Some(package) => command.args(["--package", package]),
        None => command.arg("--workspace"),
    };
    command.arg("--").args(&args.filter);
    command
        .env("WEIR_FILTER_WASM", &set_up.filter)
        .env("WEIR_ENVOY", &set_up.envoy)
        .env("WEIR_BIN_DIR", workspace.target.join("debug"));
    if args.long {
        command
            .env("WEIR_SEQUENCES", "10000")
            .env("WEIR_RUNS", "100")
            .env("WEIR_KILLS", "1000");
    }
    if let Some(folder) = &set_up.guest {
        command.env("WEIR_GUEST_DIR", folder);
    }
    for (name, program) in &set_up.programs {
        command.env(tools::variable(name), program);
        // Every package of Prometheus has promtool beside it.
        let promtool = program.with_file_name("promtool");
        if *name == tools::PROMETHEUS && promtool.is_file() {
            command.env("WEIR_PROMTOOL", promtool);
        }
    }
    if let Some(java) = &set_up.java {
        command
            .env("WEIR_EVENTS_AGENT", &java.events_agent)
            .env("WEIR_SEARCH_NODE", &java.search_node);
    }
    let mut failed = Vec::new();
    if stream(&mut command, &mut io::stdout(), counts, &mut failed)? {
        return Ok(());
    }
    match counts.failed {
        0 => bail!("cargo test failed before or outside the tests: see its output above"),
        number => bail!(
            "{number} failed, and `cargo xtask test --only test --filter NAME` runs one: {}",
            failed.join(", ")
        ),
    }
}

/// The test that failed, as `test NAME ... FAILED` says.
fn failed_test(line: &str) -> Option<&str> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    // Names may be padded to one width.
    Some(name.trim_end())
}

/// Copies the command's output line by line, and adds the names of tests that failed. Returns whether it
/// succeeded.
fn stream(
    command: &mut Command,
    shown: &mut impl Write,
    counts: &mut Counts,
    failed: &mut Vec<String>,
) -> Result<bool> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("starting cargo test")?;
    let stdout = child.stdout.take().context("cargo test has no output")?;
    let mut lines = BufReader::new(stdout);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        shown.write_all(&line)?;
        let text = String::from_utf8_lossy(&line);
        if let Some(more) = Counts::parse(text.trim_end()) {
            *counts += more;
        }
        failed.extend(failed_test(text.trim_end()).map(str::to_owned));
        line.clear();
    }
    Ok(child.wait()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_binaries_are_summed() {
        let mut counts = Counts::default();
        for line in [
            "running 4 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.5s",
        ] {
            counts += Counts::parse(line).unwrap_or_default();
        }
        assert_eq!(counts.to_string(), "13 passed, 2 failed, 1 skipped");
    }

    #[test]
    fn lines_that_only_look_like_results_count_nothing() {
        for line in [
            "test result: ",
            "test result: ok. many passed; 0 failed",
            "passed; failed",
        ] {
            assert_eq!(Counts::parse(line), None, "{line}");
        }
    }

    #[test]
    fn output_is_counted_and_failures_are_named_although_the_command_fails() {
        let (mut counts, mut failed) = (Counts::default(), Vec::new());
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "echo 'test a::b ... ok
test a::c    ... FAILED
test result: FAILED. 1 passed; 1 failed; 0 ignored'; exit 101",
        ]);
        assert!(!stream(&mut command, &mut io::sink(), &mut counts, &mut failed).unwrap());
        assert_eq!(counts.to_string(), "1 passed, 1 failed");
        assert_eq!(failed, ["a::c"]);
    }
}
