// SPDX-License-Identifier: Apache-2.0
//! The C toolchain that compiles C, links and strips programs: of this machine, or of arm64 on another one.

use std::env::{self, consts::ARCH};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::tools;
use crate::workspace::Workspace;

/// The architecture that programs are built for elsewhere, too, in Rust's words.
const ARM64: &str = "aarch64";
/// Before the names of its programs, as Debian has them.
const PREFIX: &str = "aarch64-linux-gnu-";

/// Programs for one architecture.
pub(crate) struct Toolchain {
    /// In Rust's words.
    pub(crate) arch: &'static str,
    /// Of another machine; this one's needs nothing.
    cross: Option<Cross>,
}

struct Cross {
    /// Where its programs are.
    bin: PathBuf,
    /// Of packages that were unpacked and not installed: programs do not find all that belongs to them.
    unpacked: Option<PathBuf>,
}

impl Toolchain {
    /// Of this machine.
    pub(crate) fn own() -> Self {
        Self {
            arch: ARCH,
            cross: None,
        }
    }

    /// Of arm64, which is fetched where the machine has none; nothing on arm64 itself.
    pub(crate) fn arm64(workspace: &Workspace) -> Result<Option<Self>> {
        if ARCH == ARM64 {
            return Ok(None);
        }
        let compiler = tools::program(workspace, tools::ARM64_COMPILER)?;
        Ok(Some(Self {
            arch: ARM64,
            cross: Some(Cross::of(&compiler)?),
        }))
    }

    /// Where arm64's loader and C library are: what an emulator takes for the root.
    pub(crate) fn root(&self) -> PathBuf {
        let unpacked = self.cross.as_ref().and_then(Cross::unpacked);
        let root = unpacked.unwrap_or(Path::new("/"));
        root.join("usr").join(PREFIX.trim_end_matches('-'))
    }

    /// Flags of rustc, to link programs for a glibc that is not where it would be installed.
    pub(crate) fn link_flags(&self) -> Vec<String> {
        let unpacked = self.cross.as_ref().and_then(Cross::unpacked);
        let flag = |root: &Path| format!("-Clink-arg=--sysroot={}", root.display());
        unpacked.map(flag).into_iter().collect()
    }

    /// Makes a `cargo build` for a target use it.
    pub(crate) fn apply(&self, target: &str, command: &mut Command) -> Result<()> {
        let of = target.replace('-', "_");
        let Some(cross) = &self.cross else {
            command.env(format!("CC_{of}"), "cc");
            return Ok(());
        };
        let compiler = cross.program("gcc");
        command
            .env(format!("CC_{of}"), &compiler)
            .env(format!("AR_{of}"), cross.program("ar"))
            .env(
                format!("CARGO_TARGET_{}_LINKER", of.to_uppercase()),
                compiler,
            );
        cross.prepare(command)
    }

    /// A command that takes names of functions out of a program.
    pub(crate) fn strip(&self) -> Result<Command> {
        let Some(cross) = &self.cross else {
            return Ok(Command::new("strip"));
        };
        let mut command = Command::new(cross.program("strip"));
        cross.prepare(&mut command)?;
        Ok(command)
    }
}

impl Cross {
    fn of(compiler: &Path) -> Result<Self> {
        let bin = compiler.parent().context("a compiler without a folder")?;
        // In a `usr/bin` that is not the system's.
        let root = bin.parent().and_then(Path::parent);
        let unpacked = root.filter(|root| *root != "/" && libraries(root).is_dir());
        Ok(Self {
            bin: bin.to_owned(),
            unpacked: unpacked.map(Path::to_owned),
        })
    }

    fn unpacked(&self) -> Option<&Path> {
        self.unpacked.as_deref()
    }

    fn program(&self, name: &str) -> PathBuf {
        self.bin.join(format!("{PREFIX}{name}"))
    }

    /// Lets programs that a command starts find their own libraries.
    fn prepare(&self, command: &mut Command) -> Result<()> {
        if let Some(root) = &self.unpacked {
            let own = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
            let own = env::split_paths(&own).filter(|folder| !folder.as_os_str().is_empty());
            let folders = env::join_paths([libraries(root)].into_iter().chain(own));
            command.env("LD_LIBRARY_PATH", folders?);
        }
        Ok(())
    }
}

fn libraries(root: &Path) -> PathBuf {
    root.join(format!("usr/lib/{ARCH}-linux-gnu"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn at(root: &Path) -> Toolchain {
        let compiler = root.join("usr/bin/aarch64-linux-gnu-gcc");
        Toolchain {
            arch: ARM64,
            cross: Some(Cross::of(&compiler).unwrap()),
        }
    }

    #[test]
    fn a_compiler_that_is_installed_needs_to_be_told_nothing() {
        let installed = at(Path::new("/"));
        assert!(installed.link_flags().is_empty());
        assert_eq!(installed.root(), Path::new("/usr/aarch64-linux-gnu"));
        assert_eq!(installed.strip().unwrap().get_envs().count(), 0);
    }

    #[test]
    fn one_that_was_unpacked_is_told_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(libraries(root)).unwrap();
        let unpacked = at(root);
        let flag = format!("-Clink-arg=--sysroot={}", root.display());
        assert_eq!(unpacked.link_flags(), [flag]);
        assert_eq!(unpacked.root(), root.join("usr/aarch64-linux-gnu"));
        let mut command = Command::new("cargo");
        let target = "aarch64-unknown-linux-musl";
        unpacked.apply(target, &mut command).unwrap();
        let set: Vec<_> = command
            .get_envs()
            .filter_map(|(name, _)| name.to_str())
            .collect();
        assert_eq!(
            set,
            [
                "AR_aarch64_unknown_linux_musl",
                "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER",
                "CC_aarch64_unknown_linux_musl",
                "LD_LIBRARY_PATH"
            ]
        );
    }
}
