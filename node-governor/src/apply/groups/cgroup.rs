// SPDX-License-Identifier: Apache-2.0
//! A cgroup, in each hierarchy that has it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal};

use super::DOOR;
use super::cpuset;
use super::folder::Folder;
use super::limits;
use super::mounts::Mounts;
use super::processes::Processes;
use crate::cores::{Cores, Limit, Limits};

const FREEZE_V2: &str = "cgroup.freeze";
const TYPE_V2: &str = "cgroup.type";
const STATE_V1: &str = "freezer.state";
/// Whether it was told itself; the state is also that of one above.
const OWN_V1: &str = "freezer.self_freezing";

/// One cgroup.
#[derive(Debug)]
pub(super) struct Cgroup {
    v2: Option<Folder>,
    cpuset: Option<Folder>,
    freezer: Option<Folder>,
    /// In hierarchies that only say who is in it.
    others: Vec<Folder>,
    /// Of version 2, where it divides cores.
    v2_cpuset: Option<PathBuf>,
    v2_root: Option<PathBuf>,
    possible: PathBuf,
    below: cpuset::V1,
    processes: Processes,
    /// By signals: what it was told last.
    stopped: Option<bool>,
}

enum Freezer<'a> {
    V2(&'a Folder),
    V1(&'a Folder),
    Signals,
}

impl Cgroup {
    /// One that is there.
    pub(super) fn open(mounts: &Mounts, processes: Processes, path: &str) -> io::Result<Cgroup> {
        check(path)?;
        let mut looked = Vec::new();
        let mut open = |root: Option<&Path>| match root.map(|root| root.join(path)) {
            Some(folder) => {
                looked.push(folder.display().to_string());
                Folder::open(folder)
            }
            None => Ok(None),
        };
        let v2 = open(mounts.v2.as_deref())?;
        let cpuset = open(mounts.v1("cpuset"))?;
        let freezer = open(mounts.v1("freezer"))?;
        let mut others = Vec::new();
        for root in mounts.others() {
            others.extend(open(Some(root))?);
        }
        if v2.is_none() && cpuset.is_none() && freezer.is_none() && others.is_empty() {
            let places = match looked.is_empty() {
                true => "no cgroups are mounted".to_owned(),
                false => format!("not at {}", looked.join(", ")),
            };
            let reason = format!("no cgroup {path}: {places}");
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        Ok(Cgroup {
            v2,
            cpuset,
            freezer,
            others,
            v2_cpuset: mounts.v2_cpuset().map(Path::to_owned),
            v2_root: mounts.v2.clone(),
            possible: mounts.possible.clone(),
            below: cpuset::V1::default(),
            processes,
            stopped: None,
        })
    }

    /// Makes it in the hierarchies that are needed, as far as that is allowed; whether it could be made in one.
    pub(super) fn make(mounts: &Mounts, path: &str) -> io::Result<bool> {
        check(path)?;
        let mut made = false;
        match &mounts.v2 {
            Some(root) => made |= make_in(root, path, |_, _| Ok(()))?,
            // Version 2 does all of this for every cgroup.
            None => {
                for root in [mounts.v1("freezer"), mounts.v1("cpuacct")]
                    .into_iter()
                    .flatten()
                {
                    made |= make_in(root, path, |_, _| Ok(()))?;
                }
            }
        }
        match (mounts.v2_cpuset(), mounts.v1("cpuset")) {
            (Some(root), _) if made => cpuset::enable(root, &root.join(path), "cpuset")?,
            (None, Some(root)) => made |= make_in(root, path, cpuset::fill)?,
            _ => {}
        }
        Ok(made)
    }

    fn folders(&self) -> impl Iterator<Item = &Folder> {
        let control = [&self.v2, &self.cpuset, &self.freezer];
        control.into_iter().flatten().chain(&self.others)
    }

    pub(super) fn doors(&self) -> Vec<PathBuf> {
        self.folders()
            .map(|folder| folder.path().join(DOOR))
            .collect()
    }

    pub(super) fn is_there(&self) -> bool {
        self.folders().all(Folder::is_there)
    }

    pub(super) fn processes(&self) -> io::Result<Vec<Pid>> {
        let mut all = Vec::new();
        for folder in self.folders() {
            gather(folder, &mut all)?;
        }
        all.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
        all.dedup();
        Ok(all)
    }

    fn v2_cpuset(&self) -> Option<cpuset::V2<'_>> {
        let (root, folder) = (self.v2_cpuset.as_deref()?, self.v2.as_ref()?);
        let possible = &self.possible;
        Some(cpuset::V2 {
            root,
            folder,
            possible,
        })
    }

    /// Version 2 divides cores, and hands them down to it: nothing in its file says that it inherits.
    pub(super) fn has_cores_of_its_own(&self) -> bool {
        self.v2_cpuset().is_some()
    }

    /// As a file says it, or as threads' affinity is.
    pub(super) fn found_cores(&self) -> io::Result<String> {
        match (self.v2_cpuset(), &self.cpuset) {
            (Some(v2), _) => v2.found(),
            (None, Some(folder)) => cpuset::V1::found(folder),
            (None, None) => Ok(self.affinity()?.to_string()),
        }
    }

    pub(super) fn cores(&self) -> io::Result<Cores> {
        match (self.v2_cpuset(), &self.cpuset) {
            (Some(v2), _) => v2.cores(),
            (None, Some(folder)) => cpuset::V1::cores(folder),
            (None, None) => self.affinity(),
        }
    }

    fn affinity(&self) -> io::Result<Cores> {
        self.processes.cores(&self.processes()?)
    }

    pub(super) fn set_cores(&mut self, cores: &Cores) -> io::Result<()> {
        match (self.v2_cpuset(), &self.cpuset) {
            (Some(v2), _) => v2.set(cores),
            (None, Some(folder)) => self.below.set(folder, cores),
            (None, None) => self.processes.confine(|| self.processes(), cores),
        }
    }

    /// Puts back what [`Cgroup::found_cores`] said.
    pub(super) fn restore_cores(&mut self, text: &str, cores: &Cores) -> io::Result<()> {
        match (self.v2_cpuset(), &self.cpuset) {
            (Some(v2), _) => v2.restore(text),
            (None, Some(folder)) => self.below.restore(folder, cores),
            (None, None) if cores.is_empty() => Ok(()),
            (None, None) => self.processes.confine(|| self.processes(), cores),
        }
    }

    /// As files say it; nothing where it is not in version 2.
    pub(super) fn found_limits(&self, limits: &[Limit]) -> io::Result<BTreeMap<String, String>> {
        match &self.v2 {
            Some(folder) => limits::found(folder, limits),
            None => Ok(BTreeMap::new()),
        }
    }

    /// None where it is not in version 2.
    pub(super) fn set_limits(&self, limits: Limits) -> Option<io::Result<()>> {
        let (root, folder) = (self.v2_root.as_deref()?, self.v2.as_ref()?);
        Some(limits::set(root, folder, limits))
    }

    pub(super) fn restore_limits(&self, found: &BTreeMap<String, String>) -> io::Result<()> {
        match &self.v2 {
            Some(folder) => limits::restore(folder, found),
            None => Ok(()),
        }
    }

    fn freezer(&self) -> Freezer<'_> {
        match (&self.v2, &self.freezer) {
            (Some(folder), _) if folder.has(FREEZE_V2) => Freezer::V2(folder),
            (_, Some(folder)) => Freezer::V1(folder),
            _ => Freezer::Signals,
        }
    }

    pub(super) fn set_frozen(&mut self, frozen: bool) -> io::Result<()> {
        match self.freezer() {
            Freezer::V2(folder) => folder.write(FREEZE_V2, if frozen { "1" } else { "0" }),
            Freezer::V1(folder) => {
                let state = if frozen { "FROZEN" } else { "THAWED" };
                folder.write(STATE_V1, state)
            }
            Freezer::Signals => {
                let signal = if frozen { Signal::STOP } else { Signal::CONT };
                self.processes.signal(|| self.processes(), signal)?;
                self.stopped = Some(frozen);
                Ok(())
            }
        }
    }

    pub(super) fn is_frozen(&self) -> io::Result<bool> {
        match (self.freezer(), self.stopped) {
            (Freezer::V2(folder), _) => Ok(folder.line(FREEZE_V2)? == "1"),
            (Freezer::V1(folder), _) if folder.has(OWN_V1) => Ok(folder.line(OWN_V1)? == "1"),
            (Freezer::V1(folder), _) => Ok(folder.line(STATE_V1)? != "THAWED"),
            (Freezer::Signals, Some(stopped)) => Ok(stopped),
            (Freezer::Signals, None) => self.processes.are_stopped(&self.processes()?),
        }
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        self.folders().try_for_each(Folder::remove)
    }
}

