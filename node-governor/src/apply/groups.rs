// SPDX-License-Identifier: Apache-2.0
//! Sets of processes: which cores they run on, and whether they run at all.
//!
//! ```text
//!            cores                       whether they run
//!  cgroup v2 cpuset.cpus                 cgroup.freeze
//!  cgroup v1 cpuset/…/cpuset.cpus        freezer/…/freezer.state     where v2 lacks the controller
//!  neither   affinity of every thread    SIGSTOP, SIGCONT
//! ```
//!
//! A cgroup may be in some hierarchies and not in others: those where it is are used. Every error names its file.

mod cgroup;
mod cpuset;
mod folder;
pub(crate) mod limits;
mod mounts;
mod processes;
mod tree;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use crate::cores::{Cores, Limit, Limits};
use crate::root::{Root, core_list};
use cgroup::Cgroup;
use mounts::Mounts;
use processes::Processes;
use tree::Tree;

/// Whoever writes 0 there is in that cgroup.
const DOOR: &str = "cgroup.procs";

/// What the machine offers.
#[derive(Clone, Debug)]
pub struct Groups {
    mounts: Mounts,
    processes: Processes,
}

/// How a set of processes was found: enough to put it back, whoever does it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// Who it is.
    pub members: Members,
    /// As its file said, empty where it inherits; cores as the kernel lists them where affinity is all there is.
    pub cores: String,
    /// It was frozen before anybody froze it here; none of what is never frozen here, as services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<bool>,
    /// Files of version 2 for memory and disk, those that are written here, as they said.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

/// Who is in a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Members {
    /// Of a cgroup, by its path below the mount: `system.slice/memcached.service`.
    Cgroup(String),
    /// A process and all that come from it, with its start time in clock ticks since boot: a number that is used
    /// anew is another process.
    Process {
        /// Its number.
        pid: i32,
        /// Field 22 of its `stat`.
        started: u64,
    },
}

/// A set of processes that is there.
#[derive(Debug)]
pub struct Group {
    members: Members,
    set: Set,
}

#[derive(Debug)]
enum Set {
    Cgroup(Box<Cgroup>),
    Tree(Tree),
}

impl Groups {
    /// Looks where the controllers are mounted.
    pub fn find(root: &Root) -> io::Result<Groups> {
        Ok(Groups {
            mounts: Mounts::find(root)?,
            processes: Processes::new(root),
        })
    }

    /// Cores can be divided between cgroups.
    pub fn can_divide(&self) -> bool {
        self.mounts
            .cpuset()
            .is_some_and(|(root, _)| can_write(root))
    }

    /// Where version 2 is mounted.
    pub fn v2(&self) -> Option<&Path> {
        self.mounts.v2.as_deref()
    }

    /// Cgroups of version 2 can have this.
    pub fn can_limit(&self, limit: Limit) -> bool {
        self.mounts.v2_with(limit.controller()).is_some()
    }

    /// What jobs can be limited to beside cores, for people.
    pub fn limits(&self) -> String {
        let shown = [
            (Limit::Memory, "memory by memory.high"),
            (Limit::Disk, "disk by io.weight"),
        ];
        let shown = shown.map(|(limit, how)| match self.can_limit(limit) {
            true => how.to_owned(),
            false => format!("not {how}: no cgroup v2 with {}", limit.controller()),
        });
        shown.join("; ")
    }

    /// What is used and where, for people.
    pub fn means(&self) -> String {
        let at = |version: &str, root: &Path| {
            let refused = if can_write(root) {
                ""
            } else {
                ", which cannot be written"
            };
            format!("cgroup {version} at {}{refused}", root.display())
        };
        let cores = match self.mounts.cpuset() {
            Some((root, true)) => at("v2", root),
            Some((root, false)) => at("v1 cpuset", root),
            None => "affinity of threads, for there is no cpuset".to_owned(),
        };
        let freezing = match (&self.mounts.v2, self.mounts.v1("freezer")) {
            (Some(root), _) => at("v2", root),
            (None, Some(root)) => at("v1 freezer", root),
            (None, None) => "SIGSTOP, for no cgroup can freeze".to_owned(),
        };
        format!(
            "cores: {cores}; freezing: {freezing}; where a cgroup is not there: affinity, SIGSTOP"
        )
    }

