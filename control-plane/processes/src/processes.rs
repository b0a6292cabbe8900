// SPDX-License-Identifier: Apache-2.0
//! The processes of one way: started with a log each, watched, and gone when the value is dropped.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use crate::process::Started;
use crate::record::{self, Entry};
use crate::{bound, interrupt, usage};

const POLL: Duration = Duration::from_millis(50);
/// A process that is asked to end is killed after this.
const GRACE: Duration = Duration::from_secs(10);

/// Running processes; they are killed when it is dropped.
pub struct Processes {
    logs: PathBuf,
    running: Vec<Process>,
    bound: bool,
    record: Option<PathBuf>,
}

struct Process {
    started: Started,
    /// Nobody misses it: it was killed on purpose.
    down: bool,
    /// Its end was told.
    told: bool,
}

/// One of the processes.
#[derive(Debug, Clone)]
pub struct Listed {
    /// As it was started.
    pub name: String,
    /// Of one that has ended the number may be another's by now.
    pub process: usage::Process,
    /// The file of its output.
    pub log: PathBuf,
    /// None while it lives.
    pub ended: Option<ExitStatus>,
}

impl Processes {
    /// Logs go to `<logs>/<name>.log`.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(logs: PathBuf) -> Result<Self> {
        fs::create_dir_all(&logs).with_context(|| format!("creating {}", logs.display()))?;
        Ok(Self {
            logs,
            running: Vec::new(),
            bound: false,
            record: None,
        })
    }

    /// Logs go to this folder, and children are [`bound`](Self::bound), with the record beside the logs.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn bound_in(folder: PathBuf) -> Result<Self> {
        let record = folder.join(record::FILE);
        Ok(Self::new(folder)?.bound(record))
    }

    /// From now on children end with this process however it ends, SIGKILL included, where the machine's
    /// `setpriv` can do that: else stderr is told. And all that run are recorded in a file, so that a later run
    /// can end those that are left ([`record::end`]).
    #[must_use]
    pub fn bound(mut self, record: PathBuf) -> Self {
        match bound::possible(bound::PROGRAM) {
            Ok(()) => self.bound = true,
            Err(why) => eprintln!("if this process is killed, its children go on: {why:#}"),
        }
        self.record = Some(record);
        self
    }

    /// Starts a process that is to live until the value is dropped.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&mut self, name: &str, command: Command) -> Result<usage::Process> {
        let started = self.spawn(name, command)?;
        let id = usage::Process::new(started.pid())?;
        self.running.push(Process {
            started,
            down: false,
            told: false,
        });
        self.note()?;
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

    /// The same, where `tick` may also do something to the others.
    ///
    /// # Errors
    /// It, another one or `tick` failed, or a signal has come.
    pub fn run_beside(
        &mut self,
        name: &str,
        command: Command,
        tick: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.run_each(name, command, &[0], tick).map(drop)
    }

    /// The same of a program that has more to say by its exit code; returns the code, one of `good`.
    ///
    /// # Errors
    /// It ended in another way, another one failed, or a signal has come.
    pub fn run_to(
        &mut self,
        name: &str,
        command: Command,
        good: &[i32],
        mut tick: impl FnMut(Duration),
    ) -> Result<i32> {
        let started = Instant::now();
        self.run_each(name, command, good, |_| {
            tick(started.elapsed());
            Ok(())
        })
    }

    fn run_each(
        &mut self,
        name: &str,
        command: Command,
        good: &[i32],
        mut tick: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<i32> {
        let mut process = self.spawn(name, command)?;
        loop {
            if let Some(status) = process.ended()? {
                let code = status.code().filter(|code| good.contains(code));
                return code.ok_or_else(|| process.failure_of_command(status));
            }
            // `process` is dropped, and with it killed, if another one has died.
            self.check()?;
            tick(self)?;
            sleep(POLL);
        }
    }

    fn spawn(&self, name: &str, command: Command) -> Result<Started> {
        let command = match self.bound {
            true => bound::through(bound::PROGRAM, &bound::ARGUMENTS, &command),
            false => command,
        };
        Started::new(name, command, &self.logs)
    }

    /// All of them still live, and nobody has asked to stop.
    ///
    /// # Errors
    /// One has ended, with the end of its log; or a signal has come.
    pub fn check(&mut self) -> Result<()> {
        interrupt::check()?;
        for process in self.running.iter_mut().filter(|process| !process.down) {
            process.started.must_live()?;
        }
        Ok(())
    }

    /// Those that have died since this was asked last, each with the end of its log.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn died(&mut self) -> Result<Vec<String>> {
        let mut died = Vec::new();
        let missed = |process: &&mut Process| !process.down && !process.told;
        for process in self.running.iter_mut().filter(missed) {
            if let Some(status) = process.started.ended()? {
                process.told = true;
                died.push(process.started.failure(status).to_string());
            }
        }
        Ok(died)
    }

    /// All that were started and not removed.
    ///
    /// # Errors
    /// The system does not tell how one is.
    pub fn list(&mut self) -> Result<Vec<Listed>> {
        let listed = |process: &mut Process| {
            Ok(Listed {
                name: process.started.name().to_owned(),
                process: usage::Process::new(process.started.pid())?,
                log: process.started.log().to_owned(),
                ended: process.started.ended()?,
            })
        };
        self.running.iter_mut().map(listed).collect()
    }

    /// Kills a process. From now on nobody misses it.
    ///
    /// # Errors
    /// There is none of this name, or the system refuses.
    pub fn kill(&mut self, name: &str) -> Result<()> {
        let process = self.find(name)?;
        process.down = true;
        process.started.kill()
    }

    /// Asks a process to end, and does not wait for it. From now on nobody misses it.
    ///
    /// # Errors
    /// There is none of this name, or it has ended.
    pub fn dismiss(&mut self, name: &str) -> Result<()> {
        self.signal(name, Signal::SIGTERM)?;
        self.find(name)?.down = true;
        Ok(())
    }

    /// Starts a process that was killed or has died again, the same command with the same log.
    ///
    /// # Errors
    /// There is none of this name, it lives, or it cannot be started.
    pub fn again(&mut self, name: &str) -> Result<usage::Process> {
        let process = self.find(name)?;
        process.started.again()?;
        (process.down, process.told) = (false, false);
        let id = usage::Process::new(process.started.pid())?;
        self.note()?;
        Ok(id)
    }

    /// Asks a process to end, kills it if it does not, and forgets it.
    ///
    /// # Errors
    /// There is none of this name, or the system refuses.
    pub fn stop(&mut self, name: &str) -> Result<()> {
        let place = self.place(name)?;
        let process = self.running.remove(place);
        // One that does not end in time is killed, which is an end, too.
        let _ = process.started.end(GRACE);
        self.note()
    }

    /// Sends a signal to a process: SIGSTOP and SIGCONT freeze and thaw it.
    ///
    /// # Errors
    /// There is none of this name, or it has ended.
    pub fn signal(&mut self, name: &str, signal: Signal) -> Result<()> {
        self.find(name)?.started.signal(signal)
    }

    fn find(&mut self, name: &str) -> Result<&mut Process> {
        let place = self.place(name)?;
        Ok(&mut self.running[place])
    }

    fn place(&self, name: &str) -> Result<usize> {
        let named = |process: &Process| process.started.name() == name;
        let place = self.running.iter().position(named);
        place.with_context(|| format!("there is no process `{name}`"))
    }

    /// Records all that run, where that is wanted.
    fn note(&self) -> Result<()> {
        let Some(file) = &self.record else {
            return Ok(());
        };
        let entries = self.running.iter().filter_map(|process| {
            // One that has ended already needs no record.
            Entry::of(process.started.name(), process.started.pid()).ok()
        });
        record::write(file, &entries.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What has not come by then never will.
    const LIMIT: Duration = Duration::from_secs(60);

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
            .wait_until("readiness", LIMIT, || None::<()>)
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
        let pid = processes.wait_until("the pid", LIMIT, read).unwrap();
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

    /// Waits until the first has ended, as nobody is told.
    fn until_ended(processes: &mut Processes) {
        let begun = Instant::now();
        while processes.list().unwrap()[0].ended.is_none() {
            let list = processes.list();
            assert!(
                begun.elapsed() < LIMIT,
                "waited in vain for an end: {list:?}"
            );
            sleep(POLL);
        }
    }

    #[test]
    fn what_was_killed_is_not_missed_and_runs_again() {
        let (folder, mut processes) = processes();
        let starts = folder.path().join("starts");
        let script = format!("echo one >> {}; exec sleep 600", starts.display());
        processes.start("sleeper", shell(&script)).unwrap();
        let began = |times: usize| {
            let text = fs::read_to_string(&starts).unwrap_or_default();
            (text.lines().count() == times).then_some(())
        };
        processes.wait_until("a start", LIMIT, || began(1)).unwrap();
        assert!(processes.again("sleeper").is_err(), "it is running");
        processes.kill("sleeper").unwrap();
        processes.check().unwrap();
        assert!(processes.list().unwrap()[0].ended.is_some());
        processes.again("sleeper").unwrap();
        processes
            .wait_until("another start", LIMIT, || began(2))
            .unwrap();
        processes.dismiss("sleeper").unwrap();
        until_ended(&mut processes);
        processes.check().unwrap();
        processes.stop("sleeper").unwrap();
        assert!(processes.list().unwrap().is_empty());
        assert!(processes.kill("sleeper").is_err());
    }

    #[test]
    fn what_is_killed_beside_a_run_does_not_end_it() {
        let (_folder, mut processes) = processes();
        processes.start("sleeper", shell("exec sleep 600")).unwrap();
        let mut killed = false;
        let kill = |processes: &mut Processes| {
            if !std::mem::replace(&mut killed, true) {
                processes.kill("sleeper")?;
            }
            Ok(())
        };
        processes
            .run_beside("run", shell("sleep 0.2"), kill)
            .unwrap();
        assert!(killed);
        let refused = processes.run_beside("run", shell("sleep 600"), |_| bail!("enough"));
        assert_eq!(refused.unwrap_err().to_string(), "enough");
    }

    #[test]
    fn a_death_is_told_once() {
        let (_folder, mut processes) = processes();
        processes.start("host-1", shell("exit 7")).unwrap();
        until_ended(&mut processes);
        let died = processes.died().unwrap();
        assert!(died[0].starts_with("host-1 ended with exit status: 7"));
        assert_eq!(processes.died().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_is_recorded_can_be_ended_by_others() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("processes.json");
        let mut processes = Processes::new(folder.path().join("logs"))
            .unwrap()
            .bound(file.clone());
        let mut sleep = Command::new("sleep");
        sleep.arg("600");
        processes.start("sleeper", sleep).unwrap();
        processes.check().unwrap();
        assert_eq!(record::end(&file).unwrap(), ["sleeper"]);
        assert!(processes.check().is_err(), "it is still there");
        assert!(!file.exists());
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