/// Each level of the path, with `fill` for it and its parent; false where that is not allowed.
fn make_in(
    root: &Path,
    path: &str,
    fill: impl Fn(&Folder, &Folder) -> io::Result<()>,
) -> io::Result<bool> {
    let Some(mut parent) = Folder::open(root.to_owned())? else {
        return Ok(false);
    };
    for name in path.split('/') {
        let Some(folder) = Folder::make(parent.path().join(name))? else {
            return Ok(false);
        };
        fill(&folder, &parent)?;
        parent = folder;
    }
    Ok(true)
}

/// Those in it and in those below it.
fn gather(folder: &Folder, all: &mut Vec<Pid>) -> io::Result<()> {
    all.extend(folder.processes()?);
    for below in folder.below()? {
        match gather(&below, all) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !below.is_there() => {}
            // It does not say who is in it: those of its threads are in the list of one above.
            Err(_) if below.line(TYPE_V2).is_ok_and(|kind| kind == "threaded") => {}
            gathered => gathered?,
        }
    }
    Ok(())
}

/// Nothing outside of the mount is meant, and not the mount's own.
fn check(path: &str) -> io::Result<()> {
    let is_bad = |name: &str| matches!(name, "" | "." | "..") || name.contains(['\0', '\n']);
    match path.split('/').any(is_bad) {
        false => Ok(()),
        true => {
            let reason = format!("{path:?}: no path of a cgroup below the mount, as a/b is");
            Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_with_threads_of_processes_above_it_does_not_hide_the_others() {
        let root = tempfile::tempdir().unwrap();
        let threads = root.path().join("a");
        // A folder cannot be read as a file, nor such a cgroup's.
        std::fs::create_dir_all(threads.join(DOOR)).unwrap();
        std::fs::create_dir(root.path().join("b")).unwrap();
        std::fs::write(root.path().join(DOOR), "12\n").unwrap();
        std::fs::write(root.path().join("b").join(DOOR), "34\n").unwrap();
        let all = || {
            let mut all = Vec::new();
            gather(&Folder::open(root.path().to_owned())?.unwrap(), &mut all)?;
            Ok::<_, io::Error>(all.iter().map(|pid| pid.as_raw_nonzero().get()).collect())
        };
        std::fs::write(threads.join(TYPE_V2), "domain\n").unwrap();
        let failed: io::Result<Vec<i32>> = all();
        failed.unwrap_err();
        std::fs::write(threads.join(TYPE_V2), "threaded\n").unwrap();
        assert_eq!(all().unwrap(), [12, 34]);
    }

    #[test]
    fn paths_stay_below_the_mount() {
        for good in ["a", "system.slice/memcached.service", "a/..b", "a b/c"] {
            check(good).unwrap();
        }
        for bad in [
            "", "/", "/a", "a/", "a//b", "..", "a/../b", ".", "a/./b", "a\0", "a\nb",
        ] {
            let error = check(bad).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{bad:?}: ")), "{error}");
        }
    }
}
