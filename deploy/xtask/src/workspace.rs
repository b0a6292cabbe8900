// SPDX-License-Identifier: Apache-2.0
//! Where things are: the repository, Cargo's target directory, the cache of tools.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde::Deserialize;

use weir_stage::command::{Run, describe};

use crate::remap;
use crate::toolchain::Toolchain;
use crate::tools;

/// The checkout that the commands work on. All paths are absolute.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    /// Where Cargo keeps the sources of crates.
    pub(crate) cargo_home: PathBuf,
}

#[derive(Deserialize)]
struct Metadata {
    workspace_root: PathBuf,
    target_directory: PathBuf,
}

impl Workspace {
    /// Asks Cargo, because the target directory may be set by environment, configuration or flag.
    pub(crate) fn find() -> Result<Self> {
        let mut command = Command::new(cargo());
        command.args(["metadata", "--no-deps", "--format-version", "1"]);
        if let Some(folder) = env::var_os("CARGO_MANIFEST_DIR") {
            command.current_dir(folder);
        }
        let what = describe(&command);
        let output = command.captured()?;
        let metadata: Metadata =
            serde_json::from_str(&output).with_context(|| format!("output of `{what}`"))?;
        Ok(Self {
            root: metadata.workspace_root,
            target: metadata.target_directory,
            cargo_home: cargo_home()?,
        })
    }

    /// `cargo` at the root of the workspace, as if a person had typed it.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(cargo());
        // `cargo run` tells this program which package it is. A build script that asks for these would run again,
        // with all that depends on it, whenever a person's `cargo test` follows ours.
        for (name, _) in env::vars_os().filter(|(name, _)| names_a_package(name)) {
            command.env_remove(name);
        }
        command
            .current_dir(&self.root)
            .env("CARGO_HOME", &self.cargo_home)
            .env("CARGO_TARGET_DIR", &self.target);
        command
    }

    /// Builds the programs of packages that have one with their own name; returns absolute paths.
    pub(crate) fn build_release<const N: usize>(
        &self,
        packages: [&str; N],
    ) -> Result<[PathBuf; N]> {
        let folder = self.build(&packages, false)?;
        Ok(packages.map(|name| folder.join(name)))
    }

    /// The same for a target of another C library, musl, or of another machine.
    pub(crate) fn build_for<const N: usize>(
        &self,
        target: &str,
        toolchain: &Toolchain,
        packages: [&str; N],
    ) -> Result<[PathBuf; N]> {
        tools::install_rust_target(self, target)?;
        let mut command = self.release(&toolchain.link_flags())?;
        toolchain.apply(target, &mut command)?;
        if target.ends_with("musl") {
            // C and assembly of ring call no more of a C library than every one has, so that a compiler for another
            // one does. But its headers may call functions that are its own in place of those.
            let of = target.replace('-', "_");
            command.env(format!("CFLAGS_{of}"), "-U_FORTIFY_SOURCE");
        }
        command.args(["--target", target]);
        for package in packages {
            command.args(["--package", package]);
        }
        command.shown()?;
        let folder = self.target.join(target).join("release");
        Ok(packages.map(|name| folder.join(name)))
    }

    /// `cargo build` of what is shipped, with these flags of rustc.
    fn release(&self, flags: &[String]) -> Result<Command> {
        let mut command = self.cargo();
        command.args(["build", "--bins", "--release"]);
        remap::apply_with(self, &self.target, flags, &mut command)?;
        Ok(command)
    }

    /// Builds every library, program and example for development, with the same choice of packages each time: another
    /// choice has other features, and Cargo builds anew what has other features.
    pub(crate) fn build_programs(&self) -> Result<()> {
        self.cargo()
            .args(["build", "--workspace", "--lib", "--bins", "--examples"])
            .shown()
    }

    /// Builds the programs of packages, and returns the folder that they are in. For development: sooner there,
    /// slower, and other bytes on each machine.
    pub(crate) fn build(&self, packages: &[&str], for_development: bool) -> Result<PathBuf> {
        self.build_with(packages, for_development, &[])
    }

    /// The same, with these flags of `cargo build`.
    pub(crate) fn build_with(
        &self,
        packages: &[&str],
        for_development: bool,
        flags: &[&str],
    ) -> Result<PathBuf> {
        let (folder, mut command) = if for_development {
            let mut command = self.cargo();
            command.args(["build", "--bins"]);
            ("debug", command)
        } else {
            ("release", self.release(&[])?)
        };
        for package in packages {
            command.args(["--package", package]);
        }
        command.args(flags).shown()?;
        Ok(self.target.join(folder))
    }

    /// The git-ignored folder of everything the commands keep.
    pub(crate) fn cache(&self) -> PathBuf {
        self.root.join(".weir")
    }

    /// A folder for one run of a command, named by when it began: seconds since 1970.
    pub(crate) fn new_folder(&self, command: &str) -> Result<PathBuf> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let folder = self.cache().join(command).join(now.to_string());
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(folder)
    }

    /// Where external programs are installed.
    pub(crate) fn tools(&self) -> PathBuf {
        match env::var_os("WEIR_TOOLS_DIR") {
            Some(folder) => self.root.join(folder),
            None => self.cache().join("tools"),
        }
    }

    /// The list of external programs.
    pub(crate) fn pins(&self) -> PathBuf {
        self.root.join("deploy/tools/pins.toml")
    }

    /// The path as a person at the root of the workspace would type it.
    pub(crate) fn shown<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }
}

/// What Cargo tells a program of the package that it runs.
fn names_a_package(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// As Cargo finds it.
fn cargo_home() -> Result<PathBuf> {
    if let Some(folder) = env::var_os("CARGO_HOME").filter(|folder| !folder.is_empty()) {
        return Ok(env::current_dir()?.join(folder));
    }
    let home = env::home_dir().context("neither CARGO_HOME nor HOME says where crates are")?;
    Ok(home.join(".cargo"))
}

/// The `cargo` that runs this program, so that nested calls use the same toolchain.
fn cargo() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_told_of_no_package_as_a_person_would_not_tell_it() {
        // Cargo told this test, too.
        assert!(env::var_os("CARGO_MANIFEST_DIR").is_some());
        let workspace = Workspace {
            root: "/".into(),
            target: "/target".into(),
            cargo_home: "/home".into(),
        };
        let command = workspace.cargo();
        let kept: Vec<_> = env::vars_os()
            .map(|(name, _)| name)
            .filter(|name| names_a_package(name))
            .filter(|name| {
                !command
                    .get_envs()
                    .any(|(set, to)| set == name && to.is_none())
            })
            .collect();
        assert!(kept.is_empty(), "{kept:?}");
    }
}
