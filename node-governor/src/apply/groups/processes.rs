// SPDX-License-Identifier: Apache-2.0
//! Processes by themselves, where no controller does it for them: their threads' affinity (`man 2
//! sched_setaffinity`), SIGSTOP and SIGCONT. New ones come while the old are gone through, so that this is done
//! until there is none that it has not been done to.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::named;
use crate::cores::Cores;
use crate::root::Root;
use crate::stat::{self, Stat};

/// Passes after which processes are held to come faster than they can be gone through.
const PASSES: usize = 32;
/// Of a thread of the kernel's (`include/linux/sched.h`), which may be bound to its core.
const PF_KTHREAD: u32 = 0x0020_0000;

/// `/proc`.
#[derive(Clone, Debug)]
pub(super) struct Processes {
    folder: PathBuf,
}

impl Processes {
    pub(super) fn new(root: &Root) -> Processes {
        Processes {
            folder: root.path("proc"),
        }
    }

    fn path(&self, pid: Pid) -> PathBuf {
        self.folder.join(pid.as_raw_nonzero().to_string())
    }

    /// None where there is no such process; one that has ended, and that its parent has not been told of, is none.
    pub(super) fn stat(&self, pid: Pid) -> io::Result<Option<Stat>> {
        let path = self.path(pid).join("stat");
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(named(&path, error)),
        };
        let invalid = || named(&path, io::ErrorKind::InvalidData);
        let stat = Stat::parse(&text).ok_or_else(invalid)?;
        Ok(Some(stat).filter(|stat| !stat.has_ended()))
    }

    /// The process and all that come from it, while it is that one.
    pub(super) fn tree(&self, pid: Pid, started: u64) -> io::Result<Vec<Pid>> {
        if self.stat(pid)?.is_none_or(|stat| stat.started != started) {
            return Err(named(&self.path(pid).join("stat"), Errno::NOENT));
        }
        let (mut tree, mut next) = (vec![pid], 0);
        let mut parents: Option<Vec<(Pid, Pid)>> = None;
        while let Some(parent) = tree.get(next).copied() {
            next += 1;
            let children = match self.children(parent)? {
                Some(children) => children,
                None => {
                    if parents.is_none() {
                        parents = Some(self.parents()?);
                    }
                    let all = parents.iter().flatten();
                    let own = all.filter(|(_, of)| *of == parent);
                    own.map(|(child, _)| *child).collect()
                }
            };
            // A number that is used anew meanwhile could be there already.
            for child in children {
                // One that has ended may wait for its parent to ask.
                if !tree.contains(&child) && self.stat(child)?.is_some() {
                    tree.push(child);
                }
            }
        }
        Ok(tree)
    }

    /// None where the kernel does not say (`CONFIG_PROC_CHILDREN`).
    fn children(&self, pid: Pid) -> io::Result<Option<Vec<Pid>>> {
        let mut children = Vec::new();
        for thread in self.threads(pid)? {
            let task = self.path(pid).join("task");
            let task = task.join(thread.as_raw_nonzero().to_string());
            let path = task.join("children");
            match std::fs::read_to_string(&path) {
                Ok(text) => children.extend(text.split_whitespace().filter_map(number)),
                Err(error) if is_gone(&error) && task.exists() && !path.exists() => {
                    return Ok(None);
                }
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(named(&path, error)),
            }
        }
        Ok(Some(children))
    }

    /// Of every process, with who its parent is.
    fn parents(&self) -> io::Result<Vec<(Pid, Pid)>> {
        let mut parents = Vec::new();
        for pid in numbers(&self.folder)? {
            if let Some(parent) = self.stat(pid)?.and_then(|stat| stat.parent) {
                parents.push((pid, parent));
            }
        }
        Ok(parents)
    }

    /// None of a process that has gone.
    pub(super) fn threads(&self, pid: Pid) -> io::Result<Vec<Pid>> {
        match numbers(&self.path(pid).join("task")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            threads => threads,
        }
    }

    /// Where any of their threads may run.
    pub(super) fn cores(&self, pids: &[Pid]) -> io::Result<Cores> {
        let mut all = Cores::NONE;
        for pid in pids {
            for thread in self.threads(*pid)? {
                match sched_getaffinity(Some(thread)) {
                    Ok(set) => {
                        let set = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
                        all = all.with(&set.map(|core| core as u32).collect());
                    }
                    Err(Errno::SRCH) => {}
                    Err(error) => return Err(named(&self.path(thread), error)),
                }
            }
        }
        Ok(all)
    }

    /// From now on all threads run there.
    pub(super) fn confine(
        &self,
        list: impl Fn() -> io::Result<Vec<Pid>>,
        cores: &Cores,
    ) -> io::Result<()> {
        let mut set = CpuSet::new();
        for core in cores.numbers() {
            let core = *core as usize;
            if core >= CpuSet::MAX_CPU {
                let reason = format!("core {core}: affinity has {} at most", CpuSet::MAX_CPU);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
            set.set(core);
        }
        let threads = || {
            let mut threads = Vec::new();
            for pid in list()? {
                threads.extend(self.threads(pid)?);
            }
            Ok(threads)
        };
        self.each(threads, |thread| {
            if sched_getaffinity(Some(thread)).is_ok_and(|has| has == set) {
                return Ok(false);
            }
            let error = match sched_setaffinity(Some(thread), &set) {
                Ok(()) => return Ok(true),
                Err(Errno::SRCH) => return Ok(false),
                Err(error) => error,
            };
            let stat = self.stat(thread)?;
            if stat.is_none_or(|stat| stat.flags & PF_KTHREAD != 0) {
                return Ok(false);
            }
            let reason = format!("affinity: {error}; {cores} was written");
            let error = io::Error::new(io::Error::from(error).kind(), reason);
            Err(named(&self.path(thread), error))
        })
    }

    /// Does not wait until the signal has its effect. Where not all could be stopped, those that were go on: nobody
    /// would know of them.
    pub(super) fn signal(
        &self,
        list: impl Fn() -> io::Result<Vec<Pid>>,
        signal: Signal,
    ) -> io::Result<()> {
        let told = RefCell::new(Vec::new());
        let sent = self.each(list, |pid| {
            let was_stopped = self.are_stopped(&[pid])?;
            match kill_process(pid, signal) {
                Ok(()) => {
                    told.borrow_mut().push(pid);
                    Ok(was_stopped == (signal == Signal::CONT))
                }
                Err(Errno::SRCH) => Ok(false),
                Err(error) => Err(named(&self.path(pid), error)),
            }
        });
        if sent.is_err() && signal == Signal::STOP {
            for pid in told.into_inner() {
                // It may be gone.
                let _ = kill_process(pid, Signal::CONT);
            }
        }
        sent
    }

    /// Until a pass finds no other to which it makes a difference, as `act` says; what fails for one is done to the
    /// others all the same. A fork that is under way meanwhile has copied what its parent had, and is seen later.
    fn each(
        &self,
        list: impl Fn() -> io::Result<Vec<Pid>>,
        act: impl Fn(Pid) -> io::Result<bool>,
    ) -> io::Result<()> {
        let mut done = HashSet::new();
        let mut failed = Ok(());
        for _ in 0..PASSES {
            let mut is_clean = true;
            for pid in list()? {
                if !done.insert(pid) {
                    continue;
                }
                match act(pid) {
                    Ok(false) => {}
                    Ok(true) => is_clean = false,
                    Err(error) => failed = failed.and(Err(error)),
                }
            }
            if is_clean {
                return failed;
            }
        }
        let reason = format!("new ones in each of {PASSES} passes");
        failed.and(Err(named(&self.folder, io::Error::other(reason))))
    }

    /// There is one, and all are.
    pub(super) fn are_stopped(&self, pids: &[Pid]) -> io::Result<bool> {
        let mut any = false;
        for pid in pids {
            if let Some(stat) = self.stat(*pid)? {
                any = true;
                let is_stopped = match stat.state {
                    b'T' | b't' => true,
                    // For its child to begin (`man 2 vfork`), say, which is stopped, too.
                    b'D' => self.stops_next(*pid)?,
                    _ => false,
                };
                if !is_stopped {
                    return Ok(false);
                }
            }
        }
        Ok(any)
    }

    /// Whether SIGSTOP is what it does when the kernel lets it go on.
    fn stops_next(&self, pid: Pid) -> io::Result<bool> {
        let path = self.path(pid).join("status");
        match std::fs::read(&path) {
            Ok(text) => Ok(stat::is_pending(&text, Signal::STOP)),
            Err(error) if is_gone(&error) => Ok(true),
            Err(error) => Err(named(&path, error)),
        }
    }
}

