// SPDX-License-Identifier: Apache-2.0
//! The cgroups of one turn: the service's, those of batch jobs, and what works for the lab.
//!
//! ```text
//!  weir-EXPERIMENT-PID-N/service       cores are divided between it
//!  weir-EXPERIMENT-PID-N/batch/JOB     and each job
//!  weir-EXPERIMENT-PID-N/pinned        one of the lab's processes that has only some cores
//!  weir-EXPERIMENT-PID-N/lab           the lab's own processes, found here by the next run if it is killed
//! ```
//! When the value is dropped, whatever is in them is thawed and killed, and they are removed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::time::{clock_getcpuclockid, clock_gettime};
use rustix::process::{Pid, Signal, kill_process};
use weir_governor::apply::groups::{Group, Groups, Members};
use weir_governor::cores::Cores;
use weir_governor::root::Root;
use weir_stage::record;

/// Where cgroups are mounted, of both versions.
const MOUNT: &str = "/sys/fs/cgroup";
/// To remove groups: a killed process takes a while to go.
const REMOVAL: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Whether a job is there and runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Seen {
    /// Has no process.
    Absent,
    /// Has one, and is not frozen.
    Running,
    /// Is frozen.
    Paused,
}

/// The groups of one turn.
#[derive(Debug)]
pub struct Cgroups {
    groups: Groups,
    top: String,
    service: Group,
    lab: Group,
}

impl Cgroups {
    /// Makes the service's group and the lab's, with all cores.
    ///
    /// # Errors
    /// The machine cannot divide cores between cgroups, we may not make any, or it has not two cores.
    pub fn new(experiment: &str) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let root = Root::new("/");
        let online = root.online()?;
        ensure!(
            online.has(0) && online.has(1),
            "cores 0 and 1 are needed, and {online} are online"
        );
        let groups = Groups::find(&root)?;
        ensure!(
            groups.can_divide(),
            "cores cannot be divided between cgroups: {}",
            groups.means()
        );
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let top = format!("{}{number}", own_prefix(experiment, std::process::id()));
        let made = ["service", "lab"].map(|name| make(&groups, &format!("{top}/{name}")));
        if made.iter().any(Result::is_err) {
            remove(&groups, &top);
        }
        let [service, lab] = made;
        Ok(Self {
            groups,
            top,
            service: service?,
            lab: lab?,
        })
    }

    /// The service's, by its path below the mount.
    #[must_use]
    pub fn service(&self) -> String {
        format!("{}/service", self.top)
    }

    /// Above those of jobs, by its path below the mount.
    #[must_use]
    pub fn batch(&self) -> String {
        format!("{}/batch", self.top)
    }

    /// Puts a process into the service's group, with all its threads.
    ///
    /// # Errors
    /// It is gone.
    pub fn take(&self, pid: u32) -> Result<()> {
        enter(&self.service, pid)
    }

    /// Puts a process that works for the lab into the lab's group.
    ///
    /// # Errors
    /// It is gone.
    pub fn keep(&self, pid: u32) -> Result<()> {
        enter(&self.lab, pid)
    }

    /// Puts a process into a group of its own that has these cores; what it starts is there, too.
    ///
    /// # Errors
    /// The group cannot be made, there are no such cores, or the process is gone.
    pub fn keep_on(&self, pid: u32, cores: &Cores) -> Result<()> {
        let mut own = make(&self.groups, &format!("{}/pinned", self.top))?;
        own.set_cores(cores)?;
        enter(&own, pid)
    }

    /// Makes a job's group, with these cores if told any, and puts a process there.
    ///
    /// # Errors
    /// The group cannot be made, or the process is gone.
    pub fn take_job(&self, job: &str, pid: u32, cores: Option<&Cores>) -> Result<()> {
        let mut job = make(&self.groups, &self.path(job))?;
        if let Some(cores) = cores {
            job.set_cores(cores)?;
        }
        enter(&job, pid)
    }

    /// The service has these cores from now on.
    ///
    /// # Errors
    /// There are no such cores.
    pub fn confine(&mut self, cores: &Cores) -> Result<()> {
        Ok(self.service.set_cores(cores)?)
    }

    /// The cores that the service has.
    ///
    /// # Errors
    /// The group is gone.
    pub fn cores(&self) -> Result<Cores> {
        Ok(self.service.cores()?)
    }

    /// CPU time of the service's processes.
    #[must_use]
    pub fn service_cpu(&self) -> Duration {
        cpu(&self.service)
    }

    /// CPU time of a job's processes so far; nothing while there are none.
    #[must_use]
    pub fn job_cpu(&self, job: &str) -> Duration {
        self.existing(job).as_ref().map_or(Duration::ZERO, cpu)
    }

    /// What a job does.
    #[must_use]
    pub fn job(&self, job: &str) -> Seen {
        let Some(job) = self.existing(job) else {
            return Seen::Absent;
        };
        match (job.processes(), job.is_frozen()) {
            (Ok(all), _) if all.is_empty() => Seen::Absent,
            (Ok(_), Ok(true)) => Seen::Paused,
            (Ok(_), Ok(false)) => Seen::Running,
            // It went away meanwhile.
            _ => Seen::Absent,
        }
    }

    /// The service is on the cores that it was found with, and no process of a job is there.
    ///
    /// # Errors
    /// The governor has left it otherwise, or a group's file cannot be read.
    pub fn put_back(&self, found: &Cores) -> Result<()> {
        let left = match self.groups.existing(&Members::Cgroup(self.batch())) {
            Ok(batch) => batch.processes()?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        ensure!(
            left.is_empty(),
            "processes {left:?} of jobs are left behind"
        );
        let cores = self.cores()?;
        ensure!(
            cores == *found,
            "the governor has left the service on cores {cores} instead of {found}"
        );
        Ok(())
    }

    fn path(&self, job: &str) -> String {
        format!("{}/{job}", self.batch())
    }

    fn existing(&self, job: &str) -> Option<Group> {
        self.groups.existing(&Members::Cgroup(self.path(job))).ok()
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        remove(&self.groups, &self.top);
    }
}

