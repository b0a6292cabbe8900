// SPDX-License-Identifier: Apache-2.0
//! The time while a way runs: jobs are seen to, and the division of the cores is sampled.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use weir_stage::interrupt;

use super::{POLL, Part, has_ended};
use crate::cgroups::{Cgroups, Seen};
use crate::colocation::batch::{Batch, Ended};
use crate::colocation::governor::Jobs;
use crate::colocation::jobs::Job;
use crate::colocation::load::{Asked, Client};
use crate::colocation::samples::{Sample, Samples};

/// The jobs, started by the lab or by the governor.
pub(super) enum Work {
    Own { batch: Batch, after: bool },
    Governed(Box<Jobs>),
}

/// A way while it runs.
pub(super) struct Scene<'a> {
    pub(super) cgroups: &'a Cgroups,
    pub(super) work: Work,
    pub(super) jobs: &'a [Job],
    pub(super) samples: Samples,
    pub(super) zero: Instant,
}

impl Scene<'_> {
    /// Sees to the jobs. `over`: memcached is asked no more.
    pub(super) fn look(&mut self, over: bool) -> Result<()> {
        interrupt::check()?;
        let now = self.zero.elapsed();
        match &mut self.work {
            Work::Own { batch, after } if over || !*after => batch.go_on(now)?,
            Work::Own { .. } => {}
            Work::Governed(governor) => governor.look(now)?,
        }
        if self.samples.is_due(now) {
            let jobs = self
                .jobs
                .iter()
                .map(|job| self.work.seen(job.name, self.cgroups));
            let sample = Sample {
                at_s: now.as_secs_f64(),
                jobs: jobs.collect(),
                service: self.cgroups.cores()?.len(),
            };
            self.samples.all.push(sample);
        }
        Ok(())
    }

    /// A whole load, with the jobs seen to meanwhile.
    pub(super) fn load(&mut self, client: &Client, asked: &Asked) -> Result<Part> {
        let start_s = self.zero.elapsed().as_secs_f64();
        let mut load = client.start(asked)?;
        self.cgroups.keep(load.pid())?;
        while !has_ended(&mut load)? {
            self.look(false)?;
            sleep(POLL);
        }
        Ok(Part::of(start_s, client.told(asked)?))
    }

    pub(super) fn finish(&mut self, patience: Duration) -> Result<Vec<Ended>> {
        let begun = Instant::now();
        loop {
            self.look(true)?;
            let all = match &self.work {
                Work::Own { batch, .. } => batch.all(),
                Work::Governed(governor) => governor.all(),
            };
            if let Some(all) = all {
                return Ok(all.to_vec());
            }
            ensure!(
                begun.elapsed() < patience,
                "the jobs have not ended {} s after the load",
                patience.as_secs()
            );
            sleep(POLL);
        }
    }
}

impl Work {
    fn seen(&self, job: &str, cgroups: &Cgroups) -> u8 {
        let seen = match self {
            Self::Own { batch, .. } if batch.runs(job) => Seen::Running,
            Self::Own { .. } => Seen::Absent,
            Self::Governed(_) => cgroups.job(job),
        };
        match seen {
            Seen::Absent => 0,
            Seen::Paused => 1,
            Seen::Running => 2,
        }
    }
}
