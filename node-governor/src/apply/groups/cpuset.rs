// SPDX-License-Identifier: Apache-2.0
//! Cores of cgroups. Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/cpusets.rst say what the files mean.
//!
//! Version 2 hands a group's cores down: what is below it has no others, whatever its own file says. In version 1
//! each cgroup has a list that lies within that of the one above it, so that whoever shrinks a group (a pod) must
//! first shrink what is in it (its containers).

use std::collections::HashMap;
use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::folder::Folder;
use super::named;
use crate::cores::Cores;

const CPUS: &str = "cpuset.cpus";
const MEMS: &str = "cpuset.mems";
/// Those that a group runs on, by version: its own without those that are offline or that its parent has not.
const EFFECTIVE_V2: &str = "cpuset.cpus.effective";
const EFFECTIVE_V1: &str = "cpuset.effective_cpus";
/// New containers come while their pod is shrunk, but not so many times.
const TRIES: usize = 8;

/// Version 2's controller.
#[derive(Debug)]
pub(super) struct V2<'a> {
    /// Of the hierarchy.
    pub(super) root: &'a Path,
    /// The group's.
    pub(super) folder: &'a Folder,
    /// The file with all cores that the machine can have.
    pub(super) possible: &'a Path,
}

impl V2<'_> {
    /// As its file says; nothing where it inherits, also because the controller is not enabled for it.
    pub(super) fn found(&self) -> io::Result<String> {
        match self.folder.has(CPUS) {
            true => self.folder.line(CPUS),
            false => Ok(String::new()),
        }
    }

    /// Where it runs.
    pub(super) fn cores(&self) -> io::Result<Cores> {
        let mut cores = runs(self.folder)?;
        for path in ancestors(self.folder.path(), self.root).skip(1) {
            if !cores.is_empty() {
                return Ok(cores);
            }
            if let Some(folder) = Folder::open(path.to_owned())? {
                cores = runs(&folder)?;
            }
        }
        let reason = "cpuset is not enabled, here or above";
        let none = || named(self.folder.path(), io::Error::other(reason));
        Some(cores)
            .filter(|cores| !cores.is_empty())
            .ok_or_else(none)
    }

    pub(super) fn set(&self, cores: &Cores) -> io::Result<()> {
        self.put(&cores.to_string())?;
        if !self.folder.has(EFFECTIVE_V2) {
            return Ok(());
        }
        // Where the parent has none of these, the kernel takes the write, and lets it run on all that the parent has.
        let runs = self.folder.cores(EFFECTIVE_V2)?;
        if runs.without(cores).is_empty() {
            return Ok(());
        }
        let reason = format!("{cores} was written, but it runs on {runs}");
        let error = io::Error::other(reason);
        Err(self.refused(named(&self.folder.path().join(CPUS), error)))
    }

    /// As found. Kernels refuse to take the cores of processes away (`validate_change` in `kernel/cgroup/cpuset.c`):
    /// one that inherited then gets all that the machine can have, so that as before it runs where its parent does.
    pub(super) fn restore(&self, cores: &str) -> io::Result<()> {
        match self.put(cores) {
            Err(error) if cores.is_empty() && error.kind() == io::ErrorKind::StorageFull => {
                let all = crate::root::line(self.possible);
                self.put(&all.map_err(|error| named(self.possible, error))?)
            }
            put => put,
        }
    }

    /// Writes it as it is, if it is not there already.
    fn put(&self, cores: &str) -> io::Result<()> {
        if self.found()? == cores {
            return Ok(());
        }
        if !self.folder.has(CPUS) {
            enable(self.root, self.folder.path(), "cpuset")?;
        }
        self.folder.write(CPUS, cores).map_err(|error| {
            let reason = format!("{error}; {cores:?} was written");
            self.refused(io::Error::new(error.kind(), reason))
        })
    }

    fn refused(&self, error: io::Error) -> io::Error {
        allowed(self.folder.path(), EFFECTIVE_V2, error)
    }
}

/// None where it has no such file, or inherits.
fn runs(folder: &Folder) -> io::Result<Cores> {
    for file in [EFFECTIVE_V2, CPUS] {
        if folder.has(file) {
            return folder.cores(file);
        }
    }
    Ok(Cores::NONE)
}

/// Lets groups at this path have cores, memory or weights of their own: `+cpuset`, say, in every cgroup above it. It is
/// left so, for with nothing written in the controller's files it changes nothing, and who else relies on it by then is
/// not known.
pub(super) fn enable(root: &Path, path: &Path, controller: &str) -> io::Result<()> {
    const FILE: &str = "cgroup.subtree_control";
    let mut above: Vec<&Path> = ancestors(path, root).skip(1).collect();
    above.reverse();
    for path in above {
        let gone = || named(path, Errno::NOENT);
        let folder = Folder::open(path.to_owned())?.ok_or_else(gone)?;
        let enabled = folder.line(FILE)?;
        if !enabled.split_whitespace().any(|name| name == controller) {
            let text = format!("+{controller}");
            folder.write(FILE, &text).map_err(|error| {
                io::Error::new(error.kind(), format!("{error}; {text:?} was written"))
            })?;
        }
    }
    Ok(())
}

