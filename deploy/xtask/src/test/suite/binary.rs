// SPDX-License-Identifier: Apache-2.0
//! The test programs that Cargo builds.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::available_parallelism;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::packages::Packages;

/// One test program.
#[derive(Debug)]
pub(in crate::test) struct Binary {
    /// The package and the target, by which people know it.
    pub(in crate::test) name: String,
    pub(in crate::test) program: PathBuf,
    /// Where Cargo runs it.
    pub(in crate::test) folder: PathBuf,
    /// It measures the machine, so nothing runs beside it.
    pub(in crate::test) alone: bool,
    /// It waits for real processes most of the time, so it is started first.
    pub(in crate::test) slow: bool,
}

impl Binary {
    /// As Cargo would start it, with a thread for each core: `.cargo/config.toml` has more, for programs that run one
    /// after the other, and these run side by side.
    pub(in crate::test) fn command(&self) -> Command {
        let threads = available_parallelism().map_or(1, usize::from);
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.folder)
            .env("RUST_TEST_THREADS", threads.to_string())
            .env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// A line of `cargo test --no-run --message-format json`, as far as it is read.
#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    #[serde(default)]
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Builds those of a `cargo test`, and lists them.
pub(in crate::test) fn build(command: &mut Command, packages: &Packages) -> Result<Vec<Binary>> {
    let output = command
        .args(["--no-run", "--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo test")?;
    ensure!(
        output.status.success(),
        "the tests do not build: see above ({})",
        output.status
    );
    let binaries = list(&String::from_utf8_lossy(&output.stdout), packages)?;
    ensure!(!binaries.is_empty(), "cargo built no test program");
    Ok(binaries)
}

fn list(messages: &str, packages: &Packages) -> Result<Vec<Binary>> {
    let mut binaries = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Message =
            serde_json::from_str(line).with_context(|| format!("a message of cargo: {line}"))?;
        let (Some(program), Some(target)) = (message.executable, message.target) else {
            continue;
        };
        if message.reason != "compiler-artifact" || !message.profile.is_some_and(|p| p.test) {
            continue;
        }
        let folder = message
            .manifest_path
            .parent()
            .map(Path::to_owned)
            .context("a manifest without a folder")?;
        let package = packages.of(&message.manifest_path)?;
        // A program and a library of one package may have one name.
        let kind = match target.kind.iter().any(|kind| kind == "bin") {
            true => "bin ",
            false => "",
        };
        binaries.push(Binary {
            name: format!("{} {kind}{}", package.name, target.name),
            program,
            folder,
            alone: package.alone.contains(&target.name),
            slow: package.slow.contains(&target.name),
        });
    }
    Ok(binaries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_test_programs_are_listed_with_what_their_package_says_of_them() {
        let packages = Packages::parse(
            r#"{"packages": [{"name": "weir-x", "manifest_path": "/x/Cargo.toml", "targets": [],
                "metadata": {"weir": {"alone": ["cores"]}}}]}"#,
        )
        .unwrap();
        let messages = r#"
            not a message
{"reason": "compiler-artifact", "manifest_path": "/x/Cargo.toml", "target": {"name": "x"}, "profile": {"test": false}, "executable": "/t/x"}
{"reason": "compiler-artifact", "manifest_path": "/x/Cargo.toml", "target": {"name": "x"}, "profile": {"test": true}, "executable": "/t/x-1"}
{"reason": "compiler-artifact", "manifest_path": "/x/Cargo.toml", "target": {"name": "x", "kind": ["bin"]}, "profile": {"test": true}, "executable": "/t/x-2"}
{"reason": "compiler-artifact", "manifest_path": "/x/Cargo.toml", "target": {"name": "cores"}, "profile": {"test": true}, "executable": "/t/cores-1"}
{"reason": "build-script-executed"}
{"reason": "build-finished", "success": true}
"#;
        let binaries = list(messages, &packages).unwrap();
        let listed: Vec<_> = binaries
            .iter()
            .map(|binary| (binary.name.as_str(), binary.alone))
            .collect();
        let expected = [
            ("weir-x x", false),
            ("weir-x bin x", false),
            ("weir-x cores", true),
        ];
        assert_eq!(listed, expected);
        assert_eq!(binaries[0].folder, Path::new("/x"));
    }
}
