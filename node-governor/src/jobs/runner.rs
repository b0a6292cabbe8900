// SPDX-License-Identifier: Apache-2.0
//! Runs the batch jobs by the plan: starts them, moves them, freezes them, and says how far they have come.
//!
//! ```text
//!                  take                        the keeper ends
//!  waiting ───────────────────> running <──┐ ──────────────────> finished, failed ── forget ──> waiting
//!     ^  its keeper was never there │ give │ take                     ^
//!     └─────────────────────────────┤      │                          │ its cgroup is empty
//!                                   v      │      its keeper is killed│
//!                                  paused ─┘      ────────────> (runs on, frozen or not, but unkept)
//! ```
//! A cgroup of somebody else's waits until it has processes and has ended when they are gone, also if there are
//! some in it again: it is a job once, until it is forgotten.

mod end;
mod job;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::Pid;
use tracing::{info, warn};

use super::State;
use super::record::{Folder, JOBS, Started};
use super::spec::{Batch, Source, Spec};
use crate::FileError;
use crate::apply::groups::{Found, Groups, Members};
use crate::cores::{Act, Cores, JobPlan, Limit};
use crate::root::{Root, line};
use crate::sensed::Nanos;
use crate::state::only_ours;
use job::Job;

/// Why the jobs are not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or a folder of the jobs cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A job is not as it is configured.
    #[error("jobs.{name}: {reason}")]
    Job {
        /// Which.
        name: String,
        /// The fault, and what to do.
        reason: String,
    },
}

/// More than the state of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// How it ended: an exit code, or 128 and the signal.
    pub code: Option<i32>,
    /// CPU time that it has used, where that is known; while it runs, as last looked.
    pub cpu: Option<Duration>,
    /// The last fault.
    pub trouble: Option<String>,
    /// It was started with so many; 0 before.
    pub threads: u32,
}

/// All jobs.
#[derive(Debug)]
pub struct Runner {
    shared: Shared,
    jobs: Vec<Job>,
    states: Vec<State>,
}

/// The things that every job needs.
#[derive(Debug)]
struct Shared {
    batch: Batch,
    groups: Groups,
    /// Where jobs go when nobody governs.
    alone: Cores,
    /// Of the kernel.
    boot: String,
    /// The program that keeps jobs.
    keeper: PathBuf,
    /// Keepers that were started here and whose end nobody has asked for yet.
    children: Vec<Child>,
    found_version: u64,
    write_errors: u64,
    now: Nanos,
    /// That jobs could be in.
    has_cgroups: bool,
    /// Those that the policy sets.
    limits: Vec<Limit>,
}

impl Shared {
    /// The needs of the governor's own jobs: a folder for their logs, and a cgroup where the machine has them.
    fn make(&mut self) -> Result<(), Error> {
        let logs = &self.batch.logs;
        let made = DirBuilder::new().recursive(true).mode(0o755).create(logs);
        let made = made.and_then(|()| only_ours(logs));
        made.map_err(FileError::of(logs))?;
        let cgroup = Path::new(&self.batch.cgroup);
        let made = self.groups.make(&self.batch.cgroup);
        self.has_cgroups = made.map_err(FileError::of(cgroup))?.is_some();
        Ok(())
    }
}

impl Runner {
    /// Takes up what a former governor has left running; starts nothing. The caller holds the state directory, and
    /// has put back what is remembered of the groups. A job that runs with another command than is configured, or
    /// that is not configured any more, is an error: its cores would be nobody's to give.
    pub fn open(
        specs: Vec<Spec>,
        batch: Batch,
        state: &Path,
        groups: &Groups,
        alone: Cores,
        limits: Vec<Limit>,
    ) -> Result<Runner, Error> {
        // Of this process' own kernel, as the processes are.
        let boot = Root::new("/").path("proc/sys/kernel/random/boot_id");
        let boot = line(&boot).map_err(FileError::of(&boot))?;
        let is_own = |spec: &Spec| matches!(spec.source, Source::Command(_));
        let any = specs.iter().any(is_own);
        let folder = state.join(JOBS);
        let mut shared = Shared {
            batch,
            groups: groups.clone(),
            alone,
            boot,
            // Also when the file has been replaced by a newer one.
            keeper: PathBuf::from("/proc/self/exe"),
            children: Vec::new(),
            found_version: 0,
            write_errors: 0,
            now: Nanos::default(),
            has_cgroups: false,
            limits,
        };
        strangers(&folder, &specs, &shared)?;
        if any {
            shared.make()?;
        }
        let jobs = specs.into_iter();
        let jobs = jobs.map(|spec| Job::open(spec, &folder, &mut shared));
        let jobs: Vec<Job> = jobs.collect::<Result<_, _>>()?;
        let states = vec![State::Waiting; jobs.len()];
        let mut runner = Runner {
            shared,
            jobs,
            states,
        };
        runner.tell();
        Ok(runner)
    }

    /// With another program to keep jobs than this process' own, for who is not weir-governor: `PROGRAM keep FOLDER`.
    pub fn with_keeper(mut self, program: impl Into<PathBuf>) -> Runner {
        self.shared.keeper = program.into();
        self
    }

    /// The state to put each job back to that has not ended, by name. The caller has it on disk before it
    /// calls [`give`](Self::give) or [`take`](Self::take). That of a job that waits is known before its cgroup is
    /// there: then there is nothing to put back.
    pub fn found(&self) -> Vec<(String, Found)> {
        let found = self.jobs.iter().filter_map(|job| {
            let found = job.found(&self.shared)?;
            Some((job.spec.job.name.clone(), found))
        });
        found.collect()
    }

