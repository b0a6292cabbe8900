// SPDX-License-Identifier: Apache-2.0
//! `weir-lab rules`, small.

use std::process::Command;

#[test]
fn the_table_has_a_row_for_everything_that_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let (out, page) = (folder.path().join("out.md"), folder.path().join("out.html"));
    let lab = Command::new(env!("CARGO_BIN_EXE_weir-lab"))
        .args([
            "rules",
            "--items",
            "500",
            "--rounds",
            "2",
            "--job-items",
            "100,600",
        ])
        .arg("--out")
        .arg(&out)
        .arg("--report")
        .arg(&page)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&lab.stderr);
    assert!(lab.status.success(), "{errors}");
    let table = std::fs::read_to_string(out).unwrap();
    assert_eq!(String::from_utf8_lossy(&lab.stdout).trim(), table.trim());
    let mut rows = vec!["Python 3".to_owned()];
    if !table.contains("jq is absent") {
        rows.push("rules: jq ".to_owned());
    }
    for set in ["Listing 1", "14 rules"] {
        for what in [
            "NDJSON to NDJSON",
            "decoded feed",
            "of this evaluating",
            "of this writing",
        ] {
            rows.push(format!("| rules: {set}: engine, {what}"));
        }
        rows.push(format!("| rules: {set}: Python 3"));
    }
    let states = [
        "cold",
        "items cached",
        "shared rules cached",
        "all cached",
        "prefetch and job",
    ];
    for size in ["100", "600"] {
        for format in ["ndjson", "parquet"] {
            let row = |state| format!("| jobs: {size} items, {format}: {state} |");
            rows.extend(states.map(row));
        }
    }
    for format in ["ndjson", "parquet"] {
        for what in [
            "object",
            "feed",
            "resident after decoding",
            "resident at most while decoding",
        ] {
            rows.push(format!("| memory: {format}: {what} |"));
        }
    }
    rows.extend(
        ["as written", "optimised"].map(|plan| format!("| optimiser: all requests, {plan} |")),
    );
    for row in rows {
        assert!(table.contains(&row), "no {row:?} in\n{table}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("14 rules: engine, of this evaluating"));
}
