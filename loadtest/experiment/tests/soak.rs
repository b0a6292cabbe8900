// SPDX-License-Identifier: Apache-2.0
//! A minute of everything that comes and goes. Too short to judge whether anything grows, but whatever is counted
//! must be 0 again afterwards.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use weir_experiment::crashing_filter;
use weir_experiment::soak::{self, Plan, Programs};

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
        filter: crashing_filter::build()?,
        control,
        worker,
    })
}

#[test]
fn after_a_minute_of_churn_nothing_is_in_flight_and_whoever_left_is_forgotten() -> Result<()> {
    let programs = match programs() {
        Ok(programs) => programs,
        Err(error) => {
            let why = format!("{error:#}");
            weir_needs::skip(weir_needs::Need::Provided("WEIR_ENVOY"), why);
            return Ok(());
        }
    };
    let folder = tempfile::tempdir()?;
    let plan = Plan::of(Duration::from_secs(60));
    let outcome = soak::run(&plan, &programs, folder.path())?;
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
