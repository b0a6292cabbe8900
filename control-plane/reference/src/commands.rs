// SPDX-License-Identifier: Apache-2.0
//! A program's command line.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// What the program and each of its commands say of themselves when they are asked by `--help`.
///
/// # Panics
/// The program cannot be run, or does not say it.
pub fn commands(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let mut page = String::new();
    section(&mut page, program, &name, &[]);
    page
}

fn section(page: &mut String, program: &Path, name: &str, commands: &[&str]) {
    let output = Command::new(program)
        .args(commands)
        .arg("--help")
        .env("NO_COLOR", "1")
        .env_remove("COLUMNS")
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    assert!(output.status.success(), "{name} {commands:?} --help");
    let help = String::from_utf8_lossy(&output.stdout);
    let title = [&[name], commands].concat().join(" ");
    let _ = write!(page, "\n## {title}\n\n```text\n");
    for line in help.trim().lines() {
        let _ = writeln!(page, "{}", line.trim_end());
    }
    page.push_str("```\n");
    for below in below(&help) {
        section(page, program, name, &[commands, &[below]].concat());
    }
}

/// Commands that the help lists.
fn below(help: &str) -> Vec<&str> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| line.starts_with("  "));
    // What a command is stands behind two spaces; lines that go on stand further right.
    let names = listed.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}
