// SPDX-License-Identifier: Apache-2.0

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::experiments::cell::Setting;
use crate::experiments::policies::POLICIES;
use crate::experiments::run;
use crate::experiments::workloads::WORKLOADS;

/// A simulator that notes each call, and says what `says` does.
fn store(folder: &Path, says: &str) -> Store {
    let script = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let simulator = script(
        "sim",
        &format!("echo \"$@\" >> {}\n{says}", folder.join("calls").display()),
    );
    let replay = script("replay", "for last; do :; done; echo made > \"$last\"");
    Store::open(&folder.join("kept"), simulator, replay, folder.to_owned()).unwrap()
}

fn calls(folder: &Path) -> usize {
    fs::read_to_string(folder.join("calls")).map_or(0, |calls| calls.lines().count())
}

fn cells(seeds: u64) -> Vec<Cell> {
    let workload = |seed: u64| &WORKLOADS[seed as usize % 2];
    let cell = |seed| Cell {
        setting: Setting::plain(workload(seed), &POLICIES[0]),
        seed,
        quick: true,
    };
    (1..=seeds).map(cell).collect()
}

#[test]
fn what_was_simulated_is_not_simulated_again_and_a_grid_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "echo '{}'");
    run::all(&store, &cells(3), 2).unwrap();
    assert_eq!(calls(folder.path()), 3);
    run::all(&store, &cells(5), 2).unwrap();
    assert_eq!(calls(folder.path()), 5);
    assert!(cells(5).iter().all(|cell| store.has(cell)));
}

#[test]
fn another_program_simulates_everything_anew() {
    let folder = tempfile::tempdir().unwrap();
    run::all(&store(folder.path(), "echo '{}'"), &cells(2), 1).unwrap();
    run::all(&store(folder.path(), "echo '{ }'"), &cells(2), 1).unwrap();
    assert_eq!(calls(folder.path()), 4);
}

#[test]
fn a_killed_simulation_leaves_no_result_and_what_it_left_goes() {
    let folder = tempfile::tempdir().unwrap();
    let program = "echo '{ half'; test $(wc -l < calls) -gt 2 || kill -9 $$; echo '}'";
    let killed = store(folder.path(), program);
    let cells = cells(2);
    let error = run::all(&killed, &cells, 1).unwrap_err().to_string();
    assert!(
        error.contains("2 cells failed") && error.contains("signal: 9"),
        "{error}"
    );
    assert!(!cells.iter().any(|cell| killed.has(cell)));
    let kept = folder.path().join("kept/cells");
    assert!(
        fs::read_dir(&kept).unwrap().count() > 0,
        "nothing was left to clean up"
    );
    let again = Store::open(
        &folder.path().join("kept"),
        folder.path().join("sim"),
        folder.path().join("replay"),
        folder.path().to_owned(),
    )
    .unwrap();
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 0);
    run::all(&again, &cells, 1).unwrap();
    assert_eq!(
        fs::read_to_string(again.file(&cells[0])).unwrap(),
        "{ half\n}\n"
    );
}

#[test]
fn what_the_simulator_refuses_is_told_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(
        folder.path(),
        "echo 'hosts: a fleet without hosts serves nobody' >&2; exit 1",
    );
    let error = run::all(&store, &cells(1), 1).unwrap_err().to_string();
    assert!(
        error.contains("fleet without hosts") && error.contains(".s1"),
        "{error}"
    );
    assert!(!store.has(&cells(1)[0]));
}
