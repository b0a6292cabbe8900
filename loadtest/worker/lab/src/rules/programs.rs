// SPDX-License-Identifier: Apache-2.0
//! jq and Python, which do the same row by row.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::sets::RuleSet;

/// Programs of this machine.
#[derive(Debug)]
pub(super) struct Programs {
    python: Program,
    jq: Option<Program>,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Program {
    language: Language,
    binary: PathBuf,
    /// Its name and version.
    pub(super) name: String,
}

#[derive(Debug, Clone, Copy)]
enum Language {
    Jq,
    Python,
}

impl Programs {
    /// Python has to be there, jq may be absent.
    pub(super) fn find() -> Result<Self> {
        // Asked for its own path, as `python3` may be a script that looks for a Python.
        let python = answer("python3", &["-c", "import sys; print(sys.executable)"])?;
        let version = answer(&python, &["--version"])?;
        Ok(Self {
            python: Program {
                language: Language::Python,
                binary: python.into(),
                name: version,
            },
            jq: answer("jq", &["--version"]).ok().map(|version| Program {
                language: Language::Jq,
                binary: "jq".into(),
                name: version.replace("jq-", "jq "),
            }),
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Program> {
        std::iter::once(&self.python).chain(&self.jq)
    }

    /// What the table says of a program that is not there.
    pub(super) fn absent(&self) -> Option<String> {
        let absent = "jq is absent: its rows are missing.".to_owned();
        self.jq.is_none().then_some(absent)
    }
}

impl Program {
    /// Writes the rules where [`Program::command`] finds them.
    pub(super) fn install(&self, set: &RuleSet, folder: &Path) -> Result<PathBuf> {
        let (text, suffix) = match self.language {
            Language::Jq => (set.jq, "jq"),
            Language::Python => (set.python, "py"),
        };
        let script = folder.join(format!("{}.{suffix}", set.name));
        fs::write(&script, text).with_context(|| format!("cannot write {}", script.display()))?;
        Ok(script)
    }

    /// Applies the rules in `script` to the items in `file`.
    pub(super) fn command(&self, script: &Path, file: &Path, output: Stdio) -> Command {
        let mut command = Command::new(&self.binary);
        if let Language::Jq = self.language {
            command.args(["-c", "-f"]);
        }
        command.arg(script).arg(file).stdout(output);
        command
    }
}

/// What a program prints.
fn answer(binary: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(binary)
        .args(args)
        .output()
        .with_context(|| format!("cannot run {binary}: install it"))?;
    ensure!(output.status.success(), "{binary}: {}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
