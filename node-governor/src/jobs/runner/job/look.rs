// SPDX-License-Identifier: Apache-2.0
//! What has become of a job: every tick, and every second.

use std::io::{self, ErrorKind};
use std::time::Duration;

use rustix::process::Pid;

use super::super::Shared;
use super::settle::KILLED;
use super::{Job, Life};
use crate::apply::groups::{Group, Members};
use crate::cores::Cores;
use crate::jobs::spec::Source;
use crate::stat::Stat;

impl Job {
    pub(in super::super) fn tick(&mut self, shared: &mut Shared) {
        if !matches!(self.life, Life::Begins(_) | Life::Kept(_)) {
            return;
        }
        if let Err(error) = self.ask_keeper(shared) {
            self.trouble(error.to_string());
        }
    }

    fn ask_keeper(&mut self, shared: &mut Shared) -> io::Result<()> {
        // Before the lock: a keeper that is gone had all the time to take it.
        let gone = match &mut self.life {
            Life::Begins(child) => child.try_wait()?.is_some(),
            _ => false,
        };
        let free = self.is_free()?;
        match self.life {
            // It is on its way.
            Life::Begins(_) if free && !gone => Ok(()),
            Life::Begins(_) if free => self.settle(shared, true),
            _ if free => self.settle(shared, false),
            _ => self.is_kept(shared),
        }
    }

    /// Its keeper has the lock. A job without a cgroup can be reached once its keeper has said who it is.
    fn is_kept(&mut self, shared: &mut Shared) -> io::Result<()> {
        let life = std::mem::replace(&mut self.life, Life::Kept(None));
        self.life = match life {
            Life::Begins(child) => Life::Kept(Some(child)),
            life => life,
        };
        if self.group.is_none() && shared.now >= self.rest {
            return self.attach(shared);
        }
        if self.keeper.is_none()
            && let Some(started) = self.folder.started()?
        {
            self.know(&started);
        }
        Ok(())
    }

    pub(in super::super) fn look(&mut self, shared: &mut Shared) {
        let looked = match self.life {
            Life::Waits => self.look_for(shared),
            Life::Ended(_) => {
                self.leave(shared);
                Ok(())
            }
            _ => self.look_at(shared),
        };
        match looked {
            // Whoever has gone just now is told of when his keeper is asked.
            Err(error) if error.kind() != ErrorKind::NotFound => self.trouble(error.to_string()),
            _ => {}
        }
    }

    /// A cgroup of somebody else's may have processes by now.
    fn look_for(&mut self, shared: &mut Shared) -> io::Result<()> {
        let Source::Cgroup(path) = &self.spec.source else {
            return Ok(());
        };
        let Ok(group) = shared.groups.existing(&Members::Cgroup(path.clone())) else {
            return Ok(());
        };
        if group.processes()?.is_empty() {
            return Ok(());
        }
        self.attached(group, shared)?;
        self.ask(shared, None, Vec::new(), &Cores::NONE, 0)?;
        self.life = Life::Foreign;
        Ok(())
    }

    fn look_at(&mut self, shared: &mut Shared) -> io::Result<()> {
        self.look_unkept(shared);
        let Some(group) = &self.group else {
            return Ok(());
        };
        if !group.is_there() {
            if let Members::Cgroup(path) = group.members() {
                self.trouble(format!("its cgroup {path} was removed"));
                self.group = None;
            }
            return Ok(());
        }
        let all = group.processes()?;
        self.facts.cpu = cpu(&all).max(self.facts.cpu);
        // What another has written is written over by the next plan.
        self.cores = Some(group.cores()?);
        self.frozen = group.is_frozen()?;
        // None comes while it stands still; and they leave its keeper while that is killed.
        if !self.frozen || self.processes.is_empty() {
            self.processes = self.known();
        }
        Ok(())
    }

    /// Whoever comes into a cgroup of somebody else's after its end is not ours to freeze or to confine.
    fn put_back(&mut self) {
        let (Some(found), Some(group)) = (&self.found, &mut self.group) else {
            return;
        };
        match group.restore(found) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                self.trouble(format!("cannot be put back: {error}"));
            }
            _ => self.found = None,
        }
    }

    /// Nobody says when these end.
    pub(in super::super) fn look_unkept(&mut self, shared: &mut Shared) {
        let trouble = match self.life {
            Life::Unkept => Some(KILLED),
            Life::Foreign => None,
            _ => return,
        };
        let there = self.group.as_ref().is_some_and(Group::is_there);
        match self.is_populated() {
            Ok(true) if there => return,
            Err(error) if there => return self.trouble(error.to_string()),
            _ => {}
        }
        self.put_back();
        if let Err(error) = self.end(trouble, shared) {
            self.trouble(error.to_string());
        }
    }
}

/// Of these processes and of all that they have waited for. Where all are there, and whoever waits for the others
/// is one of them, that is everything.
fn cpu(all: &[Pid]) -> Option<Duration> {
    let of = |pid: &Pid| Some(Stat::read(&pid.as_raw_nonzero().to_string())?.cpu);
    all.iter().filter_map(of).reduce(|sum, one| sum + one)
}
