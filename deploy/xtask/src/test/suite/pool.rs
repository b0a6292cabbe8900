// SPDX-License-Identifier: Apache-2.0
//! Test programs side by side: most of the slow ones wait for timers of real processes, and leave the cores idle.
//!
//! Not by cargo-nextest: it has a process for each test, and the programs here share what is dear to set up, a mesh,
//! a guest, a compiled filter, between theirs.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use weir_stage::interrupt;
use weir_stage::process::Started;

const POLL: Duration = Duration::from_millis(20);

/// A program to run.
pub(super) struct Job {
    pub(super) name: String,
    pub(super) command: Command,
    /// Nothing runs beside it.
    pub(super) alone: bool,
}

/// A program that ran.
pub(super) struct Done {
    pub(super) name: String,
    pub(super) end: End,
    pub(super) took: Duration,
    /// Standard output and error.
    pub(super) log: PathBuf,
    /// Where its tests record that they were skipped; there may be none.
    pub(super) skips: PathBuf,
}

/// How it ended.
#[derive(Debug)]
pub(super) enum End {
    Exited(ExitStatus),
    /// It was killed, as it had not ended by itself in this time.
    Overdue(Duration),
}

/// Killed with its children when it is dropped.
struct Running {
    name: String,
    process: Started,
    since: Instant,
    log: PathBuf,
    skips: PathBuf,
}

/// At most so many at a time.
pub(super) struct Pool<'a> {
    pub(super) side_by_side: usize,
    /// After so long a program has hung.
    pub(super) limit: Duration,
    /// Of the logs.
    pub(super) folder: &'a Path,
}

impl Pool<'_> {
    /// Runs all of them in this order, those that run alone last; tells each that has ended.
    ///
    /// Whatever still runs when it returns is killed, with its children.
    pub(super) fn play(
        &self,
        jobs: Vec<Job>,
        mut tell: impl FnMut(Done) -> Result<()>,
    ) -> Result<()> {
        fs::create_dir_all(self.folder)
            .with_context(|| format!("creating {}", self.folder.display()))?;
        let (alone, beside): (VecDeque<Job>, VecDeque<Job>) =
            jobs.into_iter().partition(|job| job.alone);
        self.run(beside, self.side_by_side, &mut tell)?;
        self.run(alone, 1, &mut tell)
    }

    fn run(
        &self,
        mut jobs: VecDeque<Job>,
        side_by_side: usize,
        tell: &mut impl FnMut(Done) -> Result<()>,
    ) -> Result<()> {
        let mut running: Vec<Running> = Vec::new();
        while !(jobs.is_empty() && running.is_empty()) {
            interrupt::check()?;
            while running.len() < side_by_side
                && let Some(job) = jobs.pop_front()
            {
                running.push(self.start(job)?);
            }
            let mut at = 0;
            while at < running.len() {
                match running[at].look(self.limit)? {
                    Some(end) => tell(running.swap_remove(at).done(end))?,
                    None => at += 1,
                }
            }
            sleep(POLL);
        }
        Ok(())
    }

    fn start(&self, mut job: Job) -> Result<Running> {
        let name = job.name.replace([' ', '/'], "-");
        let skips = self.folder.join(format!("{name}.skipped"));
        // Of the run before.
        let _ = fs::remove_file(&skips);
        job.command.env(weir_needs::RECORD, &skips);
        Ok(Running {
            process: Started::new(&name, job.command, self.folder)?,
            name: job.name,
            since: Instant::now(),
            log: self.folder.join(format!("{name}.log")),
            skips,
        })
    }
}

impl Running {
    /// How it ended, if it has; one that has run for too long has ended, too.
    fn look(&mut self, limit: Duration) -> Result<Option<End>> {
        let ended = self.process.ended()?.map(End::Exited);
        Ok(ended.or((self.since.elapsed() > limit).then_some(End::Overdue(limit))))
    }

    fn done(self, end: End) -> Done {
        Done {
            name: self.name,
            end,
            took: self.since.elapsed(),
            log: self.log,
            skips: self.skips,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(name: &str, script: &str, alone: bool) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job {
            name: name.into(),
            command,
            alone,
        }
    }

    fn play(jobs: Vec<Job>, limit: Duration) -> Vec<Done> {
        let folder = tempfile::tempdir().unwrap();
        let pool = Pool {
            side_by_side: 2,
            limit,
            folder: folder.path(),
        };
        let mut all = Vec::new();
        pool.play(jobs, |done| {
            all.push(done);
            Ok(())
        })
        .unwrap();
        all
    }

    /// Each of the two can only end while the other one runs.
    #[test]
    fn two_run_side_by_side_and_who_runs_alone_comes_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        let meets = |own: &str, other: &str| {
            format!("touch {path}/{own}; while [ ! -e {path}/{other} ]; do sleep 0.01; done")
        };
        let jobs = vec![
            shell(
                "alone",
                &format!("[ -e {path}/a ] && [ -e {path}/b ]"),
                true,
            ),
            shell("a", &meets("a", "b"), false),
            shell("b", &meets("b", "a"), false),
        ];
        let done = play(jobs, Duration::from_secs(60));
        assert_eq!(done.len(), 3);
        assert_eq!(done[2].name, "alone");
        for done in done {
            assert!(
                matches!(done.end, End::Exited(status) if status.success()),
                "{}",
                done.name
            );
        }
    }

    #[test]
    fn whoever_hangs_is_killed_with_its_children_and_the_others_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}; wait", pid.display());
        let jobs = vec![
            shell("hung", &script, false),
            shell("well", "echo said", false),
        ];
        let done = play(jobs, Duration::from_secs(2));
        let hung = done.iter().find(|done| done.name == "hung").unwrap();
        assert!(matches!(hung.end, End::Overdue(_)), "{:?}", hung.end);
        let child = fs::read_to_string(pid).unwrap();
        let stat = || fs::read_to_string(format!("/proc/{}/stat", child.trim()));
        // Gone, or not yet waited for by whoever inherits orphans; on a busy machine not at once.
        while stat().is_ok_and(|stat| !stat.contains(") Z ")) {
            sleep(Duration::from_millis(10));
        }
    }
}
