// SPDX-License-Identifier: Apache-2.0
//! The serial line to the shell inside: scripts go in, exit codes and outputs come back.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// No step takes so long, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(150);

/// Stands between what a step wrote and its exit code.
const MARK: u8 = 1;

/// How a script inside ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// Exit code.
    pub code: u8,
    /// What it wrote to both of its outputs.
    pub output: String,
}

pub(crate) struct Line(BufReader<UnixStream>);

impl Line {
    /// Waits until the shell inside is ready.
    pub(crate) fn new(stream: UnixStream) -> Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut line = Self(BufReader::new(stream));
        let first = line.read_line().context("waiting for the shell inside")?;
        ensure!(first == "ready", "the shell inside said `{first}` first");
        Ok(line)
    }

    /// Runs a script, which ends at its first command that fails.
    pub(crate) fn run(&mut self, script: &str) -> Result<Answer> {
        ensure!(
            script.lines().all(|line| line != "END"),
            "a line END would cut the script short"
        );
        self.0
            .get_mut()
            .write_all(format!("{script}\nEND\n").as_bytes())?;
        let mut output = Vec::new();
        self.0
            .read_until(MARK, &mut output)
            .context("waiting for a step to end")?;
        ensure!(output.pop() == Some(MARK), "the guest has gone");
        let code = self.read_line().context("waiting for a step's exit code")?;
        let code = code
            .parse()
            .with_context(|| format!("`{code}` is no exit code"))?;
        let output = String::from_utf8_lossy(&output).into_owned();
        Ok(Answer { code, output })
    }

    fn read_line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        ensure!(line.ends_with('\n'), "the guest has gone");
        Ok(line.trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::thread;

    fn line(said: &'static str) -> Result<(Line, thread::JoinHandle<String>)> {
        let (here, mut there) = UnixStream::pair()?;
        let guest = thread::spawn(move || {
            there.write_all(said.as_bytes()).unwrap();
            let mut heard = vec![0; 11];
            let _ = there.read_exact(&mut heard);
            String::from_utf8_lossy(&heard).into_owned()
        });
        Ok((Line::new(here)?, guest))
    }

    #[test]
    fn an_answer_is_what_was_written_up_to_the_mark_and_the_code_behind_it() {
        let (mut line, guest) = line("ready\nno\n\nx\n\x013\n\x010\n").unwrap();
        let answer = line.run("exit 3").unwrap();
        assert_eq!(guest.join().unwrap(), "exit 3\nEND\n");
        assert_eq!((answer.code, &*answer.output), (3, "no\n\nx\n"));
    }

    #[test]
    fn a_guest_that_has_gone_is_told_as_such() {
        let (mut line, _) = line("ready\n").unwrap();
        let error = format!("{:#}", line.run("exit 3").unwrap_err());
        assert!(error.contains("the guest has gone"), "{error}");
    }

    #[test]
    fn a_script_cannot_end_itself_early() {
        let (mut line, _) = line("ready\n").unwrap();
        let error = line
            .run("cat <<END\nx\nEND\nexit 3")
            .unwrap_err()
            .to_string();
        assert!(error.contains("cut the script short"), "{error}");
        drop(line);
    }
}
