// SPDX-License-Identifier: Apache-2.0
//! What becomes of the jobs when the governor ends.

use std::time::{Duration, Instant};

use rustix::process::Signal;
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
    /// As `batch.on_stop` says. `keep`: every job is thawed and put on [`jobs_alone`](crate::config::Shares::jobs_alone).
    /// `end`: that, and its processes are told to end, and killed after the grace; returns when their keepers have
    /// said how they ended, which is how they stay until they are forgotten. Cgroups of somebody else's are put back
    /// as found, whatever it says. True if all that was done; what was not is told in the log.
    pub fn end(&mut self) -> bool {
        self.stop(self.shared.batch.on_stop)
    }

    /// As [`end`](Self::end) with `keep`, whatever is configured.
    pub fn keep(&mut self) -> bool {
        self.stop(OnStop::Keep)
    }

    fn stop(&mut self, on_stop: OnStop) -> bool {
        self.let_go();
        // Those that were started just now had no processes to move or to end.
        self.wait_until(PATIENCE, |job| !job.begins());
        if on_stop == OnStop::End {
            self.jobs.iter().for_each(|job| job.signal(Signal::TERM));
            let grace = self.shared.batch.grace;
            if !self.wait_until(grace, |job| !job.is_ours()) && !self.kill() {
                return false;
            }
        }
        // One that has ended meanwhile cannot be let go, and need not.
        let start = Instant::now();
        while !self.let_go() {
            if start.elapsed() >= PATIENCE {
                return false;
            }
            std::thread::sleep(STEP);
            self.tick_all();
        }
        true
    }

    fn let_go(&mut self) -> bool {
        let mut done = true;
        for job in &mut self.jobs {
            done &= job.let_go(&mut self.shared);
        }
        done
    }

    fn tick_all(&mut self) {
        self.tick(now());
        for job in &mut self.jobs {
            job.look_unkept(&mut self.shared);
        }
        self.tell();
    }

    fn kill(&mut self) -> bool {
        let left = self.jobs.iter().filter(|job| job.is_ours()).count();
        info!(left, "jobs that have not ended when asked are killed");
        self.wait_until(PATIENCE, |job| {
            // Also those that it has started since.
            job.signal(Signal::KILL);
            !job.is_ours()
        })
    }

    fn wait_until(&mut self, limit: Duration, is_done: impl Fn(&Job) -> bool) -> bool {
        let start = Instant::now();
        loop {
            self.tick_all();
            let left = self.jobs.iter().filter(|job| !is_done(job)).count();
            if left == 0 || start.elapsed() >= limit {
                return left == 0;
            }
            std::thread::sleep(STEP);
        }
    }
}
