// SPDX-License-Identifier: Apache-2.0
//! The serial line to the shell inside: scripts go in, exit codes and outputs come back.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// Steps are ended inside after 60 s; nothing is waited for longer than this, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(150);

/// How a script inside ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// Exit code; 143 when it was ended for taking too long.
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
        let header = self.read_line().context("waiting for a step to end")?;
        let (code, size) = header
            .split_once(' ')
            .and_then(|(code, size)| Some((code.parse().ok()?, size.parse().ok()?)))
            .with_context(|| format!("`{header}` is no answer"))?;
        let mut output = vec![0; size];
        self.0
            .read_exact(&mut output)
            .context("reading a step's output")?;
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
    fn an_answer_is_a_code_and_exactly_as_many_bytes_as_were_announced() {
        let (mut line, guest) = line("ready\n3 6\nno\n\nx\n0 0\n").unwrap();
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
