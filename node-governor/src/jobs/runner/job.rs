// SPDX-License-Identifier: Apache-2.0
//! One job, and how it stands.

mod act;
mod look;
mod settle;
mod start;

use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rustix::process::Pid;
use tracing::warn;

use super::{Error, Facts, Shared};
use crate::FileError;
use crate::apply::groups::{Found, Group, Members, limits};
use crate::cores::{Cores, Limits};
use crate::jobs::State;
use crate::jobs::record::{Folder, Process, Started};
use crate::jobs::spec::{Source, Spec};
use crate::sensed::Nanos;
use crate::stat::Stat;

/// Before something is tried again that the machine refused.
const REST: Duration = Duration::from_secs(1);
/// How often a job is started that does not begin, before it has failed: of our own choice, as long as a full disk or
/// a full table of processes may pass by itself.
const STARTS: u32 = 10;

/// How a job lives.
#[derive(Debug)]
enum Life {
    /// Not yet.
    Waits,
    /// Its keeper was started and may not have taken it yet.
    Begins(Child),
    /// Its keeper lives; it is this process' child unless another governor has started it.
    Kept(Option<Child>),
    /// Its keeper was killed, and there are processes still.
    Unkept,
    /// A cgroup of somebody else's has processes.
    Foreign,
    /// For good.
    Ended(State),
}

/// One job.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) spec: Spec,
    pub(super) facts: Facts,
    /// As last written; none where that is not known.
    pub(super) cores: Option<Cores>,
    /// As last written.
    limits: Limits,
    /// What could not be written, and when.
    not_limited: Option<(Limits, Nanos)>,
    folder: Folder,
    life: Life,
    /// While it runs and can be reached.
    group: Option<Group>,
    /// Of a cgroup of somebody else's.
    found: Option<Found>,
    /// As last told.
    frozen: bool,
    /// Nothing that failed is tried before.
    rest: Nanos,
    /// Starts after which it had not begun.
    starts: u32,
    /// Its processes when it was last looked at or frozen, but for its keeper.
    processes: Vec<Process>,
    keeper: Option<Process>,
    /// Its own cgroup, which may be there still when it has ended.
    left: Option<String>,
}

impl Job {
    /// As it is found on disk and in the kernel.
    pub(super) fn open(spec: Spec, folder: &Path, shared: &mut Shared) -> Result<Job, Error> {
        let path = folder.join(&spec.job.name);
        let folder = Folder::make(&path).map_err(FileError::of(&path))?;
        let mut job = Job {
            spec,
            facts: Facts::default(),
            cores: None,
            limits: Limits::default(),
            not_limited: None,
            folder,
            life: Life::Waits,
            group: None,
            found: None,
            frozen: false,
            rest: Nanos::default(),
            starts: 0,
            processes: Vec::new(),
            keeper: None,
            left: None,
        };
        match job.resume(shared).map_err(FileError::of(&path))? {
            Some(started) if started.source != job.spec.source => Err(job.changed(&started)),
            _ => Ok(job),
        }
    }

    fn changed(&self, started: &Started) -> Error {
        Error::Job {
            name: self.spec.job.name.clone(),
            reason: format!(
                "runs with another command than is configured{}: configure it as before, let it end, or give the \
                 new one another name",
                started.kept_by()
            ),
        }
    }

    /// The record of its start, if it runs.
    fn resume(&mut self, shared: &mut Shared) -> io::Result<Option<Started>> {
        if self.is_free()? {
            self.settle(shared, false)?;
        } else {
            self.life = Life::Kept(None);
            self.attach(shared)?;
        }
        match self.is_alive() {
            true => self.folder.started(),
            false => Ok(None),
        }
    }

    /// No keeper has its lock.
    fn is_free(&self) -> io::Result<bool> {
        Ok(self.folder.hold()?.is_some())
    }