/// Removes what runs of an experiment have left that were themselves killed.
///
/// # Errors
/// The kernel tells of no mounts.
pub fn sweep(experiment: &str) -> Result<()> {
    let groups = Groups::find(&Root::new("/"))?;
    let prefix = format!("weir-{experiment}-");
    for name in tops() {
        let rest = name.strip_prefix(&prefix);
        let pid = rest.and_then(|rest| rest.split('-').next()?.parse().ok());
        if pid.is_some_and(|pid| !record::lives(pid)) {
            remove(&groups, &name);
        }
    }
    Ok(())
}

/// Groups of this process that are there.
#[must_use]
pub fn standing(experiment: &str) -> Vec<String> {
    let own = own_prefix(experiment, std::process::id());
    tops()
        .into_iter()
        .filter(|name| name.starts_with(&own))
        .collect()
}

fn own_prefix(experiment: &str, pid: u32) -> String {
    format!("weir-{experiment}-{pid}-")
}

/// Names of the groups right below the mounts.
fn tops() -> BTreeSet<String> {
    let mounts = folders(Path::new(MOUNT));
    let all = mounts.iter().flat_map(|mount| folders(mount));
    let all = all.chain(folders(Path::new(MOUNT)));
    all.filter_map(|group| Some(group.file_name()?.to_str()?.to_owned()))
        .collect()
}

fn folders(top: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(top).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

fn make(groups: &Groups, path: &str) -> Result<Group> {
    let made = groups.make(path);
    let made = made.with_context(|| format!("making the cgroup {path}: are you root?"))?;
    made.context("no cgroup can be made here")
}

fn enter(group: &Group, pid: u32) -> Result<()> {
    for door in group.doors() {
        fs::write(&door, pid.to_string())
            .with_context(|| format!("writing {pid} to {}", door.display()))?;
    }
    Ok(())
}

fn cpu(group: &Group) -> Duration {
    let of = |pid: Pid| -> Option<Duration> {
        let clock = clock_getcpuclockid(nix::unistd::Pid::from_raw(pid.as_raw_pid())).ok()?;
        Some(clock_gettime(clock).ok()?.into())
    };
    let all = group.processes().unwrap_or_default();
    all.into_iter().filter_map(of).sum()
}

/// Thaws, kills and removes, again and again until the limit.
fn remove(groups: &Groups, top: &str) {
    let begun = Instant::now();
    while let Ok(group) = groups.existing(&Members::Cgroup(top.to_owned())) {
        thaw(groups, top, &group);
        for pid in group.processes().unwrap_or_default() {
            let _ = kill_process(pid, Signal::KILL);
        }
        match group.remove() {
            Err(error) if begun.elapsed() > REMOVAL => {
                eprintln!("the cgroup {top} cannot be removed: {error}");
                return;
            }
            _ => sleep(POLL),
        }
    }
}

/// It and all below it: each may have been frozen by itself.
fn thaw(groups: &Groups, path: &str, group: &Group) {
    let doors = group.doors();
    let below = doors
        .iter()
        .filter_map(|door| door.parent())
        .flat_map(folders);
    let names = below.filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned()));
    for path in names
        .map(|name| format!("{path}/{name}"))
        .collect::<BTreeSet<_>>()
    {
        if let Ok(group) = groups.existing(&Members::Cgroup(path.clone())) {
            thaw(groups, &path, &group);
        }
    }
    if let Ok(mut group) = groups.existing(&Members::Cgroup(path.to_owned())) {
        let _ = group.thaw();
    }
}
