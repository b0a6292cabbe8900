// SPDX-License-Identifier: Apache-2.0
//! A minute of everything that comes and goes. Too short to judge whether anything grows, but whatever is counted
//! must be 0 again afterwards.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use weir_soak::{Plan, Programs};

/// What tests are given, and what is built for them.
fn programs() -> Result<Programs> {
    let named = |variable: &str| -> Result<PathBuf> {
        let path = env::var_os(variable).with_context(|| format!("{variable} is not set"))?;
        Ok(path.into())
    };
    let envoy = named("WEIR_ENVOY")?;
    let bin = named("WEIR_BIN_DIR")?;
    let (control, worker) = (bin.join("weir-control"), bin.join("weir-worker"));
    for program in [&envoy, &control, &worker] {
        ensure!(program.is_file(), "{} is no file", program.display());
    }
    Ok(Programs {
        envoy,
        filter: crashing_filter()?,
        control,
        worker,
    })
}

/// The filter that traps when it is told to, where weir-control's tests of faults build it too.
fn crashing_filter() -> Result<PathBuf> {
    let mut target = env::current_exe()?;
    // Of target/debug/deps/short.
    for _ in 0..3 {
        target.pop();
    }
    let (folder, kind) = (target.join("crash-test"), "wasm32-wasip1");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "weir-filter", "--lib"])
        .args(["--features", "crash-test", "--profile", "wasm"])
        .args(["--config", "profile.wasm.lto=\"off\""])
        .args(["--config", "profile.wasm.opt-level=1"])
        .args(["--config", "profile.wasm.codegen-units=16"])
        .args(["--target", kind, "--target-dir"])
        .arg(&folder)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .status()?;
    ensure!(status.success(), "building the filter that traps failed");
    Ok(folder.join(kind).join("wasm/weir_filter.wasm"))
}

#[test]
fn after_a_minute_of_churn_nothing_is_in_flight_and_whoever_left_is_forgotten() -> Result<()> {
    let programs = match programs() {
        Ok(programs) => programs,
        Err(error) => {
            eprintln!("SKIPPED: nothing is soaked here: {error:#}");
            return Ok(());
        }
    };
    let folder = tempfile::tempdir()?;
    let plan = Plan::of(Duration::from_secs(60));
    let outcome = weir_soak::run(&plan, &programs, folder.path())?;
    println!("{outcome}");
    let done = outcome.done;
    for (what, times) in [
        ("policies", done.policies),
        ("hosts", done.hosts),
        ("callers", done.callers),
        ("requests killed", done.requests_killed),
        ("owners killed", done.owners_killed),
    ] {
        assert!(times >= 1, "{what}: {done:?}");
    }
    assert!(outcome.holds(), "{outcome}");
    Ok(())
}
