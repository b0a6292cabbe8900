// SPDX-License-Identifier: Apache-2.0
//! Sets of processes: which cores they run on, and whether they run at all.
//!
//! ```text
//!            cores                       whether they run
//!  cgroup v2 cpuset.cpus                 cgroup.freeze
//!  cgroup v1 cpuset/…/cpuset.cpus        freezer/…/freezer.state     where v2 lacks the controller
//!  neither   affinity of every thread    SIGSTOP, SIGCONT
//! ```

use std::io;
use std::path::PathBuf;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use crate::cores::Cores;
use crate::root::Root;

/// What the machine offers.
#[derive(Clone, Debug)]
pub struct Groups {
    root: Root,
}

/// How a set of processes was found: enough to put it back, whoever does it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// Who it is.
    pub members: Members,
    /// As its file said, empty where it inherits; cores as the kernel lists them where affinity is all there is.
    pub cores: String,
    /// It was frozen before anybody froze it here.
    pub frozen: bool,
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
}

impl Groups {
    /// Looks where the controllers are mounted.
    pub fn find(root: &Root) -> io::Result<Groups> {
        Ok(Groups { root: root.clone() })
    }

    /// One that is there.
    pub fn existing(&self, _members: &Members) -> io::Result<Group> {
        unimplemented!("{:?}", self.root)
    }

    /// A cgroup of ours by this path below the mount, with its parents; it may be there already. None where the
    /// machine has no cgroups that could be written.
    pub fn make(&self, _path: &str) -> io::Result<Option<Group>> {
        unimplemented!()
    }
}

impl Group {
    /// Who is in it.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Files into which a process writes 0 to be in it; none for a process' own.
    pub fn doors(&self) -> Vec<PathBuf> {
        unimplemented!()
    }

    /// How it is now.
    pub fn found(&self) -> io::Result<Found> {
        unimplemented!()
    }

    /// From now on all of it runs there. Cores are not none.
    pub fn set_cores(&mut self, _cores: &Cores) -> io::Result<()> {
        unimplemented!()
    }

    /// Where it runs now.
    pub fn cores(&self) -> io::Result<Cores> {
        unimplemented!()
    }

    /// Stops all of it, without waiting until it has stopped.
    pub fn freeze(&mut self) -> io::Result<()> {
        unimplemented!()
    }

    /// Lets it go on.
    pub fn thaw(&mut self) -> io::Result<()> {
        unimplemented!()
    }

    /// Whether it has been told to stop.
    pub fn is_frozen(&self) -> io::Result<bool> {
        unimplemented!()
    }

    /// Processes in it, also of those below it.
    pub fn processes(&self) -> io::Result<Vec<Pid>> {
        unimplemented!()
    }

    /// Whether it is still the one that was opened: a cgroup that was removed and made anew is another.
    pub fn is_there(&self) -> bool {
        unimplemented!()
    }

    /// Puts it back as it was found, and thawed unless it was found frozen.
    pub fn restore(&mut self, _found: &Found) -> io::Result<()> {
        unimplemented!()
    }

    /// Removes an empty one.
    pub fn remove(self) -> io::Result<()> {
        unimplemented!()
    }
}
