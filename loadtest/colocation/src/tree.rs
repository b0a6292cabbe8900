// SPDX-License-Identifier: Apache-2.0
//! The cgroups of a round: memcached's, those of jobs that weir-governor starts, and what works for the lab.
//!
//! ```text
//!  /sys/fs/cgroup/{cpuset,cpuacct,freezer,unified}/weir-colocation-PID-N/{memcached,batch,lab}     v1
//!  /sys/fs/cgroup/weir-colocation-PID-N/{memcached,batch,lab}                                      v2
//! ```
//! When the value is dropped, whatever is in them is thawed and killed, and they are removed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

const MOUNT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "weir-colocation";
/// The service's, within the tree.
const SERVICE: &str = "memcached";
/// What works for the lab, so that it is found if the lab is killed.
const LAB: &str = "lab";
/// Above those of jobs.
const BATCH: &str = "batch";
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

/// Removes what a lab has left that was itself killed, by its process id.
pub fn sweep() {
    let mounts = mounts(Path::new(MOUNT));
    let names = mounts.iter().flat_map(|mount| groups(mount));
    let names: BTreeSet<OsString> = names
        .filter_map(|group| Some(group.file_name()?.to_owned()))
        .collect();
    for name in names.iter().filter_map(|name| name.to_str()) {
        let pid = name.strip_prefix(PREFIX).and_then(|rest| {
            let pid = rest.strip_prefix('-')?.split('-').next()?;
            pid.parse::<u32>().ok()
        });
        if pid.is_some_and(|pid| !is_alive(pid)) {
            clear(&mounts, name);
        }
    }
}

/// Whether it runs; one that has ended and was not waited for does not.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    state.is_some_and(|state| !["Z", "X"].contains(&state))
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

/// Groups right below this one.
fn groups(top: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(top).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

/// In this group and those below it.
fn processes(top: &Path) -> Vec<i32> {
    let text = fs::read_to_string(top.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    found.extend(groups(top).iter().flat_map(|group| processes(group)));
    found
}

/// Thaws, kills and removes. All of it until the limit: what is frozen by one controller cannot be killed by way of
/// another.
fn clear(mounts: &[PathBuf], name: &str) {
    let tops: Vec<PathBuf> = mounts.iter().map(|mount| mount.join(name)).collect();
    let begun = Instant::now();
    while tops.iter().any(|top| top.exists()) && begun.elapsed() < REMOVAL {
        tops.iter().for_each(|top| thaw(top));
        let inside = tops.iter().flat_map(|top| processes(top));
        for pid in inside.filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        tops.iter().for_each(|top| remove(top));
        sleep(POLL);
    }
    for top in tops.iter().filter(|top| top.exists()) {
        eprintln!("colocation: {} cannot be removed", top.display());
    }
}

fn thaw(top: &Path) {
    for (file, word) in [("freezer.state", "THAWED"), ("cgroup.freeze", "0")] {
        if top.join(file).exists() {
            let _ = fs::write(top.join(file), word);
        }
    }
    groups(top).iter().for_each(|group| thaw(group));
}

fn remove(top: &Path) {
    groups(top).iter().for_each(|group| remove(group));
    let _ = fs::remove_dir(top);
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
    fn a_process_that_was_killed_is_not_alive_also_before_it_was_waited_for() {
        assert!(is_alive(std::process::id()));
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        assert!(is_alive(child.id()));
        child.kill().unwrap();
        let begun = Instant::now();
        while is_alive(child.id()) {
            assert!(begun.elapsed() < Duration::from_secs(60));
            sleep(POLL);
        }
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
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
