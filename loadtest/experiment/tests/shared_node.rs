// SPDX-License-Identifier: Apache-2.0
//! The smallest real round, without the governor and with it, on a real Envoy and real cgroups.
//!
//! That fewer are shed with it is a matter of how fast the machine is: `cargo xtask shared-node` measures it. What
//! makes it so is asserted here: the service has both cores while it has too much to do, and weir-control knows.
//!
//! Where something cannot be had (`WEIR_ENVOY`, `WEIR_FILTER_WASM`, `WEIR_BIN_DIR`, which `cargo xtask test` sets) or
//! no cgroup can be made, the test is reported as ignored.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use libtest_mimic::{Arguments, Trial};
use tempfile::TempDir;
use weir_experiment::cgroups::{self, Cgroups};
use weir_experiment::shared_node::calibration::Calibration;
use weir_experiment::shared_node::plan::Plan;
use weir_experiment::shared_node::programs::Programs;
use weir_experiment::shared_node::rounds::{self, Round, Setting};
use weir_experiment::shared_node::way::Way;
use weir_experiment::shared_node::work::Work;
use weir_experiment::variant::Variant;
use weir_needs::{Lacking, Need, program, provided, skip_test};

/// More than one core can do, also where it was three times slower while it was measured.
const PLAN: Plan = Plan {
    load: 4.0,
    // Twice what the levels need to fall.
    over: Duration::from_secs(5),
    // Calm also where the machine is ten times slower than while it was measured.
    calm_load: 0.05,
    // What waits is given up after 5 s, and the governor then waits before it lends a core.
    calm: Duration::from_secs(12),
    rounds: 1,
};
/// Of cgroups.
const NAME: &str = "shared-node";

const TEST: &str = "with_the_governor_a_loaded_service_has_both_cores_and_nothing_is_left";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let programs = stage();
    if let Err(lacking) = &programs {
        skip_test(TEST, lacking.need, lacking);
    }
    let absent = programs.is_err();
    let trial = Trial::test(TEST, || {
        with_the_governor_a_loaded_service_has_both_cores_and_nothing_is_left(&programs?)
            .map_err(|error| format!("{error:#}").into())
    });
    libtest_mimic::run(&arguments, vec![trial.with_ignored_flag(absent)]).exit_code()
}

fn programs() -> Result<Programs, Lacking> {
    Ok(Programs {
        fleet: weir_experiment::programs::Programs {
            envoy: provided("WEIR_ENVOY")?,
            filter: provided("WEIR_FILTER_WASM")?,
            control: program("weir-control")?,
            worker: program("weir-worker")?,
        },
        governor: program("weir-governor")?,
        replay: program("weir-replay")?,
        consul: None,
        burn: env!("CARGO_BIN_EXE_weir-experiment").into(),
    })
}

/// The programs, where cgroups can be had as well.
fn stage() -> Result<Programs, Lacking> {
    let programs = programs()?;
    Cgroups::new(NAME).map_err(|why| Lacking::new(Need::Cgroups, format!("{why:#}")))?;
    Ok(programs)
}

fn with_the_governor_a_loaded_service_has_both_cores_and_nothing_is_left(
    programs: &Programs,
) -> Result<()> {
    let folder = TempDir::new()?;
    let found = Calibration::measure(programs, &folder.path().join("calibration"))?;
    let work = Work::make(&folder.path().join("work"), found.rules)?;
    let setting = Setting {
        programs,
        plan: &PLAN,
        found,
        work: &work,
        consul: None,
    };
    let run = |way: Way| -> Result<Round> {
        let round = rounds::run(&setting, way, (0, 1), &folder.path().join(way.name()))?;
        nothing_is_left(folder.path())?;
        Ok(round)
    };
    let without = run(Way::Static)?;
    let (had, told) = (cores(&without), said(&without));
    ensure!(without.requests.all().shed > 0, "{told}");
    ensure!(without.batch_cpu_s > 0.0, "{told}");
    ensure!(without.moves == 0 && had == BTreeSet::from([1]), "{told}");
    ensure!(without.capacity_from == "configuration", "{told}");

    let with = run(Way::GovernorMesh)?;
    let (had, told) = (cores(&with), said(&with));
    ensure!(with.batch_cpu_s > 0.0, "{told}");
    ensure!(with.moves > 0 && had == BTreeSet::from([1, 2]), "{told}");
    ensure!(with.capacity_from == "node", "{told}");
    Ok(())
}

/// How many cores the service had, at one look or another.
fn cores(round: &Round) -> BTreeSet<usize> {
    let samples = round.samples.iter();
    samples.map(|sample| sample.service).collect()
}

fn said(round: &Round) -> String {
    let cores: Vec<_> = round.samples.iter().map(|sample| sample.service).collect();
    format!(
        "{}: {:?}, {} moves, batch {} s, capacity from {}, cores {cores:?}",
        round.way.name(),
        round.requests.all(),
        round.moves,
        round.batch_cpu_s,
        round.capacity_from
    )
}

/// No cgroup of this process' rounds stands, so nothing is frozen, and no process has a file of the folder.
fn nothing_is_left(folder: &Path) -> Result<()> {
    let standing = cgroups::standing(NAME);
    ensure!(standing.is_empty(), "{standing:?} still stand");
    for process in fs::read_dir("/proc")?.flatten() {
        for file in fs::read_dir(process.path().join("fd"))
            .into_iter()
            .flatten()
        {
            let place = file.ok().and_then(|file| fs::read_link(file.path()).ok());
            ensure!(
                place.is_none_or(|place| !place.starts_with(folder)),
                "{} still has a file of the round",
                process.path().display()
            );
        }
    }
    Ok(())
}
