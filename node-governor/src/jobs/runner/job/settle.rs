// SPDX-License-Identifier: Apache-2.0
//! How a job ends, or turns out to have ended.

use std::io;

use rustix::process::{Pid, Signal, kill_process};
use tracing::warn;

use super::super::{Facts, Shared};
use super::{Job, Life};
use crate::apply::groups::Members;
use crate::jobs::State;
use crate::jobs::record::{Ended, Process, Started};
use crate::jobs::spec::Source;
use crate::stat::Stat;

pub(super) const KILLED: &str = "its keeper was killed, so how it ended is not known";
const NEVER: &str = "its keeper ended before it began";

impl Job {
    /// No keeper has its lock: how it stands. `began`: one was started here, and is gone. What could not be read or
    /// written is tried again: until then it is as it was, and waits for nothing.
    pub(super) fn settle(&mut self, shared: &mut Shared, began: bool) -> io::Result<()> {
        let life = std::mem::replace(&mut self.life, Life::Waits);
        let settled = self.settle_free(shared, began);
        match (&settled, life) {
            (Ok(true), Life::Kept(Some(child))) => shared.children.push(child),
            (Ok(true), _) => {}
            (_, life) => self.life = life,
        }
        settled.map(|_| ())
    }

    /// False if a keeper has its lock after all.
    fn settle_free(&mut self, shared: &mut Shared, began: bool) -> io::Result<bool> {
        let Some(held) = self.folder.hold()? else {
            return Ok(false);
        };
        let (started, ended) = (self.folder.started()?, self.folder.ended()?);
        if let Some(mut group) = self.group.take_if(|_| self.frozen) {
            // Nobody else would, and there may be a process that somebody has put there.
            let _ = group.thaw();
        }
        self.group = None;
        if let Some(ended) = ended {
            held.unask()?;
            drop(held);
            // Another command is another job.
            if ended.source == self.spec.source {
                self.has_ended(&ended, shared);
            }
            return Ok(true);
        }
        let Some(started) = started else {
            return Ok(true);
        };
        let foreign = matches!(started.source, Source::Cgroup(_));
        let never = started.keeper.is_none() && !foreign;
        if started.boot != shared.boot || never && !began {
            return held.unask().map(|()| true);
        }
        if never {
            // No keeper comes any more, so that it may be started again.
            held.unask()?;
            drop(held);
            self.know(&started);
            return self.has_not_begun(NEVER.to_owned(), shared).map(|()| true);
        }
        drop(held);
        self.settle_without_keeper(&started, foreign, shared)?;
        Ok(true)
    }

    fn settle_without_keeper(
        &mut self,
        started: &Started,
        foreign: bool,
        shared: &mut Shared,
    ) -> io::Result<()> {
        self.attach(shared)?;
        let name = &self.spec.job.name;
        if self.is_populated()? {
            self.life = if foreign { Life::Foreign } else { Life::Unkept };
            if !foreign {
                warn!(job = name, "its keeper was killed; it goes on");
            }
            return Ok(());
        }
        if started.source != self.spec.source {
            self.group = None;
            return self.folder.hold()?.map_or(Ok(()), |held| held.unask());
        }
        if foreign {
            return self.end(None, shared);
        }
        if started.cgroup.is_none() {
            let processes = go_on(&self.processes);
            warn!(
                job = name,
                ?processes,
                "its keeper was killed; these were told to go on, and nobody moves or stops them any more"
            );
        }
        self.end(Some(KILLED), shared)
    }

    /// Writes how it has ended: nobody else will.
    pub(super) fn end(&mut self, trouble: Option<&str>, shared: &mut Shared) -> io::Result<()> {
        let ended = Ended {
            source: self.spec.source.clone(),
            threads: self.facts.threads,
            code: None,
            trouble: trouble.map(str::to_owned),
            cpu: self.facts.cpu,
        };
        if let Some(held) = self.folder.hold()? {
            held.end(&ended)?;
            held.unask()?;
        }
        self.has_ended(&ended, shared);
        Ok(())
    }

    fn has_ended(&mut self, ended: &Ended, shared: &mut Shared) {
        self.facts = Facts {
            code: ended.code,
            cpu: ended.cpu,
            trouble: ended.trouble.clone(),
            threads: ended.threads,
        };
        self.life = Life::Ended(match ended.is_well() {
            true => State::Finished,
            false => State::Failed,
        });
        self.frozen = false;
        self.cores = None;
        self.group = None;
        self.found = None;
        let own = matches!(self.spec.source, Source::Command(_));
        if own && self.left.is_none() {
            self.left = Some(self.path(shared));
        }
        self.leave(shared);
        shared.found_version += 1;
    }

    /// Its own cgroup is empty once its keeper is gone, also one that another governor has made.
    pub(super) fn leave(&mut self, shared: &Shared) {
        if let Some(path) = self.left.take()
            && let Ok(group) = shared.groups.existing(&Members::Cgroup(path.clone()))
            && group.remove().is_err()
        {
            self.left = Some(path);
        }
    }
}

/// Those that are there still; what has stopped them does so no longer.
fn go_on(processes: &[Process]) -> Vec<i32> {
    let goes_on = |process: &&Process| {
        let stat = Stat::read(&process.pid.to_string());
        let is_it = stat.is_some_and(|stat| stat.started == process.started);
        let pid = Pid::from_raw(process.pid).filter(|_| is_it);
        pid.is_some_and(|pid| kill_process(pid, Signal::CONT).is_ok())
    };
    let left = processes.iter().filter(goes_on);
    left.map(|process| process.pid).collect()
}
