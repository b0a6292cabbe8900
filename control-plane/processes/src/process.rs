// SPDX-License-Identifier: Apache-2.0
//! A process with a log, and all of its group: gone when the value is dropped.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use crate::bound;
use crate::command::{describe, tail};

const POLL: Duration = Duration::from_millis(20);
const TAIL_LINES: usize = 15;

/// A process that was started here.
#[derive(Debug)]
pub struct Started {
    name: String,
    log: PathBuf,
    command: Command,
    child: Child,
    /// None once the process was waited for: its number may be another's then.
    group: Option<Pid>,
}

impl Started {
    /// Starts it in a process group of its own, so that the terminal's Ctrl-C reaches only this program, which then
    /// ends the others in order. Its output goes to `<logs>/<name>.log`.
    ///
    /// # Errors
    /// It cannot be started, or its log cannot be made.
    pub fn new(name: &str, mut command: Command, logs: &Path) -> Result<Self> {
        let log = logs.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file);
        let (command, child) = bound::spawn(command);
        let child = child.with_context(|| format!("starting {name}: `{}`", describe(&command)))?;
        Ok(Self {
            name: name.to_owned(),
            log,
            command,
            group: group(&child),
            child,
        })
    }

    /// Starts the command again, after its end, with the same log.
    pub(crate) fn again(&mut self) -> Result<()> {
        if self.ended()?.is_none() {
            bail!("{} is running", self.name);
        }
        let command = std::mem::replace(&mut self.command, Command::new(""));
        let (command, child) = bound::spawn(command);
        self.command = command;
        self.child = child.with_context(|| format!("starting {} again", self.name))?;
        self.group = group(&self.child);
        Ok(())
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it has ended. Those of its group that it has left behind end then, too.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.kill_group();
        }
        Ok(status)
    }

    /// # Errors
    /// It has ended, with the end of its log.
    pub fn must_live(&mut self) -> Result<()> {
        match self.ended()? {
            None => Ok(()),
            Some(status) => Err(self.failure(status)),
        }
    }

    /// The error of an end that is a failure, with the end of the log.
    #[must_use]
    pub fn failure(&self, status: ExitStatus) -> anyhow::Error {
        self.failure_of(&self.name, status)
    }

    /// The same, with its command instead of its name.
    pub(crate) fn failure_of_command(&self, status: ExitStatus) -> anyhow::Error {
        self.failure_of(&format!("`{}`", describe(&self.command)), status)
    }

    fn failure_of(&self, what: &str, status: ExitStatus) -> anyhow::Error {
        let text = fs::read(&self.log).unwrap_or_default();
        let said = tail(&String::from_utf8_lossy(&text), TAIL_LINES);
        anyhow!(
            "{what} ended with {status}; the end of {}:\n{said}",
            self.log.display()
        )
    }

    /// # Errors
    /// It has ended, or the system refuses.
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.ended()?.is_some() {
            bail!("{} has ended", self.name);
        }
        self.send(signal)
    }

    fn send(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(self.pid().try_into()?);
        signal::kill(pid, signal).with_context(|| format!("{signal} to {}", self.name))
    }

    /// Kills it and all of its group.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.kill_group();
        self.child.wait()?;
        Ok(())
    }

    fn kill_group(&mut self) {
        if let Some(group) = self.group.take() {
            // A group whose members are all gone makes it harmless.
            let _ = signal::killpg(group, Signal::SIGKILL);
        }
    }

    /// Asks it to end and waits until it has.
    ///
    /// # Errors
    /// It has not, after so long; it is killed then.
    pub fn end(mut self, limit: Duration) -> Result<ExitStatus> {
        let asked = Instant::now();
        if self.ended()?.is_none() {
            self.send(Signal::SIGTERM)?;
        }
        while asked.elapsed() < limit {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            sleep(POLL);
        }
        bail!("{} did not end within {} s", self.name, limit.as_secs())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Nothing in it is worth a graceful end, and an ended process makes this harmless.
        let _ = self.kill();
    }
}

fn group(child: &Child) -> Option<Pid> {
    child.id().try_into().ok().map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record;

    /// What has not come by then never will.
    const LIMIT: Duration = Duration::from_secs(60);

    fn until(what: &str, mut is: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is() {
            assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
            sleep(POLL);
        }
    }

    #[test]
    fn processes_that_an_ended_one_has_left_behind_end() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("left");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("sleep 600 & echo $! > {}", left.display())]);
        let mut process = Started::new("parent", command, folder.path()).unwrap();
        until("the end of the parent", || {
            process.ended().unwrap().is_some()
        });
        let left = fs::read_to_string(left).unwrap();
        let left = left.trim().parse().unwrap();
        until("the end of its child", || !record::lives(left));
    }
}
