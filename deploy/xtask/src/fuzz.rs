// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask fuzz`: libFuzzer on every decoder, with corpora that grow from run to run.
//!
//! ```text
//!  deploy/fuzz/corpus/NAME (seeds) ──┐
//!  .weir/fuzz/NAME/corpus ───────────┴─> target ──> new inputs into .weir/fuzz/NAME/corpus,
//!                                                   those that break a law into .weir/fuzz/NAME/broken
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use weir_stage::command::Run;
use weir_stage::interrupt;

use crate::nightly;
use crate::rustc;
use crate::tools::{self, CARGO_FUZZ};
use crate::workspace::Workspace;

const MEBIBYTES: u32 = 2048;
/// Longer inputs find nothing that shorter ones do not, and take longer.
const LONGEST_INPUT: u32 = 8192;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these targets
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// For each target
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Print for how many seconds each target was run in all, and run none
    #[arg(long)]
    list: bool,
}

/// Seconds by target, of all runs.
type Seconds = BTreeMap<String, u64>;

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let folder = workspace.cache().join("fuzz");
    let seeds = workspace.root.join("deploy/fuzz/corpus");
    let targets = targets(&seeds, &args.names)?;
    let mut seconds = seconds_of(&folder)?;
    if args.list {
        for target in &targets {
            println!("{target:<24} {} s", seconds.get(target).unwrap_or(&0));
        }
        return Ok(());
    }
    interrupt::catch()?;
    let programs = build(workspace)?;
    let mut broken = Vec::new();
    for target in &targets {
        let own = folder.join(target);
        println!("fuzz: {target}: {} s", args.seconds);
        let sound = fuzz(
            &programs.join(target),
            &own,
            &seeds.join(target),
            args.seconds,
        )?;
        interrupt::check()?;
        println!("fuzz: {target}: {}", summary(&own.join("log")));
        if !sound {
            broken.push(target.as_str());
            continue;
        }
        *seconds.entry(target.clone()).or_default() += args.seconds;
        let text = serde_json::to_string_pretty(&seconds)?;
        fs::write(folder.join("seconds.json"), text)?;
    }
    ensure!(
        broken.is_empty(),
        "a law broke in {}: see `log` and `broken` in {}",
        broken.join(", "),
        workspace.shown(&folder)
    );
    Ok(())
}

/// All of them, or those that are named.
fn targets(seeds: &Path, names: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(seeds).with_context(|| format!("reading {}", seeds.display()))? {
        all.push(entry?.file_name().to_string_lossy().into_owned());
    }
    all.sort();
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        bail!(
            "there is no target `{unknown}`; there are {}",
            all.join(", ")
        );
    }
    all.retain(|name| names.is_empty() || names.contains(name));
    Ok(all)
}

fn seconds_of(folder: &Path) -> Result<Seconds> {
    let file = folder.join("seconds.json");
    match fs::read(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| file.display().to_string()),
        Err(_) => Ok(Seconds::new()),
    }
}

/// Builds all targets; returns the folder of their programs.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let program = tools::build(workspace, CARGO_FUZZ)?;
    nightly::install()?;
    let target = workspace.target.join("fuzz");
    let mut command = nightly::command(workspace);
    command
        .current_dir(workspace.root.join("deploy/fuzz"))
        .arg(program)
        // The code is safe Rust: a sanitizer of addresses finds nothing in it, and halves the speed.
        .args(["build", "--fuzz-dir", "targets", "--sanitizer", "none"])
        .arg("--target-dir")
        .arg(&target);
    println!("fuzz: building the targets by a nightly compiler");
    command.shown()?;
    let host = rustc::version(workspace, "host")?;
    Ok(target.join(host).join("release"))
}

/// Runs one target; says whether all laws held.
fn fuzz(program: &Path, own: &Path, seeds: &Path, seconds: u64) -> Result<bool> {
    let (corpus, broken) = (own.join("corpus"), own.join("broken"));
    for folder in [&corpus, &broken] {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    let log = File::create(own.join("log"))?;
    let status = Command::new(program)
        .args([&corpus, seeds])
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-rss_limit_mb={MEBIBYTES}"))
        .arg(format!("-max_len={LONGEST_INPUT}"))
        // With a slash at the end it is a folder.
        .arg(format!("-artifact_prefix={}/", broken.display()))
        .arg("-print_final_stats=1")
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()
        .with_context(|| format!("starting {}", program.display()))?;
    Ok(status.success())
}

/// How many inputs were tried, or which law broke.
fn summary(log: &Path) -> String {
    let log = fs::read(log).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let mut lines = log.lines();
    if let Some(panic) = lines.position(|line| line.contains(" panicked at ")) {
        return log
            .lines()
            .skip(panic)
            .take(2)
            .collect::<Vec<_>>()
            .join(" ");
    }
    let tried = log.lines().find_map(|line| {
        let (_, number) = line.split_once("number_of_executed_units:")?;
        Some(format!("{} inputs", number.trim()))
    });
    tried.unwrap_or_else(|| "it ended without a word".to_owned())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn targets_are_the_folders_of_seeds() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
        let all = targets(&seeds, &[]).unwrap();
        assert!(all.len() >= 30 && all.is_sorted());
        assert_eq!(targets(&seeds, &["report".into()]).unwrap(), ["report"]);
        let error = targets(&seeds, &["reprot".into()]).unwrap_err().to_string();
        assert!(error.starts_with("there is no target `reprot`; there are body, "));
    }

    #[test]
    fn a_log_is_summed_up_by_what_broke_or_what_was_tried() {
        let folder = TempDir::new().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "x\nstat::number_of_executed_units: 42\n").unwrap();
        assert_eq!(summary(&log), "42 inputs");
        fs::write(&log, "thread 'a' panicked at b.rs:1:\nno line\nrest\n").unwrap();
        assert_eq!(summary(&log), "thread 'a' panicked at b.rs:1: no line");
        assert_eq!(
            summary(&folder.path().join("none")),
            "it ended without a word"
        );
    }
}
