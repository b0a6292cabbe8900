// SPDX-License-Identifier: Apache-2.0
//! The cgroups of a round: memcached's, those of jobs that weir-governor starts, and what works for the lab.
//!
//! ```text
//!  /sys/fs/cgroup/{cpuset,cpuacct,freezer,unified}/weir-colocation-PID-N/{memcached,batch,lab}     v1
//!  /sys/fs/cgroup/weir-colocation-PID-N/{memcached,batch,lab}                                      v2
//! ```
//! When the value is dropped, whatever is in them is thawed and killed, and they are removed.

mod removal;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};

pub use self::removal::sweep;
use self::removal::{clear, groups, processes};

const MOUNT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "weir-colocation";
/// The service's, within the tree.
const SERVICE: &str = "memcached";
/// What works for the lab, so that it is found if the lab is killed.
const LAB: &str = "lab";
/// Above those of jobs.
const BATCH: &str = "batch";

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

/// The groups of one round.
#[derive(Debug)]
pub struct Tree {
    name: String,
    /// Where the controllers are mounted.
    mounts: Vec<PathBuf>,
}

impl Tree {
    /// Makes the service's group and the lab's, with all cores.
    ///
    /// # Errors
    /// The machine has no such cgroups, or we may not make any.
    pub fn new() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mounts = mounts(Path::new(MOUNT));
        ensure!(
            mounts.iter().any(|mount| is_cpuset(mount)),
            "there is no cgroup controller cpuset below {MOUNT}"
        );
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}-{}-{number}", std::process::id());
        let tree = Self { name, mounts };
        for mount in &tree.mounts {
            let top = mount.join(&tree.name);
            make(&top)
                .and_then(|()| make(&top.join(SERVICE)))
                .and_then(|()| make(&top.join(LAB)))
                .with_context(|| {
                    format!("making cgroups below {}: are you root?", mount.display())
                })?;
        }
        Ok(tree)
    }

    /// The service's, by its path below the mount.
    #[must_use]
    pub fn service(&self) -> String {
        format!("{}/{SERVICE}", self.name)
    }

    /// For jobs, by its path below the mount.
    #[must_use]
    pub fn batch(&self) -> String {
        format!("{}/{BATCH}", self.name)
    }

    /// Puts a process into the service's group, with all its threads.
    ///
    /// # Errors
    /// It is gone.
    pub fn take(&self, pid: u32) -> Result<()> {
        self.enter(&self.service(), pid)
    }

    /// Puts a process that works for the lab into the lab's group.
    ///
    /// # Errors
    /// It is gone.
    pub fn keep(&self, pid: u32) -> Result<()> {
        self.enter(&format!("{}/{LAB}", self.name), pid)
    }

    fn enter(&self, group: &str, pid: u32) -> Result<()> {
        for mount in &self.mounts {
            let door = mount.join(group).join("cgroup.procs");
            fs::write(&door, pid.to_string())
                .with_context(|| format!("writing {pid} to {}", door.display()))?;
        }
        Ok(())
    }

    /// The service has these cores from now on, as cpusets are written.
    ///
    /// # Errors
    /// There are no such cores.
    pub fn confine(&self, cores: &str) -> Result<()> {
        let file = self.cpuset().join("cpuset.cpus");
        fs::write(&file, cores).with_context(|| format!("writing {cores} to {}", file.display()))
    }

    /// The service's cores, as its file says them.
    ///
    /// # Errors
    /// The group is gone.
    pub fn told(&self) -> Result<String> {
        let file = self.cpuset().join("cpuset.cpus");
        let text = fs::read_to_string(&file);
        let text = text.with_context(|| format!("reading {}", file.display()))?;
        Ok(text.trim().to_owned())
    }

    /// How many cores the service has.
    ///
    /// # Errors
    /// The group is gone.
    pub fn cores(&self) -> Result<usize> {
        let files = ["cpuset.effective_cpus", "cpuset.cpus.effective"];
        let found = files
            .iter()
            .find_map(|file| fs::read_to_string(self.cpuset().join(file)).ok());
        let text = found.context("the service's cgroup is gone")?;
        count(&text).with_context(|| format!("`{}` is no list of cores", text.trim()))
    }

    fn cpuset(&self) -> PathBuf {
        let mount = self.mounts.iter().find(|mount| is_cpuset(mount));
        let mount = mount.map_or(Path::new(MOUNT), PathBuf::as_path);
        mount.join(self.service())
    }

    /// What a job of weir-governor's does.
    #[must_use]
    pub fn job(&self, name: &str) -> Seen {
        let read = |file: &str| {
            let path = |mount: &PathBuf| mount.join(self.batch()).join(name).join(file);
            let texts = self.mounts.iter().map(path);
            texts
                .filter_map(|path| fs::read_to_string(path).ok())
                .collect::<Vec<_>>()
        };
        if read("cgroup.procs")
            .iter()
            .all(|text| text.trim().is_empty())
        {
            return Seen::Absent;
        }
        let frozen = read("freezer.state")
            .iter()
            .any(|text| text.trim() != "THAWED")
            || read("cgroup.freeze").iter().any(|text| text.trim() == "1");
        if frozen { Seen::Paused } else { Seen::Running }
    }

    /// Processes in it that are not the service's.
    #[must_use]
    pub fn left(&self) -> Vec<i32> {
        let tops = self.mounts.iter().map(|mount| mount.join(self.batch()));
        let mut left: Vec<i32> = tops.flat_map(|top| processes(&top)).collect();
        left.sort_unstable();
        left.dedup();
        left
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        clear(&self.mounts, &self.name);
    }
}

