// SPDX-License-Identifier: Apache-2.0
//! `weir-lab suspension`, small: all jobs end under either order, and each class has its row.

use std::process::Command;

#[test]
fn every_job_ends_and_each_class_has_a_row_of_each_order() {
    let lab = Command::new(env!("CARGO_BIN_EXE_weir-lab"))
        .args(["suspension", "--seconds", "1", "--rounds", "1"])
        // So that even beside others' work a second has some jobs of each class.
        .args(["--most-items", "300"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&lab.stderr);
    assert!(lab.status.success(), "{errors}");
    let table = String::from_utf8_lossy(&lab.stdout);
    for order in ["(priority)", "(suspending)"] {
        for class in ["high", "low"] {
            let is_row = |line: &&str| line.contains(order) && line.contains(class);
            let row = table.lines().find(is_row);
            let jobs = row.and_then(|row| row.split('|').nth(3));
            let jobs: u32 = jobs.unwrap_or("none").trim().parse().unwrap();
            assert!(jobs > 0, "{order}, {class}: {table}");
        }
    }
}