/// None where it is no process'.
pub(super) fn pid(number: i32) -> Option<Pid> {
    Some(number)
        .filter(|number| *number > 0)
        .and_then(Pid::from_raw)
}

pub(super) fn number(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(pid)
}

/// Entries that are numbers.
fn numbers(folder: &Path) -> io::Result<Vec<Pid>> {
    let mut numbers = Vec::new();
    let listed = match std::fs::read_dir(folder) {
        Err(error) if is_gone(&error) => return Err(named(folder, Errno::NOENT)),
        listed => listed.map_err(|error| named(folder, error))?,
    };
    for entry in listed {
        // Of one that goes meanwhile the rest of the list is none.
        let Ok(entry) = entry else { break };
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        numbers.extend(number.and_then(Pid::from_raw));
    }
    Ok(numbers)
}

fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::SRCH].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|code| gone.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_not_all_can_be_stopped_none_stays_so() {
        let processes = Processes::new(&Root::new("/"));
        let mut child = std::process::Command::new("/bin/sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        let round = std::cell::Cell::new(0);
        let list = || {
            round.set(round.get() + 1);
            match round.get() {
                1 => Ok(vec![pid]),
                _ => Err(io::Error::other("cannot be read")),
            }
        };
        let stopped = processes.signal(list, Signal::STOP);
        // Signals are taken when the process runs next; one that was continued is not stopped when waited for.
        let mut goes_on = false;
        for _ in 0..3000 {
            goes_on = !processes.are_stopped(&[pid]).unwrap();
            if goes_on {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(stopped.unwrap_err().to_string(), "cannot be read");
        assert!(goes_on);
    }

    #[test]
    fn threads_are_gone_through_until_a_pass_finds_no_other() {
        let processes = Processes::new(&Root::new("/nowhere"));
        let (round, done) = (
            std::cell::Cell::new(0_usize),
            std::cell::RefCell::new(Vec::new()),
        );
        let list = |last: i32| {
            move |round: usize| {
                (1..=(round as i32).min(last))
                    .filter_map(Pid::from_raw)
                    .collect::<Vec<_>>()
            }
        };
        let run = |last| {
            round.set(0);
            done.borrow_mut().clear();
            let next = || {
                round.set(round.get() + 1);
                Ok(list(last)(round.get()))
            };
            processes.each(next, |pid| {
                done.borrow_mut().push(pid.as_raw_nonzero().get());
                Ok(true)
            })
        };
        run(3).unwrap();
        assert_eq!(round.get(), 4);
        assert_eq!(*done.borrow(), [1, 2, 3]);
        let error = run(i32::MAX).unwrap_err().to_string();
        assert_eq!(error, "/nowhere/proc: new ones in each of 32 passes");
        assert_eq!(round.get(), 32);
    }
}