    /// One that is there. What is not, or is another by now, is [`io::ErrorKind::NotFound`].
    pub fn existing(&self, members: &Members) -> io::Result<Group> {
        let processes = self.processes.clone();
        let set = match members {
            Members::Cgroup(path) => {
                Set::Cgroup(Box::new(Cgroup::open(&self.mounts, processes, path)?))
            }
            Members::Process { pid, started } => Set::Tree(Tree::open(processes, *pid, *started)?),
        };
        let members = members.clone();
        Ok(Group { members, set })
    }

    /// A process by its number, as it is there now.
    pub fn process(&self, pid: i32) -> io::Result<Members> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, format!("no process {pid}"));
        let number = processes::pid(pid).ok_or_else(gone)?;
        let stat = self.processes.stat(number)?.ok_or_else(gone)?;
        let started = stat.started;
        Ok(Members::Process { pid, started })
    }

    /// A process's threads; none of one that has gone.
    pub fn threads(&self, pid: Pid) -> io::Result<Vec<Pid>> {
        self.processes.threads(pid)
    }

    /// A cgroup of ours by this path below the mount, with its parents; it may be there already. A new one has the
    /// cores of its parent. None where the machine has no cgroups that could be written.
    pub fn make(&self, path: &str) -> io::Result<Option<Group>> {
        match Cgroup::make(&self.mounts, path)? {
            true => self.existing(&Members::Cgroup(path.to_owned())).map(Some),
            false => Ok(None),
        }
    }
}

impl Group {
    /// Who is in it.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Files into which a process writes 0 to be in it; none for a process' own.
    pub fn doors(&self) -> Vec<PathBuf> {
        match &self.set {
            Set::Cgroup(cgroup) => cgroup.doors(),
            Set::Tree(_) => Vec::new(),
        }
    }

    /// How it is now.
    pub fn found(&self) -> io::Result<Found> {
        let cores = match &self.set {
            Set::Cgroup(cgroup) => cgroup.found_cores()?,
            Set::Tree(tree) => tree.cores()?.to_string(),
        };
        Ok(Found {
            members: self.members.clone(),
            cores,
            frozen: Some(self.is_frozen()?),
            limits: BTreeMap::new(),
        })
    }

    /// How these are now, for [`Found::limits`].
    pub fn found_limits(&self, limits: &[Limit]) -> io::Result<BTreeMap<String, String>> {
        match &self.set {
            Set::Cgroup(cgroup) => cgroup.found_limits(limits),
            Set::Tree(_) => Ok(BTreeMap::new()),
        }
    }

    /// From now on all of it together has no more than this.
    pub fn set_limits(&mut self, limits: Limits) -> io::Result<()> {
        let set = match &self.set {
            Set::Cgroup(cgroup) => cgroup.set_limits(limits),
            Set::Tree(_) => None,
        };
        set.unwrap_or_else(|| {
            let reason = format!("{:?}: is in no cgroup of version 2", self.members);
            Err(io::Error::new(io::ErrorKind::Unsupported, reason))
        })
    }

