// SPDX-License-Identifier: Apache-2.0
//! deploy/systemd is what systemd takes, and as closed as it says.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::Test;
use crate::needs::{self, PROGRAMS, SYSTEMD_ANALYZE};
use crate::yaml;

pub(crate) const TESTS: &[Test] = &[
    (
        "systemd_knows_every_word_of_the_units",
        &[SYSTEMD_ANALYZE, PROGRAMS],
        systemd_knows_every_word,
    ),
    (
        "a_word_that_systemd_does_not_know_is_noticed",
        &[SYSTEMD_ANALYZE, PROGRAMS],
        an_unknown_word_is_noticed,
    ),
    (
        "weir_controls_unit_is_exposed_to_little",
        &[SYSTEMD_ANALYZE],
        weir_controls_unit_is_exposed_to_little,
    ),
    (
        "the_governors_unit_is_exposed_to_what_it_needs",
        &[SYSTEMD_ANALYZE],
        the_governors_unit_is_exposed_to_what_it_needs,
    ),
    (
        "the_units_keep_trying_and_end_what_hangs",
        &[],
        the_units_keep_trying,
    ),
    (
        "receipts_are_kept_where_weir_controls_unit_lets_it_write",
        &[],
        receipts_are_kept_where_it_may_write,
    ),
    (
        "weir_control_takes_the_configuration_beside_its_unit",
        &[PROGRAMS],
        weir_control_takes_its_configuration,
    ),
];

fn folder() -> PathBuf {
    needs::root().join("deploy/systemd")
}

/// What `systemd-analyze verify` says of a unit, with a drop-in, whose program is the one that was built.
fn verify(unit: &str, drop_in: Option<&str>, change: impl Fn(String) -> String) -> String {
    let place = TempDir::new().unwrap();
    let name = unit.trim_end_matches(".service");
    let program = PROGRAMS.path().join(name);
    let text = yaml::read(&folder().join(unit));
    let installed = format!("/usr/bin/{name}");
    assert!(text.contains(&installed), "{unit} starts another program");
    let file = place.path().join(unit);
    fs::write(
        &file,
        change(text).replace(&installed, program.to_str().unwrap()),
    )
    .unwrap();
    if let Some(drop_in) = drop_in {
        let folder_of_it = place.path().join(format!("{unit}.d"));
        fs::create_dir(&folder_of_it).unwrap();
        fs::copy(folder().join(drop_in), folder_of_it.join(drop_in)).unwrap();
    }
    let output = SYSTEMD_ANALYZE
        .command()
        .args(["verify", "--man=no"])
        .arg(&file)
        .output()
        .unwrap();
    let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        said.push_str(&output.status.to_string());
    }
    // Of the machine's own units it may say more.
    said.lines()
        .filter(|line| line.contains(unit) || line.contains("exit status"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn systemd_knows_every_word() {
    assert_eq!(verify("weir-control.service", None, |text| text), "");
    assert_eq!(verify("weir-governor.service", None, |text| text), "");
    let jobs = Some("weir-governor-jobs.conf");
    assert_eq!(verify("weir-governor.service", jobs, |text| text), "");
}

fn an_unknown_word_is_noticed() {
    let said = verify("weir-control.service", None, |text| {
        text.replace("ProtectSystem=", "ProtectSistem=")
    });
    assert!(said.contains("ProtectSistem"), "{said}");
}

/// Of a unit's key, what is written last.
fn setting<'a>(unit: &'a str, key: &str) -> Option<&'a str> {
    let mut values = unit.lines().filter_map(|line| line.split_once('='));
    values
        .rfind(|(name, _)| *name == key)
        .map(|(_, value)| value)
}

fn the_units_keep_trying() {
    for unit in ["weir-control.service", "weir-governor.service"] {
        let text = yaml::read(&folder().join(unit));
        for (key, value) in [
            ("Type", "notify"),
            ("WatchdogSec", "30s"),
            ("Restart", "always"),
            ("RestartSec", "1s"),
            // By default five starts within 10 s are the last.
            ("StartLimitIntervalSec", "0"),
        ] {
            assert_eq!(setting(&text, key), Some(value), "{key} of {unit}");
        }
        for key in ["RestartPreventExitStatus", "StartLimitBurst"] {
            assert_eq!(setting(&text, key), None, "{key} of {unit}");
        }
        let families = setting(&text, "RestrictAddressFamilies").unwrap_or_default();
        assert!(
            families.contains("AF_UNIX"),
            "{unit} cannot tell that it works"
        );
    }
}

fn receipts_are_kept_where_it_may_write() {
    let unit = yaml::read(&folder().join("weir-control.service"));
    assert_eq!(setting(&unit, "ProtectSystem"), Some("strict"));
    let readme = yaml::read(&folder().join("README.md"));
    let (_, file) = readme.split_once("receipts: { file: /var/lib/").unwrap();
    let (state, _) = file.split_once('/').unwrap();
    assert_eq!(setting(&unit, "StateDirectory"), Some(state));
}

/// Prints how exposed a unit is (0 to 10), which has to be at most `most` tenths.
fn exposure(unit: &str, most: u32) {
    let output = SYSTEMD_ANALYZE
        .command()
        .args(["security", "--offline=true", "--no-pager"])
        .arg(format!("--threshold={most}"))
        .arg(folder().join(unit))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let overall = said.lines().rfind(|line| line.contains("exposure level"));
    println!("{}", overall.unwrap_or(&said));
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn weir_controls_unit_is_exposed_to_little() {
    // It has to speak with the network; 1.2 as seen with systemd 252.
    exposure("weir-control.service", 15);
}

fn the_governors_unit_is_exposed_to_what_it_needs() {
    // Root with eleven capabilities; 5.8 as seen with systemd 252.
    exposure("weir-governor.service", 60);
}

fn weir_control_takes_its_configuration() {
    let program = PROGRAMS.path().join("weir-control");
    needs::succeed(
        std::process::Command::new(program)
            .args(["--check", "--config"])
            .arg(folder().join("weir-control.yaml")),
    );
}
