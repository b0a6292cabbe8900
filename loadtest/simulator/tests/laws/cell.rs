// SPDX-License-Identifier: Apache-2.0
//! A cell of a grid of experiments, as the command makes it.

use std::process::{Command, Output};

const SMALL: &[&str] = &[
    "--workload",
    "document-001",
    "--window",
    "20s",
    "--cores",
    "26",
    "--cache-bytes",
    "100000000000",
];

fn cell(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir-sim"))
        .arg("cell")
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn the_same_cell_gives_the_same_bytes_and_another_seed_others() {
    let run = |more: &[&str]| {
        let output = cell(&[SMALL, more].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for placement in ["callers", "clairvoyant", "central-queue"] {
        let seeded = |seed| run(&["--placement", placement, "--callers", "3", "--seed", seed]);
        assert_eq!(seeded("4"), seeded("4"));
        assert_ne!(seeded("4"), seeded("5"));
        assert!(seeded("4").contains("\"what\": \"SIMULATED\""));
    }
}

#[test]
fn impossible_cells_are_refused_with_the_reason_and_print_nothing() {
    for (flags, named) in [
        (&["--hosts", "0"][..], "hosts"),
        (&["--callers", "0"], "callers"),
        (&["--trouble", "1s:14:lost"], "host 14"),
        (&["--from", "60m"], "--from"),
        (&["--window", "1000000m"], "--window"),
        (&["--placement", "nonsense"], "--placement"),
        (&["--language-model"], "--language-model"),
    ] {
        let output = cell(&[SMALL, flags].concat());
        assert!(!output.status.success(), "{flags:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(named), "{error}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_cell_of_a_file_is_played_as_a_whole_and_flagged_as_a_run_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("workload.csv");
    let lines = (0..200).map(|n| format!("{},a;b,low,,1000000,4000000\n", n * 5000));
    let header = "t_us,key,priority,user,run_us,bytes\n".to_owned();
    std::fs::write(&path, header + &lines.collect::<String>()).unwrap();
    let of = |flags: &[&str]| {
        let file = ["--workload", path.to_str().unwrap(), "--hosts", "2"];
        let output = cell(&[&file, flags].concat());
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    };
    let (figures, said) = of(&[]);
    assert!(said.contains("more work than"), "{said}");
    assert!(!figures.contains("\"goodput\": null"), "{figures}");
    let (figures, said) = of(&["--language-model"]);
    assert!(said.contains("more work than"), "{said}");
    assert!(figures.contains("\"goodput\": null"), "{figures}");
    for flag in ["--begin", "--window"] {
        let (figures, said) = of(&[flag, "1s"]);
        assert!(figures.is_empty() && said.contains(flag), "{said}");
    }
}
