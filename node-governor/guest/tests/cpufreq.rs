// SPDX-License-Identifier: Apache-2.0
//! A real cpufreq, driven and looked at from inside and from outside, in one guest for all tests.
//!
//! Where no guest can be had (`WEIR_GUEST_DIR` is not set) the tests are reported as ignored.

#[path = "cpufreq/check.rs"]
mod check;
#[path = "cpufreq/events.rs"]
mod events;
#[path = "cpufreq/governor.rs"]
mod governor;
#[path = "cpufreq/hardware.rs"]
mod hardware;
#[path = "cpufreq/hot.rs"]
mod hot;
#[path = "cpufreq/kills.rs"]
mod kills;
#[path = "cpufreq/policies.rs"]
mod policies;
#[path = "cpufreq/restore.rs"]
mod restore;
#[path = "cpufreq/stage.rs"]
mod stage;
#[path = "cpufreq/trouble.rs"]
mod trouble;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use weir_guest::Parts;

use crate::stage::{Scenario, Stage};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // There is one guest, and each test wants it as it was booted.
    arguments.test_threads = Some(1);
    let parts = match Parts::find() {
        Ok(parts) => parts,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let absent = parts.is_none();
    if absent {
        eprintln!("SKIPPED: WEIR_GUEST_DIR is not set, so nothing meets a real cpufreq here");
    }
    let stage = Arc::new(Stage::new(parts));
    let trial = |(name, run): &Scenario| {
        let (stage, run) = (Arc::clone(&stage), *run);
        Trial::test(*name, move || {
            stage.run(run).map_err(|error| format!("{error:#}").into())
        })
        .with_ignored_flag(absent)
    };
    let scenarios = [
        hardware::SCENARIOS,
        restore::SCENARIOS,
        policies::SCENARIOS,
        events::SCENARIOS,
        trouble::SCENARIOS,
        kills::SCENARIOS,
        check::SCENARIOS,
    ];
    let trials = scenarios.into_iter().flatten().map(trial).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    stage.strike();
    conclusion.exit_code()
}
