// SPDX-License-Identifier: Apache-2.0
//! `jcmd` and `jfr` of the JDK: the program's own, or else those on the path.

use std::io::BufReader;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::recording;
use crate::Error;
use crate::stacks::Stacks;

#[derive(Debug)]
pub(super) struct Tools {
    folder: Option<PathBuf>,
}

impl Tools {
    /// Beside the `java` that the process runs.
    pub(super) fn of(process: NonZeroU32) -> Tools {
        let java = std::fs::read_link(format!("/proc/{process}/exe")).ok();
        let folder = java.and_then(|java| Some(java.parent()?.to_owned()));
        let folder = folder.filter(|folder| folder.join("jcmd").exists());
        Tools { folder }
    }

    fn command(&self, name: &str) -> Command {
        match &self.folder {
            Some(folder) => Command::new(folder.join(name)),
            None => Command::new(name),
        }
    }

    /// What it answers.
    pub(super) fn jcmd(&self, process: NonZeroU32, arguments: &[&str]) -> Result<String, Error> {
        let refused = |reason| Error::Tool {
            command: format!("jcmd {process} {}", arguments.join(" ")),
            reason,
        };
        let mut command = self.command("jcmd");
        let output = command.arg(process.to_string()).args(arguments).output();
        let output = output.map_err(|error| refused(not_started(&error)))?;
        let said = [&*output.stdout, &output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        match output.status.success() {
            true => Ok(said),
            false => Err(refused(said.trim().to_owned())),
        }
    }

    /// The sampled stacks of a recording, of so many frames at most.
    pub(super) fn recorded(&self, file: &Path, frames: &str) -> Result<Stacks, Error> {
        let refused = |reason| Error::Tool {
            command: format!("jfr print {}", file.display()),
            reason,
        };
        let mut command = self.command("jfr");
        command.args([
            "print",
            "--events",
            "jdk.ExecutionSample",
            "--stack-depth",
            frames,
        ]);
        let started = command.arg(file).stdout(Stdio::piped()).spawn();
        let mut printing = started.map_err(|error| refused(not_started(&error)))?;
        let printed = printing.stdout.take().map(BufReader::new);
        let stacks = printed
            .map(recording::read)
            .unwrap_or_else(|| Ok(Stacks::default()));
        // It ends once its output is closed.
        let ended = printing
            .wait()
            .map_err(|error| refused(error.to_string()))?;
        let stacks = stacks.map_err(|error| refused(error.to_string()))?;
        match ended.success() {
            true => Ok(stacks),
            false => Err(refused(ended.to_string())),
        }
    }
}

fn not_started(error: &std::io::Error) -> String {
    format!("{error}; it belongs to a JDK (Debian: default-jdk-headless)")
}