/// Names of trees that are there.
#[must_use]
pub fn standing() -> Vec<String> {
    let own = format!("{PREFIX}-{}-", std::process::id());
    mounts(Path::new(MOUNT))
        .iter()
        .flat_map(|mount| groups(mount))
        .map(|group| group.display().to_string())
        .filter(|group| group.contains(&own))
        .collect()
}

/// v2 alone, or each controller of v1 and v2 beside them.
fn mounts(root: &Path) -> Vec<PathBuf> {
    if root.join("cgroup.controllers").exists() {
        return vec![root.to_owned()];
    }
    let of = |name| root.join(name);
    ["cpuset", "cpuacct", "freezer", "unified"]
        .map(of)
        .into_iter()
        .filter(|mount| mount.join("cgroup.procs").exists())
        .collect()
}

fn is_cpuset(mount: &Path) -> bool {
    let v2 = fs::read_to_string(mount.join("cgroup.controllers"));
    mount.join("cpuset.cpus").exists()
        || v2.is_ok_and(|controllers| controllers.split_whitespace().any(|name| name == "cpuset"))
}

fn make(group: &Path) -> io::Result<()> {
    let parent = group.parent().unwrap_or(Path::new(MOUNT));
    let v2 = parent.join("cgroup.subtree_control");
    if v2.exists() && is_cpuset(parent) {
        fs::write(v2, "+cpuset")?;
    }
    fs::create_dir(group)?;
    // v1: a group without cores and memory takes no process.
    for file in ["cpuset.mems", "cpuset.cpus"] {
        if let Ok(text) = fs::read_to_string(parent.join(file)) {
            fs::write(group.join(file), text.trim())?;
        }
    }
    Ok(())
}

/// How many cores `0-2,5` are.
fn count(list: &str) -> Option<usize> {
    let ranges = list.trim().split(',').filter(|range| !range.is_empty());
    ranges
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            (last + 1).checked_sub(first)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_of_a_list_are_counted() {
        for (list, cores) in [("0-2,5\n", 4), ("1", 1), ("", 0)] {
            assert_eq!(count(list), Some(cores), "{list}");
        }
        assert_eq!((count("3-1"), count("all")), (None, None));
    }

    #[test]
    fn mounts_of_both_kinds_are_found() {
        let root = tempfile::tempdir().unwrap();
        for name in ["cpuset", "freezer", "memory", "unified"] {
            fs::create_dir(root.path().join(name)).unwrap();
            fs::write(root.path().join(name).join("cgroup.procs"), "").unwrap();
        }
        let found = mounts(root.path());
        assert_eq!(
            found,
            ["cpuset", "freezer", "unified"].map(|name| root.path().join(name))
        );
        fs::write(root.path().join("cgroup.controllers"), "cpuset cpu").unwrap();
        assert_eq!(mounts(root.path()), [root.path()]);
        assert!(is_cpuset(root.path()));
    }
}
