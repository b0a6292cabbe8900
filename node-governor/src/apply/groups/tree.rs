// SPDX-License-Identifier: Apache-2.0
//! A process with all that come from it: no controller knows of them.

use std::io;

use rustix::process::{Pid, Signal};

use super::processes::{self, Processes};
use crate::cores::Cores;

/// One that has left its parent, as a daemon does, is found no more.
#[derive(Debug)]
pub(super) struct Tree {
    pid: Pid,
    started: u64,
    processes: Processes,
    /// What was told last.
    stopped: Option<bool>,
}

impl Tree {
    pub(super) fn open(all: Processes, pid: i32, started: u64) -> io::Result<Tree> {
        let gone = || {
            let reason = format!("no process {pid} that started {started} clock ticks after boot");
            io::Error::new(io::ErrorKind::NotFound, reason)
        };
        let number = processes::pid(pid).ok_or_else(gone)?;
        let tree = Tree {
            pid: number,
            started,
            processes: all,
            stopped: None,
        };
        match tree.is_there() {
            true => Ok(tree),
            false => Err(gone()),
        }
    }

    pub(super) fn is_there(&self) -> bool {
        let stat = self.processes.stat(self.pid);
        stat.is_ok_and(|stat| stat.is_some_and(|stat| stat.started == self.started))
    }

    pub(super) fn list(&self) -> io::Result<Vec<Pid>> {
        self.processes.tree(self.pid, self.started)
    }

    pub(super) fn cores(&self) -> io::Result<Cores> {
        self.processes.cores(&self.list()?)
    }

    pub(super) fn set_cores(&mut self, cores: &Cores) -> io::Result<()> {
        self.processes.confine(|| self.list(), cores)
    }

    pub(super) fn set_frozen(&mut self, frozen: bool) -> io::Result<()> {
        let signal = if frozen { Signal::STOP } else { Signal::CONT };
        self.processes.signal(|| self.list(), signal)?;
        self.stopped = Some(frozen);
        Ok(())
    }

    pub(super) fn is_frozen(&self) -> io::Result<bool> {
        match self.stopped {
            Some(stopped) => Ok(stopped),
            None => self.processes.are_stopped(&self.list()?),
        }
    }
}
