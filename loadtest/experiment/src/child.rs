// SPDX-License-Identifier: Apache-2.0
//! A process with a log, and all of its group: gone when the value is dropped.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use weir_stage::command::{describe, tail};

const POLL: Duration = Duration::from_millis(20);
const TAIL_LINES: usize = 15;

/// One that was started here.
#[derive(Debug)]
pub struct Started {
    child: Child,
    log: PathBuf,
    name: String,
}

impl Started {
    /// Starts it in a process group of its own; what it says goes to `<logs>/<name>.log`.
    ///
    /// # Errors
    /// It cannot be started, or its log cannot be made.
    pub fn new(name: &str, mut command: Command, logs: &Path) -> Result<Self> {
        let log = logs.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        let child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("starting {name}: `{}`", describe(&command)))?;
        let name = name.to_owned();
        Ok(Self { child, log, name })
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// # Errors
    /// It has ended, with the end of its log.
    pub fn must_live(&mut self) -> Result<()> {
        match self.ended()? {
            None => Ok(()),
            Some(status) => Err(self.failure(status)),
        }
    }

    /// Why something that ended so cannot be gone on with.
    #[must_use]
    pub fn failure(&self, status: ExitStatus) -> anyhow::Error {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let said = tail(&String::from_utf8_lossy(&text), TAIL_LINES);
        let (name, log) = (&self.name, self.log.display());
        anyhow::anyhow!("{name} ended with {status}; the end of {log}:\n{said}")
    }

    /// Asks it to end and waits until it has.
    ///
    /// # Errors
    /// It has not, after so long; it is killed then.
    pub fn end(mut self, limit: Duration) -> Result<ExitStatus> {
        let asked = Instant::now();
        rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM)?;
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
        // Also those that it has left behind. A group whose members are all gone makes it harmless.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
