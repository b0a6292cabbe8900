// SPDX-License-Identifier: Apache-2.0
//! Whose programs a release has: this machine's, and arm64's, which an emulator runs.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::needs::EMULATOR;

pub(crate) struct Machine {
    /// As archives are named.
    pub(crate) arch: &'static str,
    /// Runs its programs where this machine does not.
    pub(crate) emulator: Option<PathBuf>,
}

impl Machine {
    pub(crate) fn own() -> Self {
        Self {
            arch: ARCH,
            emulator: None,
        }
    }

    pub(crate) fn arm64() -> Self {
        Self {
            arch: "aarch64",
            emulator: Some(EMULATOR.path()),
        }
    }

    /// As packages are named.
    pub(crate) fn debian(&self) -> &'static str {
        match self.arch {
            "x86_64" => "amd64",
            _ => "arm64",
        }
    }

    pub(crate) fn command(&self, program: &Path) -> Command {
        let Some(emulator) = &self.emulator else {
            return Command::new(program);
        };
        let mut command = Command::new(emulator);
        command.arg(program);
        command
    }

    /// In a root that has nothing but what is in a folder, and the emulator.
    pub(crate) fn alone(&self, root: &Path, program: &str) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--root"])
            .arg(root);
        if let Some(emulator) = &self.emulator {
            fs::copy(emulator, root.join("emulator")).unwrap();
            command.arg("/emulator");
        }
        command.arg(program);
        command
    }
}
