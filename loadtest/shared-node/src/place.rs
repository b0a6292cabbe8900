// SPDX-License-Identifier: Apache-2.0
//! The cgroups of one way: the service's, and the batch job's below another one, as weir-governor makes it.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::time::{clock_getcpuclockid, clock_gettime};
use rustix::process::{Pid, Signal, kill_process};
use weir_governor::apply::groups::{Group, Groups, Members};
use weir_governor::cores::Cores;
use weir_governor::root::Root;

const PREFIX: &str = "weir-shared-node";
/// The job's name, and its cgroup's.
pub const JOB: &str = "burn";
/// To remove groups: a killed process takes a while to go.
const REMOVAL: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// The groups. What is in them when it is dropped is thawed and killed, and they are removed.
pub struct Place {
    groups: Groups,
    top: String,
    service: Group,
}

impl Place {
    /// Makes the service's group, with all cores.
    ///
    /// # Errors
    /// The machine cannot divide cores between cgroups, we may not make any, or it has not two cores.
    pub fn new() -> Result<Self> {
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
        let top = format!("{PREFIX}-{}-{number}", std::process::id());
        let service = groups.make(&format!("{top}/service"))?;
        let service = service.context("no cgroup can be made here")?;
        Ok(Self {
            groups,
            top,
            service,
        })
    }

    /// The service's, by its path below the mount.
    #[must_use]
    pub fn service(&self) -> String {
        format!("{}/service", self.top)
    }

    /// Above the job's, by its path below the mount.
    #[must_use]
    pub fn batch(&self) -> String {
        format!("{}/batch", self.top)
    }

    /// Puts the service's process there, with all its threads.
    ///
    /// # Errors
    /// It is gone.
    pub fn take(&self, pid: i32) -> Result<()> {
        take(&self.service, pid)
    }

    /// Makes the job's group, with these cores if told any, and puts a process there.
    ///
    /// # Errors
    /// The group cannot be made, or the process is gone.
    pub fn take_job(&self, pid: i32, cores: Option<&Cores>) -> Result<()> {
        let job = self.groups.make(&format!("{}/{JOB}", self.batch()))?;
        let mut job = job.context("no cgroup can be made here")?;
        if let Some(cores) = cores {
            job.set_cores(cores)?;
        }
        take(&job, pid)
    }

    /// The service has these from now on.
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

    /// CPU time of the job's processes so far; nothing while there are none.
    #[must_use]
    pub fn job_cpu(&self) -> Duration {
        self.job().as_ref().map_or(Duration::ZERO, cpu)
    }

    /// Whether the job is there and runs.
    #[must_use]
    pub fn job_runs(&self) -> bool {
        let Some(job) = self.job() else { return false };
        job.processes().is_ok_and(|all| !all.is_empty()) && job.is_frozen().is_ok_and(|is| !is)
    }

    /// Processes that are not the service's.
    ///
    /// # Errors
    /// A group's file cannot be read.
    pub fn left(&self) -> Result<Vec<Pid>> {
        let batch = self.groups.existing(&Members::Cgroup(self.batch()));
        match batch {
            Ok(batch) => Ok(batch.processes()?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn job(&self) -> Option<Group> {
        let path = format!("{}/{JOB}", self.batch());
        self.groups.existing(&Members::Cgroup(path)).ok()
    }

    fn clear(&self) -> std::io::Result<()> {
        if let Some(mut job) = self.job() {
            job.thaw()?;
        }
        let top = self.groups.existing(&Members::Cgroup(self.top.clone()))?;
        for pid in top.processes()? {
            let _ = kill_process(pid, Signal::KILL);
        }
        top.remove()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let begun = Instant::now();
        while let Err(error) = self.clear() {
            if error.kind() == std::io::ErrorKind::NotFound {
                return;
            }
            if begun.elapsed() > REMOVAL {
                eprintln!("shared-node: {} cannot be removed: {error}", self.top);
                return;
            }
            sleep(POLL);
        }
    }
}

fn take(group: &Group, pid: i32) -> Result<()> {
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