    pub(super) fn state(&self) -> State {
        match self.life {
            Life::Waits => State::Waiting,
            Life::Ended(state) => state,
            _ if self.frozen => State::Paused,
            _ => State::Running,
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        !matches!(self.life, Life::Waits | Life::Ended(_))
    }

    /// Started by a governor, and has not ended.
    pub(super) fn is_ours(&self) -> bool {
        self.is_alive() && !matches!(self.life, Life::Foreign)
    }

    /// Started so lately that there may be nobody to move or to end.
    pub(super) fn begins(&self) -> bool {
        match self.life {
            Life::Begins(_) => true,
            Life::Kept(_) => self.others().is_empty(),
            _ => false,
        }
    }

    /// Its processes, but for its keeper.
    pub(super) fn others(&self) -> Vec<Pid> {
        let processes = self.group.as_ref().map(Group::processes);
        let mut all = processes.and_then(Result::ok).unwrap_or_default();
        let keeper = self.keeper.and_then(|keeper| Pid::from_raw(keeper.pid));
        all.retain(|pid| Some(*pid) != keeper);
        all
    }

    /// The same, when it was last looked at or frozen.
    pub(super) fn processes(&self) -> impl Iterator<Item = Pid> {
        self.processes
            .iter()
            .filter_map(|process| Pid::from_raw(process.pid))
    }

    /// As [`Job::others`], so that none is taken for another later.
    fn known(&self) -> Vec<Process> {
        let known = self.others().into_iter().filter_map(|pid| {
            let pid = pid.as_raw_nonzero().get();
            let started = Stat::read(&pid.to_string())?.started;
            Some(Process { pid, started })
        });
        known.collect()
    }

    /// A group that has gone has nobody; one that cannot be read may have somebody.
    fn is_populated(&self) -> io::Result<bool> {
        match self.group.as_ref().map(Group::processes) {
            None => Ok(false),
            Some(Ok(all)) => Ok(!all.is_empty()),
            Some(Err(error)) if error.kind() == ErrorKind::NotFound => Ok(false),
            Some(Err(error)) => Err(error),
        }
    }

    /// See [`super::Runner::restored`].
    pub(super) fn is_restored(&self) -> bool {
        let is_foreign = matches!(self.spec.source, Source::Cgroup(_));
        is_foreign && matches!(self.life, Life::Ended(_)) && self.found.is_none()
    }

    /// See [`super::Runner::found`].
    pub(super) fn found(&self, shared: &Shared) -> Option<Found> {
        let members = match (&self.life, &self.spec.source, &self.group) {
            (Life::Ended(_), ..) => return None,
            (_, Source::Cgroup(_), _) => return self.found.clone(),
            (_, _, Some(group)) => group.members().clone(),
            (Life::Waits, ..) if shared.has_cgroups => Members::Cgroup(self.path(shared)),
            _ => return None,
        };
        Some(Found {
            members,
            cores: shared.alone.to_string(),
            frozen: Some(false),
            limits: limits::new(&shared.limits),
        })
    }

    /// Of its own cgroup, below the mount.
    fn path(&self, shared: &Shared) -> String {
        format!("{}/{}", shared.batch.cgroup, self.spec.job.name)
    }

    /// Opens its group, if it can be known yet. One whose cgroup was removed is what comes from its keeper.
    fn attach(&mut self, shared: &mut Shared) -> io::Result<()> {
        let Some(started) = self.folder.started()? else {
            return Ok(());
        };
        self.know(&started);
        // A keeper that is gone leads to nobody.
        let is_kept = matches!(self.life, Life::Kept(_));
        let keeper = started.keeper.filter(|_| is_kept);
        let cgroup = match &started.source {
            Source::Cgroup(path) => Some(path.clone()),
            Source::Command(_) => started.cgroup,
        };
        let keeper = keeper.map(|Process { pid, started }| Members::Process { pid, started });
        if keeper.is_some() {
            self.rest = Nanos(shared.now.0 + REST.as_nanos() as u64);
        }
        for members in cgroup.map(Members::Cgroup).into_iter().chain(keeper) {
            match shared.groups.existing(&members) {
                Ok(group) => return self.attached(group, shared),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                // One whose keeper lives may be reached by that.
                Err(error) if is_kept => self.trouble(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn know(&mut self, started: &Started) {
        self.facts.threads = started.threads;
        self.keeper = started.keeper;
        self.left.clone_from(&started.cgroup);
    }

    fn attached(&mut self, group: Group, shared: &mut Shared) -> io::Result<()> {
        if let Source::Cgroup(_) = self.spec.source {
            let limits = group.found_limits(&shared.limits)?;
            self.found = Some(Found {
                limits,
                ..group.found()?
            });
        }
        self.cores = group.cores().ok();
        self.frozen = group.is_frozen().unwrap_or_default();
        self.group = Some(group);
        self.limits = Limits::default();
        shared.found_version += 1;
        Ok(())
    }

    /// Told once, until there is another.
    fn trouble(&mut self, trouble: String) {
        if self.facts.trouble.as_ref() != Some(&trouble) {
            warn!(job = self.spec.job.name, trouble, "trouble");
            self.facts.trouble = Some(trouble);
        }
    }
}