/// A new cgroup of version 1 gets what its parent has: without cores and memory nobody can join it.
pub(super) fn fill(folder: &Folder, parent: &Folder) -> io::Result<()> {
    for file in [MEMS, CPUS] {
        if folder.line(file)?.is_empty() {
            folder.write(file, &parent.line(file)?)?;
        }
    }
    Ok(())
}

/// Version 1's controller, of one group and what is below it.
#[derive(Debug, Default)]
pub(super) struct V1 {
    /// What those below it had when they were seen first; none for all that the one above them had.
    shares: HashMap<(u64, u64), Option<Cores>>,
    /// They are known from before the first change.
    known: bool,
}

impl V1 {
    pub(super) fn found(folder: &Folder) -> io::Result<String> {
        folder.line(CPUS)
    }

    pub(super) fn cores(folder: &Folder) -> io::Result<Cores> {
        match folder.has(EFFECTIVE_V1) {
            true => folder.cores(EFFECTIVE_V1),
            false => folder.cores(CPUS),
        }
    }

    /// Cgroups below it have those of theirs that are among `cores`, or all of `cores` where none is.
    pub(super) fn set(&mut self, folder: &Folder, cores: &Cores) -> io::Result<()> {
        self.known = true;
        self.put(folder, cores)
    }

    /// As found. Those below it have what they had, if this is who changed it, and otherwise all of `cores`: what
    /// they had is not on disk.
    pub(super) fn restore(&mut self, folder: &Folder, cores: &Cores) -> io::Result<()> {
        if cores.is_empty() {
            // It was without processes; one that has some keeps its cores.
            return match folder.processes()?.is_empty() {
                true if !folder.line(CPUS)?.is_empty() => folder.write(CPUS, ""),
                _ => Ok(()),
            };
        }
        self.put(folder, cores)
    }

    fn put(&mut self, folder: &Folder, cores: &Cores) -> io::Result<()> {
        let mut put = self.tree(folder, cores);
        for _ in 1..TRIES {
            match &put {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    put = self.tree(folder, cores);
                }
                _ => break,
            }
        }
        put
    }

    /// Grows before what is below, and shrinks after it.
    fn tree(&mut self, folder: &Folder, cores: &Cores) -> io::Result<()> {
        let old = folder.cores(CPUS)?;
        let mut below = Vec::new();
        for child in folder.below()? {
            match child.cores(CPUS) {
                // Without processes.
                Ok(own) if own.is_empty() => {}
                Ok(own) => {
                    let share = self.share(&child, own, &old, cores);
                    below.push((child, share));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if !below.is_empty() && !cores.without(&old).is_empty() {
            write(folder, &old.with(cores))?;
        }
        for (child, cores) in below {
            match self.tree(&child, &cores) {
                Err(error) if !child.is_there() => drop(error),
                put => put?,
            }
        }
        match folder.cores(CPUS)? == *cores {
            true => Ok(()),
            false => write(folder, cores),
        }
    }

    /// Of `cores`, which the one above is to have instead of `old`.
    fn share(&mut self, child: &Folder, own: Cores, old: &Cores, cores: &Cores) -> Cores {
        if !self.known {
            return cores.clone();
        }
        let share = self.shares.entry(child.id());
        let share = share.or_insert_with(|| (own != *old).then_some(own));
        let both = share.as_ref().unwrap_or(cores).shared(cores);
        if both.is_empty() { cores.clone() } else { both }
    }
}

fn write(folder: &Folder, cores: &Cores) -> io::Result<()> {
    folder.write(CPUS, &cores.to_string()).map_err(|error| {
        let reason = format!("{error}; \"{cores}\" was written");
        let error = io::Error::new(error.kind(), reason);
        allowed(folder.path(), CPUS, error)
    })
}

/// Says besides what the parent has.
fn allowed(path: &Path, file: &str, error: io::Error) -> io::Error {
    let Some(parent) = path.parent().map(|parent| parent.join(file)) else {
        return error;
    };
    match crate::root::line(&parent) {
        Ok(cores) => {
            let reason = format!("{error}; {} allows \"{cores}\"", parent.display());
            io::Error::new(error.kind(), reason)
        }
        Err(_) => error,
    }
}

/// From this one up to the hierarchy's root.
fn ancestors<'a>(path: &'a Path, root: &Path) -> impl Iterator<Item = &'a Path> {
    path.ancestors()
        .take_while(move |path| path.starts_with(root))
}
