// SPDX-License-Identifier: Apache-2.0
//! Every fault in its short form, on real meshes. Where a program cannot be had (`WEIR_CONSUL`, `WEIR_ENVOY` or
//! `WEIR_FILTER_WASM` is not set) the tests are reported as ignored.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};
use weir_experiment::faults::FAULTS;
use weir_experiment::faults::fault::{Fault, Length};
use weir_experiment::faults::run::Suite;
use weir_mesh::Programs;
use weir_needs::{Need, ONE_IS_PLAYED, skip_test};

/// One for each part that goes wrong: a host, connections, a sidecar, weir-control, Consul, what is sent, the machine.
/// All of them take five minutes, of which most is waiting, so they are played nightly.
const EVERY_CHANGE: [&str; 7] = [
    "host-killed",
    "resets",
    "sidecar-killed",
    "leader-stopped",
    "consul-gone",
    "poison-key",
    "disk-full",
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They share a mesh, and the machine.
    arguments.test_threads = Some(1);
    let programs = Programs::from_environment();
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("error: no folder for logs: {error}");
            return ExitCode::FAILURE;
        }
    };
    let prometheus = programs
        .as_ref()
        .is_ok_and(|programs| programs.prometheus.is_some());
    let suite = programs.as_ref().ok().map(|programs| {
        let tell = |line: &str| eprintln!("faults: {line}");
        Suite::new(programs.clone(), folder.path().to_owned(), tell)
    });
    let suite = Arc::new(Mutex::new(suite));
    let nightly = weir_needs::is_nightly();
    let trial = |fault: &'static Fault| {
        let (suite, length) = (Arc::clone(&suite), fault.short?);
        let name = format!("what_is_expected_holds_in_short::{}", fault.name);
        let trial = Trial::test(name, move || play(&suite, fault, length));
        let lacking = match &programs {
            Ok(_) if !nightly && !EVERY_CHANGE.contains(&fault.name) => {
                Some((Need::Nightly, ONE_IS_PLAYED.into()))
            }
            Err(lacking) => Some((lacking.need, lacking.why.clone())),
            Ok(_) => lacks(fault, prometheus),
        };
        if let Some((need, why)) = &lacking {
            skip_test(trial.name(), *need, why);
        }
        Some(trial.with_ignored_flag(lacking.is_some()))
    };
    let trials = FAULTS.iter().filter_map(trial).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    // The meshes end before their folder.
    drop(suite.lock().unwrap_or_else(PoisonError::into_inner).take());
    if conclusion.has_failed() {
        eprintln!("logs are in {}", folder.keep().display());
    }
    conclusion.exit_code()
}

/// What a fault needs beyond the programs of all, and is not there.
fn lacks(fault: &Fault, prometheus: bool) -> Option<(Need, String)> {
    match fault.name {
        "disk-full" => {
            let why = weir_mesh::small_disks_possible().err()?;
            Some((Need::Namespaces, format!("{why:#}")))
        }
        "prometheus-killed" | "certificate-expires" if !prometheus => {
            Some((Need::Provided("WEIR_PROMETHEUS"), "it is not set".into()))
        }
        _ => None,
    }
}

fn play(suite: &Mutex<Option<Suite<'_>>>, fault: &Fault, length: Length) -> Result<(), Failed> {
    let mut suite = suite.lock().unwrap_or_else(PoisonError::into_inner);
    let suite = suite.as_mut().ok_or("there are no programs")?;
    let played = suite
        .play(fault, length)
        .map_err(|error| format!("{error:#}"))?;
    if played.verdict.is_good() {
        return Ok(());
    }
    let details = played.verdict.details().unwrap_or_default();
    let why = played.figures.map(|figures| figures.why);
    Err(format!("{details}; not answered: {why:?}").into())
}
