// SPDX-License-Identifier: Apache-2.0
//! A job does what is planned.

use std::io::{self, ErrorKind};
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use tracing::debug;

use super::super::Shared;
use super::{Job, Life};
use crate::apply::groups::{Group, Members, limits};
use crate::cores::{Act, Cores, JobPlan, Limits};

/// Before a limit is written again that was refused.
const LIMIT_AGAIN: Duration = Duration::from_secs(10);

impl Job {
    /// Takes no more than it has.
    pub(in super::super) fn give(&mut self, plan: &JobPlan, shared: &mut Shared) {
        if self.frozen || self.group.is_none() {
            return;
        }
        match plan.act {
            Act::Pause => self.freeze(shared),
            Act::Run if !plan.cores.is_empty() && self.cores.as_ref() != Some(&plan.cores) => {
                let has = self.cores.as_ref();
                let kept = has.map(|has| has.shared(&plan.cores)).unwrap_or_default();
                if kept.is_empty() {
                    self.freeze(shared);
                } else if has != Some(&kept) && !self.set_cores(kept, shared) {
                    // What it does not leave is somebody else's from here on.
                    self.freeze(shared);
                }
            }
            _ => {}
        }
    }

    /// It is planned to run, and somewhere. Stays frozen while it cannot be moved there.
    pub(in super::super) fn take(&mut self, plan: &JobPlan, shared: &mut Shared) {
        if matches!(self.life, Life::Waits) {
            return self.start_or_rest(plan, shared);
        }
        if self.group.is_none() {
            return;
        }
        let there = self.cores.as_ref() == Some(&plan.cores);
        if (there || self.set_cores(plan.cores.clone(), shared)) && self.frozen {
            self.thaw(shared);
        }
    }

    /// Tried again after a rest where it failed: the kernel may have no such file.
    pub(in super::super) fn limit(&mut self, plan: &JobPlan, shared: &mut Shared) {
        let wanted = plan.limits;
        let rests = self
            .not_limited
            .is_some_and(|(limits, at)| limits == wanted && shared.now.since(at) < LIMIT_AGAIN);
        if wanted == self.limits || rests || self.group.is_none() || !self.is_alive() {
            return;
        }
        let set = self.write(shared, "cannot be limited", |group| {
            group.set_limits(wanted)
        });
        if set {
            debug!(job = self.spec.job.name, limits = ?wanted, "limits");
            self.limits = wanted;
        }
        self.not_limited = (!set).then_some((wanted, shared.now));
    }

    /// Nobody governs it any more; false if that could not be done.
    pub(in super::super) fn let_go(&mut self, shared: &mut Shared) -> bool {
        if !self.is_alive() {
            return true;
        }
        if let Some(found) = self.found.clone() {
            return self.write(shared, "cannot be put back", |group| group.restore(&found));
        }
        let alone = shared.alone.clone();
        let moved = self.cores.as_ref() == Some(&alone) || self.set_cores(alone, shared);
        let free = self.limits == Limits::default() || self.unlimit(shared);
        // Whatever became of its cores, it goes on.
        self.thaw(shared) && moved && free
    }

    /// To all of it but its keeper.
    pub(in super::super) fn signal(&self, signal: Signal) {
        if !self.is_ours() {
            return;
        }
        for process in self.others() {
            // It may be gone.
            let _ = kill_process(process, signal);
        }
    }

    fn freeze(&mut self, shared: &mut Shared) {
        self.frozen |= self.write(shared, "cannot be frozen", Group::freeze);
        // Those that a signal has stopped are to be found without their keeper.
        if let Some(Members::Process { .. }) = self.group.as_ref().map(Group::members) {
            self.processes = self.known();
        }
    }

    fn thaw(&mut self, shared: &mut Shared) -> bool {
        let thawed = self.write(shared, "cannot be thawed", Group::thaw);
        self.frozen &= !thawed;
        thawed
    }

    fn set_cores(&mut self, cores: Cores, shared: &mut Shared) -> bool {
        let set = self.write(shared, "cannot be moved", |group| group.set_cores(&cores));
        if set {
            debug!(job = self.spec.job.name, %cores, "cores");
            self.cores = Some(cores);
        }
        set
    }

    fn unlimit(&mut self, shared: &mut Shared) -> bool {
        let new = limits::new(&shared.limits);
        let free = self.write(shared, "keeps its limits", |group| {
            group.restore_limits(&new)
        });
        if free {
            self.limits = Limits::default();
        }
        free
    }

    fn write(
        &mut self,
        shared: &mut Shared,
        told: &str,
        write: impl FnOnce(&mut Group) -> io::Result<()>,
    ) -> bool {
        let Some(group) = &mut self.group else {
            return false;
        };
        let Err(error) = write(group) else {
            return true;
        };
        // It has ended since it was last looked at, and that is told when it is looked at.
        if error.kind() != ErrorKind::NotFound {
            shared.write_errors += 1;
            self.trouble(format!("{told}: {error}"));
        }
        false
    }
}
