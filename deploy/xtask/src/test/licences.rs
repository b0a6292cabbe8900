// SPDX-License-Identifier: Apache-2.0
//! What `deny.toml` allows: licences, sources, crates and versions; and that lock files are those of their manifests.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::test::summary::Outcome;
use crate::tools::{self, CARGO_DENY};
use crate::workspace::Workspace;
use weir_stage::command::Run;

/// They need nothing but the crates.
const CHECKS: [&str; 3] = ["licenses", "bans", "sources"];
/// The workspace, and those that have a lock file of their own.
const MANIFESTS: [&str; 3] = [
    "./Cargo.toml",
    "deploy/fuzz/targets/Cargo.toml",
    "filters/testkit/fixtures/Cargo.toml",
];

/// What cargo-deny last passed, in short: it takes minutes to build, and has nothing to find where nothing changed.
const PASSED: &str = "deploy/xtask/dependencies.sha256";

/// Runs cargo-deny where what it reads is not what it last passed, and nightly, for advisories are made by the day.
pub(super) fn check(workspace: &Workspace, nightly: bool) -> Result<Outcome> {
    locks(workspace)?;
    let passed = fs::read_to_string(workspace.root.join(PASSED)).unwrap_or_default();
    if !nightly && passed.trim() == sum(workspace)? {
        println!("lock files and deny.toml are those that cargo-deny passed");
        return Ok(Outcome::Passed);
    }
    deny(workspace)
}

/// Runs cargo-deny, and keeps that it passed.
pub(crate) fn keep(workspace: &Workspace) -> Result<()> {
    locks(workspace)?;
    deny(workspace)?;
    let file = workspace.root.join(PASSED);
    fs::write(&file, sum(workspace)? + "\n").with_context(|| file.display().to_string())
}

/// Of all that decides what cargo-deny says of licences, sources and crates.
fn sum(workspace: &Workspace) -> Result<String> {
    let locks = MANIFESTS
        .iter()
        .map(|manifest| PathBuf::from(manifest).with_extension("lock"));
    let mut sum = Sha256::new();
    for file in locks.chain(["deny.toml".into()]) {
        let file = workspace.root.join(file);
        let bytes = fs::read(&file).with_context(|| file.display().to_string())?;
        sum.update((bytes.len() as u64).to_be_bytes());
        sum.update(bytes);
    }
    Ok(sum
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn deny(workspace: &Workspace) -> Result<Outcome> {
    let program = match tools::build(workspace, CARGO_DENY) {
        Ok(program) => program,
        Err(error) => {
            println!("DEPENDENCIES ARE NOT CHECKED: {error:#}");
            return Ok(Outcome::Skipped("cargo-deny cannot be built here"));
        }
    };
    let deny = |manifest: &str, arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.current_dir(&workspace.root);
        command.args(["--log-level", "error", "--locked"]);
        command
            .arg("--config")
            .arg(workspace.root.join("deny.toml"));
        command.args(["--manifest-path", manifest]).args(arguments);
        command
    };
    let check = |manifest| deny(manifest, &["check"]);
    for manifest in MANIFESTS {
        if check(manifest).args(CHECKS).shown().is_err() {
            bail!(
                "a dependency of {manifest} is not allowed by deny.toml: replace it, or allow it there with the reason"
            );
        }
    }
    // A database that changes by the day and comes from the network.
    if let Err(error) = deny(MANIFESTS[0], &["fetch", "db"]).captured() {
        println!("ADVISORIES ARE NOT CHECKED, their database cannot be fetched: {error:#}");
        return Ok(Outcome::Skipped(
            "licences, bans and sources are as allowed; advisories cannot be fetched here",
        ));
    }
    for manifest in MANIFESTS {
        if check(manifest).arg("advisories").shown().is_err() {
            bail!("something is known to be wrong with a version that {manifest} locks: see above");
        }
    }
    Ok(Outcome::Passed)
}

/// Whoever builds with `--locked` would be refused, and whoever builds without gets other versions.
fn locks(workspace: &Workspace) -> Result<()> {
    for manifest in MANIFESTS {
        workspace
            .cargo()
            .args(["metadata", "--locked", "--format-version", "1"])
            .args(["--manifest-path", manifest])
            .captured()
            .with_context(|| {
                format!(
                    "the lock file of {manifest} is not what it wants: \
                     `cargo metadata --manifest-path {manifest}` renews it"
                )
            })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// A sum that stayed the same would hide a dependency that nobody looked at.
    #[test]
    fn every_lock_file_and_the_rules_are_in_the_sum() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let files = [
            "Cargo.lock",
            "deploy/fuzz/targets/Cargo.lock",
            "filters/testkit/fixtures/Cargo.lock",
            "deny.toml",
        ];
        for file in files {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "a").unwrap();
        }
        let workspace = Workspace {
            root: root.to_owned(),
            target: root.to_owned(),
            cargo_home: root.to_owned(),
        };
        let mut sums = vec![sum(&workspace).unwrap()];
        for file in files {
            fs::write(root.join(file), "b").unwrap();
            sums.push(sum(&workspace).unwrap());
        }
        sums.dedup();
        assert_eq!(sums.len(), 5);
    }

    /// A tag can be moved to other code, a commit cannot.
    #[test]
    fn workflows_name_actions_by_commit() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut actions = 0;
        for file in fs::read_dir(root.join(".github/workflows")).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let used = text.lines().filter_map(|line| line.split_once("uses: "));
            for (_, action) in used {
                let (_, commit) = action.split_once('@').unwrap();
                let (commit, version) = commit.split_once(" # v").unwrap_or((commit, ""));
                let is_commit =
                    commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
                assert!(is_commit && !version.is_empty(), "{action}");
                actions += 1;
            }
        }
        assert!(actions > 0);
    }
}
