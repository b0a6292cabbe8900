// SPDX-License-Identifier: Apache-2.0
//! A minute of everything that comes and goes. Too short to judge whether anything grows, but whatever is counted
//! must be 0 again afterwards.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use weir_experiment::crashing_filter;
use weir_experiment::programs::Programs;
use weir_experiment::soak::{self, Plan};
use weir_needs::{Lacking, program};

/// What tests are given: Envoy, weir-control, weir-worker.
fn provided() -> Result<[PathBuf; 3], Lacking> {
    let envoy = weir_needs::provided("WEIR_ENVOY")?;
    Ok([envoy, program("weir-control")?, program("weir-worker")?])
}

#[test]
fn after_a_minute_of_churn_nothing_is_in_flight_and_whoever_left_is_forgotten() -> Result<()> {
    if !weir_needs::nightly_or_skip() {
        return Ok(());
    }
    let [envoy, control, worker] = match provided() {
        Ok(programs) => programs,
        Err(lacking) => {
            weir_needs::skip(lacking.need, &lacking);
            return Ok(());
        }
    };
    let programs = Programs {
        envoy,
        filter: crashing_filter::build()?,
        control,
        worker,
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
