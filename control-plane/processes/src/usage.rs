// SPDX-License-Identifier: Apache-2.0
//! What a process has cost so far.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// A process of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process(Pid);

impl Process {
    /// By its number.
    ///
    /// # Errors
    /// No process can have it.
    pub fn new(id: u32) -> Result<Self> {
        Ok(Self(Pid::from_raw(id.try_into()?)))
    }

    /// Its number.
    #[must_use]
    pub fn id(self) -> i32 {
        self.0.as_raw()
    }

    /// The process that asks.
    #[must_use]
    pub fn own() -> Self {
        Self(Pid::this())
    }

    /// CPU time of all its threads, those that have ended included; to the nanosecond.
    ///
    /// # Errors
    /// The process is gone. One that has ended and was not waited for still tells, and stands still.
    pub fn cpu(self) -> Result<Duration> {
        let spent = clock_getcpuclockid(self.0).and_then(clock_gettime);
        Ok(spent.with_context(|| format!("process {}", self.0))?.into())
    }

    /// Resident memory in bytes: now, and the most there ever was.
    ///
    /// # Errors
    /// The process has ended, or the system has no `/proc`.
    pub fn memory(self) -> Result<Memory> {
        let path = format!("/proc/{}/status", self.0);
        let status = fs::read_to_string(&path).with_context(|| path.clone())?;
        let resident = field(&status, "VmRSS:").with_context(|| format!("{path}: no VmRSS"))?;
        let peak = field(&status, "VmHWM:").with_context(|| format!("{path}: no VmHWM"))?;
        Ok(Memory { resident, peak })
    }
}

/// Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Resident now.
    pub resident: u64,
    /// The most that ever was.
    pub peak: u64,
}

/// A figure of proc_pid_status(5), which are in units of 1024 bytes.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(field(status, "VmRSS:"), Some(1 << 20));
        assert_eq!(field(status, "VmHWM:"), Some(2 << 20));
        assert_eq!(field("Name:\tx\n", "VmRSS:"), None);
    }

    #[test]
    fn work_is_counted() {
        let own = Process::own();
        let before = own.cpu().unwrap();
        let begun = Instant::now();
        while own.cpu().unwrap() == before {
            let waited = begun.elapsed();
            assert!(waited < Duration::from_secs(60), "still {before:?}");
        }
        let memory = own.memory().unwrap();
        assert!(memory.peak >= memory.resident, "{memory:?}");
    }
}