    /// The jobs of others that have ended, and have what they had before: who comes into their cgroups is not of this.
    pub fn restored(&self) -> impl Iterator<Item = &str> {
        let jobs = self.jobs.iter().filter(|job| job.is_restored());
        jobs.map(|job| job.spec.job.name.as_str())
    }

    /// Another number when [`found`](Self::found) may have another answer. Changes only in
    /// [`tick`](Self::tick) and [`look`](Self::look).
    pub fn found_version(&self) -> u64 {
        self.shared.found_version
    }

    /// The jobs that have ended: one question to the kernel for each job that runs.
    pub fn tick(&mut self, now: Nanos) {
        self.shared.now = now;
        // One that cannot be asked is asked again.
        let ended = |child: &mut Child| matches!(child.try_wait(), Ok(Some(_)));
        self.shared.children.retain_mut(|child| !ended(child));
        for job in &mut self.jobs {
            job.tick(&mut self.shared);
        }
        self.tell();
    }

    /// Once a second: whose cgroups are there, what others have changed, and the CPU time.
    pub fn look(&mut self, now: Nanos) {
        self.shared.now = now;
        for job in &mut self.jobs {
            job.look(&mut self.shared);
        }
        self.tell();
    }

    /// In the order of the jobs.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// Jobs that give up cores: those that shall pause are frozen, the others shrink. One that keeps none of the
    /// cores that it has stands still until [`take`](Self::take) gives it others. Those that may not be touched stay as they
    /// are. Writes on change only.
    pub fn give(&mut self, plans: &[JobPlan], may: impl Fn(&str) -> bool) {
        for (job, plan) in self.jobs.iter_mut().zip(plans) {
            if may(&job.spec.job.name) {
                job.give(plan, &mut self.shared);
            }
        }
    }

    /// Jobs that get cores: those that run grow and go on, those that wait are started. Writes on change only.
    pub fn take(&mut self, plans: &[JobPlan], now: Nanos) {
        self.shared.now = now;
        for (job, plan) in self.jobs.iter_mut().zip(plans) {
            if plan.act == Act::Run && !plan.cores.is_empty() {
                job.take(plan, &mut self.shared);
            }
        }
        self.tell();
    }

    /// What jobs have beside cores. Writes on change only.
    pub fn limit(&mut self, plans: &[JobPlan]) {
        for (job, plan) in self.jobs.iter_mut().zip(plans) {
            job.limit(plan, &mut self.shared);
        }
    }

    /// Code, CPU time and trouble of a job.
    pub fn facts(&self, job: usize) -> &Facts {
        &self.jobs[job].facts
    }

    /// Processes of the jobs that have not ended, but for their keepers, when they were last looked at.
    pub fn processes(&self) -> Vec<Pid> {
        let alive = self.jobs.iter().filter(|job| job.is_alive());
        alive.flat_map(Job::processes).collect()
    }

    /// Writes that failed, and starts.
    pub fn write_errors(&self) -> u64 {
        self.shared.write_errors
    }

    /// Each change, once.
    fn tell(&mut self) {
        for index in 0..self.jobs.len() {
            let (job, state) = (&self.jobs[index], self.jobs[index].state());
            if self.states[index] == state {
                continue;
            }
            self.states[index] = state;
            let ended = self
                .jobs
                .iter()
                .filter(|job| job.state().has_ended())
                .count();
            let ended = format!("{ended} of {}", self.jobs.len());
            let name = &job.spec.job.name;
            let cores = job.cores.clone().unwrap_or_default();
            let Facts {
                code,
                trouble,
                threads,
                ..
            } = &job.facts;
            match state {
                State::Failed => {
                    let trouble = trouble.as_deref().unwrap_or_default();
                    warn!(job = name, code, trouble, threads, ended, "failed");
                }
                _ => info!(job = name, state = show(state), %cores, threads, ended, "job"),
            }
        }
    }
}

fn show(state: State) -> &'static str {
    match state {
        State::Waiting => "waits",
        State::Running => "runs",
        State::Paused => "paused",
        State::Finished => "finished",
        State::Failed => "failed",
    }
}

/// Jobs that run and are not configured.
fn strangers(folder: &Path, specs: &[Spec], shared: &Shared) -> Result<(), Error> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(FileError::of(folder))?,
    };
    for entry in entries {
        let path = entry.map_err(FileError::of(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if specs.iter().any(|spec| spec.job.name == name) {
            continue;
        }
        if let Some(started) = runs(&path, shared).map_err(FileError::of(&path))? {
            return Err(Error::Job {
                name: name.into_owned(),
                reason: format!(
                    "runs still{}, and is not configured any more: configure it as before, or let it end",
                    started.kept_by()
                ),
            });
        }
    }
    Ok(())
}

/// The job of this folder, if it was started and has not ended.
fn runs(path: &Path, shared: &Shared) -> io::Result<Option<Started>> {
    let folder = Folder::open(path)?;
    let started = folder
        .started()?
        .filter(|started| started.boot == shared.boot);
    let Some(held) = folder.hold()? else {
        return Ok(started);
    };
    if folder.ended()?.is_some() {
        return Ok(None);
    }
    // A keeper may have left it, or a keeper may be on its way, which shall not come.
    let cgroup = started.as_ref().and_then(|started| started.cgroup.clone());
    let there = cgroup.map(|path| shared.groups.existing(&Members::Cgroup(path)));
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let processes = match there {
        None => Vec::new(),
        Some(Err(error)) if is_gone(&error) => Vec::new(),
        Some(group) => group?.processes()?,
    };
    match processes.is_empty() {
        true => held.unask().map(|()| None),
        false => Ok(started),
    }
}
