// SPDX-License-Identifier: Apache-2.0
//! Running other programs, with errors that say which, how it ended and what it said.

use std::io::ErrorKind;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, anyhow, bail};

/// How many lines of a failed program's error output are worth repeating.
const TAIL_LINES: usize = 12;

/// How a command is run.
pub trait Run {
    /// Runs with the terminal's own input and output.
    fn shown(&mut self) -> Result<()>;
    /// Runs with its output captured and returned. The error output is part of the error.
    fn captured(&mut self) -> Result<String>;
    /// Runs with its error output captured, everything else on the terminal.
    fn watched(&mut self) -> Result<()>;
}

impl Run for Command {
    fn shown(&mut self) -> Result<()> {
        let status = self.status().map_err(|error| not_started(self, error))?;
        ended(self, status, &[])
    }

    fn captured(&mut self) -> Result<String> {
        let output = self
            .stdin(Stdio::null())
            .output()
            .map_err(|error| not_started(self, error))?;
        ended(self, output.status, &output.stderr)?;
        String::from_utf8(output.stdout)
            .with_context(|| format!("output of `{}` is not UTF-8", describe(self)))
    }

    fn watched(&mut self) -> Result<()> {
        let child = self
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| not_started(self, error))?;
        let output = child.wait_with_output()?;
        ended(self, output.status, &output.stderr)
    }
}

/// The command as one would type it, without its environment.
pub fn describe(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

fn not_started(command: &Command, error: std::io::Error) -> anyhow::Error {
    let program = command.get_program().to_string_lossy();
    if error.kind() == ErrorKind::NotFound {
        anyhow!("`{program}` is not installed or not on the PATH")
    } else {
        anyhow!("cannot start `{program}`: {error}")
    }
}

fn ended(command: &Command, status: ExitStatus, stderr: &[u8]) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    let said = tail(&String::from_utf8_lossy(stderr), TAIL_LINES);
    let what = describe(command);
    if said.is_empty() {
        bail!("`{what}` ended with {status}");
    }
    bail!("`{what}` ended with {status}; it said:\n{said}");
}

/// The last lines of what a program said, indented for quoting.
pub fn tail(text: &str, lines: usize) -> String {
    let said: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    said[said.len().saturating_sub(lines)..]
        .iter()
        .map(|line| format!("    {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_keeps_the_last_lines_and_drops_empty_ones() {
        assert_eq!(tail("a\n\nb\nc\n", 2), "    b\n    c");
        assert_eq!(tail("", 2), "");
    }

    #[test]
    fn a_failure_repeats_what_the_program_said() {
        let error = Command::new("sh")
            .args(["-c", "echo no route to host >&2; exit 3"])
            .watched()
            .unwrap_err()
            .to_string();
        assert!(error.contains("no route to host"), "{error}");
        assert!(error.contains("exit status: 3"), "{error}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Command::new("no-such-program-here").shown().unwrap_err();
        assert!(
            error
                .to_string()
                .contains("`no-such-program-here` is not installed")
        );
    }
}
