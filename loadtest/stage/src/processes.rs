// SPDX-License-Identifier: Apache-2.0
//! The processes of one way: started with a log each, watched, and gone when the value is dropped.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::command::{describe, tail};
use crate::{interrupt, usage};

const POLL: Duration = Duration::from_millis(50);
const TAIL_LINES: usize = 15;

/// Running processes; they are killed when it is dropped.
pub struct Processes {
    logs: PathBuf,
    running: Vec<Process>,
}

struct Process {
    name: String,
    log: PathBuf,
    child: Child,
}

impl Processes {
    /// Logs go to `<logs>/<name>.log`.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(logs: PathBuf) -> Result<Self> {
        fs::create_dir_all(&logs).with_context(|| format!("creating {}", logs.display()))?;
        let running = Vec::new();
        Ok(Self { logs, running })
    }

    /// Starts a process that is to live until the value is dropped.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&mut self, name: &str, mut command: Command) -> Result<usage::Process> {
        let process = self.spawn(name, &mut command)?;
        let id = usage::Process::new(process.child.id())?;
        self.running.push(process);
        Ok(id)
    }

    /// Waits until `look` finds something, while all processes live.
    ///
    /// # Errors
    /// A process has ended, a signal has come, or `limit` has passed.
    pub fn wait_until<T>(
        &mut self,
        what: &str,
        limit: Duration,
        mut look: impl FnMut() -> Option<T>,
    ) -> Result<T> {
        let started = Instant::now();
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            self.check()?;
            if started.elapsed() > limit {
                bail!(
                    "{what} did not happen within {} s; logs are in {}",
                    limit.as_secs(),
                    self.logs.display()
                );
            }
            sleep(POLL);
        }
    }

    /// Runs a process to its end, while the others live. `tick` is told the time gone by.
    ///
    /// # Errors
    /// It or another one failed, or a signal has come.
    pub fn run(&mut self, name: &str, command: Command, tick: impl FnMut(Duration)) -> Result<()> {
        self.run_to(name, command, &[0], tick).map(drop)
    }

    /// The same of a program that has more to say by its exit code; returns the code, one of `good`.
    ///
    /// # Errors
    /// It ended in another way, another one failed, or a signal has come.
    pub fn run_to(
        &mut self,
        name: &str,
        mut command: Command,
        good: &[i32],
        mut tick: impl FnMut(Duration),
    ) -> Result<i32> {
        let started = Instant::now();
        let mut process = self.spawn(name, &mut command)?;
        loop {
            if let Some(status) = process.child.try_wait()? {
                if let Some(code) = status.code().filter(|code| good.contains(code)) {
                    return Ok(code);
                }
                bail!(
                    "`{}` ended with {status}{}",
                    describe(&command),
                    process.said()
                );
            }
            // `process` is dropped, and with it killed, if another one has died.
            self.check()?;
            tick(started.elapsed());
            sleep(POLL);
        }
    }

    fn spawn(&self, name: &str, command: &mut Command) -> Result<Process> {
        let log = self.logs.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        leave_group(command);
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("starting {name}: `{}`", describe(command)))?;
        let name = name.to_owned();
        Ok(Process { name, log, child })
    }

    /// Whether all of them still live, and nobody has asked to stop.
    ///
    /// # Errors
    /// One has ended, with the end of its log; or a signal has come.
    pub fn check(&mut self) -> Result<()> {
        interrupt::check()?;
        for process in &mut self.running {
            if let Some(status) = process.child.try_wait()? {
                bail!("{} ended with {status}{}", process.name, process.said());
            }
        }
        Ok(())
    }
}

impl Process {
    fn said(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let said = tail(&String::from_utf8_lossy(&text), TAIL_LINES);
        format!("; the end of {}:\n{said}", self.log.display())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing in them is worth a graceful end, and an ended child makes both calls harmless.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The terminal's Ctrl-C reaches only this program, which then ends the others in order.
#[cfg(unix)]
fn leave_group(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

#[cfg(not(unix))]
fn leave_group(_: &mut Command) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn processes() -> (tempfile::TempDir, Processes) {
        let folder = tempfile::tempdir().unwrap();
        let processes = Processes::new(folder.path().join("logs")).unwrap();
        (folder, processes)
    }

    #[test]
    fn a_process_that_dies_ends_every_wait_with_the_end_of_its_log() {
        let (_folder, mut processes) = processes();
        processes
            .start("host-1", shell("echo no cores left; exit 7"))
            .unwrap();
        let error = processes
            .wait_until("readiness", Duration::MAX, || None::<()>)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("host-1 ended with exit status: 7"),
            "{error}"
        );
        assert!(error.contains("no cores left"), "{error}");
    }

    #[test]
    fn a_wait_gives_up_at_its_limit_and_says_what_for() {
        let (_folder, mut processes) = processes();
        let waited = processes.wait_until("readiness of x", Duration::ZERO, || None::<()>);
        assert!(waited.unwrap_err().to_string().contains("readiness of x"));
    }

    #[test]
    fn processes_end_with_the_value() {
        let (folder, mut processes) = processes();
        let alive = folder.path().join("alive");
        let script = format!("echo $$ > {}; exec sleep 600", alive.display());
        processes.start("sleeper", shell(&script)).unwrap();
        let read = || {
            fs::read_to_string(&alive)
                .ok()
                .filter(|text| text.ends_with('\n'))
        };
        let pid = processes
            .wait_until("the pid", Duration::MAX, read)
            .unwrap();
        drop(processes);
        let probe = shell(&format!("kill -0 {}", pid.trim())).output().unwrap();
        assert!(!probe.status.success(), "process {pid} is still there");
    }

    #[test]
    fn a_failed_run_repeats_the_end_of_its_log() {
        let (_folder, mut processes) = processes();
        let error = processes.run("replay", shell("echo bad trace >&2; exit 2"), |_| ());
        assert!(error.unwrap_err().to_string().contains("bad trace"));
    }

    #[test]
    fn exit_codes_that_are_good_are_told_and_others_are_errors() {
        let (_folder, mut processes) = processes();
        let mut run = |script| processes.run_to("k6", shell(script), &[0, 99], |_| ());
        assert_eq!(run("exit 99").unwrap(), 99);
        assert!(run("exit 98").unwrap_err().to_string().contains("98"));
        assert!(
            run("kill -9 $$")
                .unwrap_err()
                .to_string()
                .contains("signal")
        );
    }
}
