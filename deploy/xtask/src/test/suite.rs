// SPDX-License-Identifier: Apache-2.0
//! The tests of the workspace: built together, run side by side, counted.
//!
//! ```text
//! cargo test --no-run ─> binary ─> pool ─> logs, records of what was skipped ─> report ─> allowed?
//! ```

mod allowed;
pub(super) mod binary;
mod pool;
mod report;

use std::process::Command;
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::{Result, bail};
use weir_stage::interrupt;

use crate::packages::Packages;
use crate::test::Args;
use crate::test::set_up::SetUp;
use crate::test::suite::binary::Binary;
use crate::test::suite::pool::{Done, End, Job, Pool};
pub(crate) use crate::test::suite::report::Report;
use crate::workspace::Workspace;

/// No program takes a quarter of it, on a machine that does nothing else.
const LIMIT: Duration = Duration::from_secs(1500);
/// With `--long`, which repeats some things a hundred times as often.
const LONG_LIMIT: Duration = Duration::from_secs(6 * 3600);

/// Runs the tests and adds what they report to `report`, also when some fail.
pub(super) fn run(
    workspace: &Workspace,
    packages: &Packages,
    args: &Args,
    set_up: &SetUp,
    report: &mut Report,
) -> Result<()> {
    let mut binaries = built(workspace, packages, args)?;
    binaries.sort_by_key(|binary| !binary.slow);
    let mut jobs: Vec<Job> = binaries.iter().map(|binary| job(binary, args)).collect();
    if packages.has_documentation(args.package.as_deref()) {
        jobs.push(Job {
            name: "documentation".into(),
            command: documentation(workspace, args),
            alone: false,
        });
    }
    for job in &mut jobs {
        environment(&mut job.command, args, set_up);
    }
    let folder = workspace.target.join("test-logs");
    let pool = Pool {
        side_by_side: available_parallelism().map_or(1, usize::from) + 1,
        limit: if args.long { LONG_LIMIT } else { LIMIT },
        folder: &folder,
    };
    println!(
        "{} test programs, {} at a time; their output is in {}",
        jobs.len(),
        pool.side_by_side,
        workspace.shown(&folder)
    );
    interrupt::catch()?;
    let (all, mut number) = (jobs.len(), 0);
    pool.play(jobs, |done| {
        number += 1;
        let words = report.add(&done)?;
        if !words.is_empty() {
            let seconds = done.took.as_secs_f64();
            println!("[{number}/{all}] {}: {words}, {seconds:.1} s", done.name);
        }
        show_failure(&done)
    })?;
    verdict(workspace, report)
}

/// The test programs, also those that `cargo test` leaves out.
fn built(workspace: &Workspace, packages: &Packages, args: &Args) -> Result<Vec<Binary>> {
    let mut binaries = binary::build(&mut cargo_test(workspace, args), packages)?;
    let left_out = packages.left_out(args.package.as_deref());
    if !left_out.is_empty() {
        let mut named = cargo_test(workspace, args);
        named.args(left_out.iter().flat_map(|name| ["--test", name]));
        for binary in binary::build(&mut named, packages)? {
            // Another package may have one of this name that is not left out.
            if !binaries.iter().any(|known| known.program == binary.program) {
                binaries.push(binary);
            }
        }
    }
    Ok(binaries)
}

fn verdict(workspace: &Workspace, report: &Report) -> Result<()> {
    let failed = report.failed();
    if !failed.is_empty() {
        bail!(
            "{} failed, and `cargo xtask test --only test --filter NAME` runs one: {}",
            failed.len(),
            failed.join(", ")
        );
    }
    allowed::check(workspace, &report.skipped())
}

/// All that a program said, if it did not end well.
fn show_failure(done: &Done) -> Result<()> {
    if !matches!(done.end, End::Exited(status) if status.success()) {
        let log = std::fs::read(&done.log)?;
        println!("{}", String::from_utf8_lossy(&log));
    }
    Ok(())
}

/// `cargo test` of the packages that are asked for.
fn cargo_test(workspace: &Workspace, args: &Args) -> Command {
    let mut command = workspace.cargo();
    command.arg("test");
    match &args.package {
        Some(package) => command.args(["--package", package]),
        None => command.arg("--workspace"),
    };
    command
}

fn job(binary: &Binary, args: &Args) -> Job {
    let mut command = binary.command();
    command.args(&args.filter);
    Job {
        name: binary.name.clone(),
        command,
        alone: binary.alone,
    }
}

/// Examples in documentation, which Cargo builds as it runs them.
fn documentation(workspace: &Workspace, args: &Args) -> Command {
    let mut command = cargo_test(workspace, args);
    command
        .args(["--doc", "--no-fail-fast", "--"])
        .args(&args.filter);
    command
}

/// What tests find by variables.
fn environment(command: &mut Command, args: &Args, set_up: &SetUp) {
    command.envs(set_up.variables.iter().map(|(name, path)| (name, path)));
    if args.long {
        command
            .env("WEIR_SEQUENCES", "10000")
            .env("WEIR_RUNS", "100")
            .env("WEIR_KILLS", "1000");
    }
    if args.nightly {
        command.env(weir_needs::NIGHTLY, "1");
    }
}
