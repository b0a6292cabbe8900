// SPDX-License-Identifier: Apache-2.0
//! `jcmd` and `jfr` of the JDK: the program's own, which are of its version, where nobody else could have put them
//! there; or else those on the path.

use std::io::BufReader;
use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt;
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
        let is_ours = |folder: &PathBuf| {
            let tools = ["jcmd", "jfr"].map(|name| folder.join(name));
            is_trusted(folder) && tools.iter().all(|tool| is_trusted(tool))
        };
        Tools {
            folder: folder.filter(is_ours),
        }
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

/// Root's or our own, and nobody else may change it: a program of a user's is not run by root because a user's JVM is
/// asked about.
fn is_trusted(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let found = std::fs::metadata(path);
    found.is_ok_and(|found| [0, own].contains(&found.uid()) && found.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_others_may_change_is_not_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let tool = folder.path().join("jcmd");
        std::fs::write(&tool, "").expect("written");
        let allow = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&tool, mode).expect("ours");
            is_trusted(&tool)
        };
        assert!(allow(0o755));
        assert!(!allow(0o775));
        assert!(!allow(0o757));
        assert!(!is_trusted(&folder.path().join("jfr")));
    }
}
