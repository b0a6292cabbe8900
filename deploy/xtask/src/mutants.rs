// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask mutants`: small changes of the code that decides, each of which a test should notice.
//!
//! ```text
//!  cargo-mutants ── a change, the package's tests ──> missed ── survivors.toml ──> those that nobody has explained
//! ```
//! All of them take most of a day, so a run takes a share, which is another one each day.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use crate::tools::{self, CARGO_MUTANTS};
use crate::workspace::Workspace;

/// Shares of all mutants: in a month of nights every one was tried.
const SHARES: u64 = 30;
/// Mutants that no test notices, with reasons.
const SURVIVORS: &str = "deploy/xtask/survivors.toml";

/// Files, and the tests that are to notice what is changed in them: those of their package, or only its unit tests,
/// where others start processes.
const PARTS: [(&[&str], &[&str]); 2] = [
    (
        &[
            "filters/policy/src/**",
            "filters/tables/src/**",
            "control-plane/fleet/src/**",
        ],
        &[],
    ),
    (
        &[
            "control-plane/src/leader.rs",
            "control-plane/src/leader/**",
            "control-plane/src/xds/session.rs",
            "control-plane/src/xds/subscription.rs",
            "control-plane/src/xds/subscription/**",
        ],
        &["--cargo-test-arg=--lib"],
    ),
];

/// How cargo-mutants ends once it has tried every mutant: all were noticed, some were not, some ran too long.
const TRIED: [i32; 3] = [0, 2, 3];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Try one of so many shares of all, another one each day; 1 is all, for most of a day
    #[arg(long, value_name = "NUMBER", default_value_t = SHARES, value_parser = clap::value_parser!(u64).range(1..))]
    shares: u64,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let program = tools::build(workspace, CARGO_MUTANTS)?;
    let explained = survivors(&workspace.root)?;
    let folder = workspace.new_folder("mutants")?;
    let day = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / 86_400;
    let share = format!("{}/{}", day % args.shares, args.shares);
    let mut unexplained = Vec::new();
    for (number, (files, tests)) in PARTS.into_iter().enumerate() {
        let output = folder.join(number.to_string());
        let mut command = Command::new(&program);
        command
            .current_dir(&workspace.root)
            // Its copy of the checkout has a target directory of its own.
            .env_remove("CARGO_TARGET_DIR")
            // The first failure is enough: nobody reads the smallest.
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .args(["mutants", "--no-shuffle"])
            .args(["--sharding", "round-robin", "--shard", &share])
            .args(files.iter().flat_map(|file| ["--file", file]))
            .args(tests)
            .arg("--output")
            .arg(&output);
        let missed = missed(command, &output)?;
        unexplained.extend(
            missed
                .into_iter()
                .filter(|name| !explained.contains_key(name)),
        );
    }
    ensure!(
        unexplained.is_empty(),
        "no test notices these: write one, or say in {SURVIVORS} why none can\n{}",
        unexplained.join("\n")
    );
    Ok(())
}

/// Tries mutants; names of those that no test noticed. One that runs too long was noticed.
fn missed(mut command: Command, output: &Path) -> Result<Vec<String>> {
    fs::create_dir_all(output).with_context(|| format!("creating {}", output.display()))?;
    let status = command
        .status()
        .context("cargo-mutants cannot be started")?;
    let tried = status.code().is_some_and(|code| TRIED.contains(&code));
    ensure!(tried, "cargo-mutants ended with {status}: see above");
    let file = output.join("mutants.out/missed.txt");
    let missed = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    Ok(missed.lines().map(without_place).collect())
}

/// Without line and column, which move with every change above.
fn without_place(mutant: &str) -> String {
    match *mutant.splitn(4, ':').collect::<Vec<_>>() {
        [file, _line, _column, change] => format!("{file}:{change}"),
        _ => mutant.to_owned(),
    }
}

/// Reasons by mutant.
fn survivors(root: &Path) -> Result<BTreeMap<String, String>> {
    let file = root.join(SURVIVORS);
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    toml::from_str(&text).with_context(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutant_is_known_wherever_its_line_went() {
        let mutant =
            "filters/policy/src/health.rs:30:9: replace Evidence::is_enough -> bool with false";
        assert_eq!(
            without_place(mutant),
            "filters/policy/src/health.rs: replace Evidence::is_enough -> bool with false"
        );
    }

    #[test]
    fn survivors_are_of_files_that_are_there_and_have_reasons() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (mutant, reason) in survivors(&root).unwrap() {
            let (file, _) = mutant.split_once(": ").unwrap();
            assert!(root.join(file).is_file() && !reason.is_empty(), "{mutant}");
        }
        for (files, _) in PARTS {
            for file in files {
                assert!(root.join(file.trim_end_matches("/**")).exists(), "{file}");
            }
        }
    }
}
