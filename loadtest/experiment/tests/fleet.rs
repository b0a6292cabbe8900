// SPDX-License-Identifier: Apache-2.0
//! A small fleet: everything arrives, nobody starves, and after a cut and a restart all have the newest table.
//! Counts alone; times are for `cargo xtask fleet`.

use std::env;
use std::process::Command;

use serde_json::Value;

const SIDECARS: u64 = 100;
const SECONDS: u64 = 5;

#[test]
fn every_sidecar_of_a_small_fleet_gets_tables_and_gets_them_again_after_a_cut_and_a_restart() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let Some(programs) = weir_needs::provided_or_skip("WEIR_BIN_DIR") else {
        return;
    };
    let control = programs.join("weir-control");
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_weir-experiment"))
        .arg("fleet")
        .arg("--control")
        .arg(control)
        .arg("--folder")
        .arg(folder.path())
        .args(["--sidecars", &SIDECARS.to_string(), "--hosts", "20"])
        .args(["--keys", "20", "--settle", "1"])
        .args(["--seconds", &SECONDS.to_string()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let told: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("fleet.json")).unwrap()).unwrap();
    let steady = &told["steady"];
    assert_eq!(steady["refused"], 0, "{told:#}");
    assert_eq!(steady["lost"], 0, "{told:#}");
    // Hosts change each second; on a busy machine several changes go out as one table.
    assert!(steady["fewest"].as_u64().unwrap() >= 1, "{told:#}");
    assert!(
        steady["reports_per_second"].as_f64().unwrap() > 0.0,
        "{told:#}"
    );
    assert!(
        steady["shards_per_second"].as_f64().unwrap() > 0.0,
        "{told:#}"
    );
    let end = &told["end"];
    assert_eq!(end["fresh"], SIDECARS, "{told:#}");
    // The run itself has waited until each had what was the newest table then.
    assert!(end["oldest"]["version"].as_u64() >= Some(1), "{told:#}");
    assert_eq!(end["refused"], 0, "{told:#}");
    // All connections ended twice.
    assert!(end["lost"].as_u64().unwrap() >= 2 * SIDECARS, "{told:#}");
}