    /// From now on all of it runs there. Cores are not none. By affinity this is for those that are in it now, and
    /// for what comes from them: for others that join it is to be called again.
    pub fn set_cores(&mut self, cores: &Cores) -> io::Result<()> {
        if cores.is_empty() {
            let reason = format!("{:?}: no cores to run on", self.members);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        match &mut self.set {
            Set::Cgroup(cgroup) => cgroup.set_cores(cores),
            Set::Tree(tree) => tree.set_cores(cores),
        }
    }

    /// What it was found with is nobody's yet: it has no processes, whose affinity that would be.
    pub fn is_unfilled(&self, found: &Found) -> bool {
        let divides = matches!(&self.set, Set::Cgroup(cgroup) if cgroup.has_cores_of_its_own());
        found.cores.is_empty() && !divides
    }

    /// Where it runs now.
    pub fn cores(&self) -> io::Result<Cores> {
        match &self.set {
            Set::Cgroup(cgroup) => cgroup.cores(),
            Set::Tree(tree) => tree.cores(),
        }
    }

    /// Stops all of it, without waiting until it has stopped. Refused where this process is in it: nobody would be
    /// left to thaw it.
    pub fn freeze(&mut self) -> io::Result<()> {
        let own = rustix::process::getpid();
        if self.processes()?.contains(&own) {
            let reason = format!(
                "{:?}: has process {own}, which is to freeze it",
                self.members
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        self.set_frozen(true)
    }

    /// Lets it go on.
    pub fn thaw(&mut self) -> io::Result<()> {
        self.set_frozen(false)
    }

    fn set_frozen(&mut self, frozen: bool) -> io::Result<()> {
        match &mut self.set {
            Set::Cgroup(cgroup) => cgroup.set_frozen(frozen),
            Set::Tree(tree) => tree.set_frozen(frozen),
        }
    }

    /// Whether it has been told to stop.
    pub fn is_frozen(&self) -> io::Result<bool> {
        match &self.set {
            Set::Cgroup(cgroup) => cgroup.is_frozen(),
            Set::Tree(tree) => tree.is_frozen(),
        }
    }

    /// Processes in it, also of those below it.
    pub fn processes(&self) -> io::Result<Vec<Pid>> {
        match &self.set {
            Set::Cgroup(cgroup) => cgroup.processes(),
            Set::Tree(tree) => tree.list(),
        }
    }

    /// Whether it is still the one that was opened: a cgroup that was removed and made anew is another.
    pub fn is_there(&self) -> bool {
        match &self.set {
            Set::Cgroup(cgroup) => cgroup.is_there(),
            Set::Tree(tree) => tree.is_there(),
        }
    }

    /// Puts back [`Found::limits`].
    pub fn restore_limits(&mut self, found: &BTreeMap<String, String>) -> io::Result<()> {
        match &self.set {
            Set::Cgroup(cgroup) => cgroup.restore_limits(found),
            Set::Tree(_) => Ok(()),
        }
    }

    /// Puts it back as it was found, and thawed unless it was found frozen or is never frozen here. Of one that has gone there is nothing to
    /// put back. Cgroups of version 1 below it get what they had before they were changed through this value, or
    /// else all cores that it was found with; threads get all that any of them was found with.
    pub fn restore(&mut self, found: &Found) -> io::Result<()> {
        if !self.is_there() {
            return Ok(());
        }
        let cores = self.restore_cores(&found.cores);
        let limits = self.restore_limits(&found.limits);
        // Whatever became of its cores, it goes on.
        let frozen = match found.frozen {
            None => Ok(()),
            Some(true) if self.is_frozen()? => Ok(()),
            Some(true) => self.freeze(),
            Some(false) => self.thaw(),
        };
        match cores.and(limits).and(frozen) {
            Err(_) if !self.is_there() => Ok(()),
            restored => restored,
        }
    }

    fn restore_cores(&mut self, text: &str) -> io::Result<()> {
        let cores = core_list(text).ok_or_else(|| {
            let reason = format!("{:?}: found with {text:?}, no list of cores", self.members);
            io::Error::new(io::ErrorKind::InvalidData, reason)
        })?;
        let cores: Cores = cores.into_iter().collect();
        match &mut self.set {
            Set::Cgroup(cgroup) => cgroup.restore_cores(text, &cores),
            Set::Tree(_) if cores.is_empty() => Ok(()),
            Set::Tree(tree) => tree.set_cores(&cores),
        }
    }

    /// Removes an empty one, with those below it.
    pub fn remove(self) -> io::Result<()> {
        match &self.set {
            Set::Cgroup(cgroup) => cgroup.remove(),
            Set::Tree(_) => Ok(()),
        }
    }
}

fn can_write(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

/// What has gone is not found, whichever way the kernel says it.
pub(super) fn named(path: &Path, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    let is_gone = error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error());
    let kind = if is_gone {
        io::ErrorKind::NotFound
    } else {
        error.kind()
    };
    io::Error::new(kind, format!("{}: {error}", path.display()))
}
