// SPDX-License-Identifier: Apache-2.0
//! What becomes of the jobs when the governor ends.

use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use tracing::info;

use super::Runner;
use super::job::Job;
use crate::jobs::spec::OnStop;
use crate::sense::now;

/// Between two looks at who has ended.
const STEP: Duration = Duration::from_millis(10);
/// For what takes no time: that a keeper takes its job, that a process is gone after the kill.
const PATIENCE: Duration = Duration::from_secs(5);

impl Runner {
    /// As `batch.on_stop` says. `keep`: every job is thawed and put on cores that are never the service's. `end`:
    /// that, and its processes are told to end, and killed after the grace; returns when their keepers have said
    /// how they ended. Cgroups of somebody else's are put back as found, whatever it says. True if all that was
    /// done; what was not is told in the log.
    pub fn end(&mut self) -> bool {
        let mut done = true;
        for job in &mut self.jobs {
            done &= job.let_go(&mut self.shared);
        }
        // Those that were started just now have no processes to move or to end.
        self.wait_until(PATIENCE, |job| !job.begins());
        if self.shared.batch.on_stop == OnStop::End {
            self.jobs.iter().for_each(|job| job.signal(Signal::TERM));
            if !self.wait_until(self.shared.batch.grace, |job| !job.is_ours()) {
                let left = self.jobs.iter().filter(|job| job.is_ours()).count();
                info!(left, "jobs that have not ended when asked are killed");
                done &= self.wait_until(PATIENCE, |job| {
                    // Also those that were started since.
                    job.signal(Signal::KILL);
                    !job.is_ours()
                });
            }
        } else {
            for job in &mut self.jobs {
                done &= job.let_go(&mut self.shared);
            }
        }
        done
    }

    fn wait_until(&mut self, limit: Duration, is_done: impl Fn(&Job) -> bool) -> bool {
        let start = Instant::now();
        loop {
            self.tick(now());
            self.jobs
                .iter_mut()
                .for_each(|job| job.look_unkept(&mut self.shared));
            let left = self.jobs.iter().filter(|job| !is_done(job)).count();
            if left == 0 || start.elapsed() >= limit {
                self.tell();
                return left == 0;
            }
            std::thread::sleep(STEP);
        }
    }
}

impl Job {
    /// On cores that are never the service's, and thawed, also if it cannot be moved.
    fn let_go(&mut self, shared: &mut super::Shared) -> bool {
        if self.is_foreign() {
            return self.put_back(shared);
        }
        if !self.has_group() {
            return true;
        }
        let alone = shared.alone.clone();
        let moved = self.cores.as_ref() == Some(&alone) || self.set_cores(alone, shared);
        self.thaw(shared) && moved
    }

    /// To all of it but its keeper.
    fn signal(&self, signal: Signal) {
        if !self.is_ours() {
            return;
        }
        for process in self.others() {
            // It may be gone.
            let _ = kill_process(process, signal);
        }
    }
}
