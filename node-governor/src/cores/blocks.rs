// SPDX-License-Identifier: Apache-2.0
//! The machine in three blocks, and a state machine that gives the service one of them or two.
//!
//! ```text
//!               use > 0.6 cores
//!          ┌───────────────────────┐
//!  SMALL ──┘                       └─> LARGE      SMALL: the service has the reserved block, a job the small one
//!        <─┐                       ┌──            LARGE: the service has both, the small block's job is paused
//!          └───────────────────────┘
//!               use < 1.3 cores
//! ```
//! Part 4.2 of document 004 (*Cloud Computing Architecture*, semester project report), with its cores, limits
//! and queues. When no job waits, the large block takes the small one's, and the small block is the service's
//! for good. Of our own: while the mesh refuses requests, or is about to, the service has both.

use std::time::Duration;

use super::places::Places;
use super::silence::{Heard, Silence};
use super::{CorePlan, Cores, Reason, Refused, Seen, check_cores, check_jobs, check_range};
use crate::jobs::Job;
use crate::sensed::Nanos;

/// Which blocks the service has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The reserved one.
    Small,
    /// The reserved one and the small one.
    Large,
}

/// The blocks and the limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The service's, always.
    pub reserved: Cores,
    /// The service's or a job's.
    pub small: Cores,
    /// A job's. None on a machine of two cores: then all jobs take turns in the small block.
    pub large: Cores,
    /// Goes from small to large above this use of the reserved block, in cores.
    pub large_above: f64,
    /// Goes from large to small below this use of both blocks, in cores.
    pub small_below: f64,
    /// It must have been below that for so long. The document's goes at once, and at a short tick back and forth:
    /// a use between both limits is too much for one block and too little for two.
    pub calm: Duration,
    /// What it starts with. The document does not say; large harms no request.
    pub start: Size,
    /// When the service's use is not known, it keeps what it has for so long, and then has both blocks. Of our
    /// own choice: at the document's smallest interval of load, 5 s, less than half of one.
    pub patience: Duration,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            reserved: Cores::from([0]),
            small: Cores::from([1]),
            large: Cores::from([2, 3]),
            large_above: 0.6,
            small_below: 1.3,
            calm: Duration::ZERO,
            start: Size::Large,
            patience: Duration::from_secs(2),
        }
    }
}

impl Params {
    /// # Errors
    /// A block is empty and not the large one, a block has cores that the machine does not have or that another
    /// block has, or a limit is one that can never be passed; or a job is there twice or has no threads.
    pub fn check(&self, machine: &Cores, jobs: &[Job]) -> Result<(), Refused> {
        check_jobs(jobs)?;
        let blocks = [
            ("reserved", &self.reserved),
            ("small", &self.small),
            ("large", &self.large),
        ];
        for (index, (field, block)) in blocks.into_iter().enumerate() {
            if field != "large" || !block.is_empty() {
                check_cores(field, block, machine)?;
            }
            for (other, cores) in &blocks[..index] {
                let shared = block.shared(cores);
                if !shared.is_empty() {
                    let reason = format!("{shared}: in block {other}, too");
                    return Err(Refused::new(field, reason));
                }
            }
        }
        let reserved = self.reserved.len() as f64;
        check_range("large_above", self.large_above, reserved)?;
        let both = reserved + self.small.len() as f64;
        check_range("small_below", self.small_below, both)
    }
}

/// The state machine and the jobs at the blocks.
#[derive(Debug)]
pub struct Blocks {
    params: Params,
    jobs: Vec<Job>,
    size: Size,
    places: Places,
    /// The small block will serve no job any more.
    bound: bool,
    /// Since when its use has been low enough for the small one.
    low_since: Option<Nanos>,
    silence: Silence,
}

impl Blocks {
    /// Jobs of one queue run in the order that they have here.
    ///
    /// # Errors
    /// As [`Params::check`].
    pub fn new(params: Params, machine: &Cores, jobs: &[Job]) -> Result<Self, Refused> {
        params.check(machine, jobs)?;
        Ok(Self {
            size: params.start,
            params,
            jobs: jobs.to_vec(),
            places: Places::default(),
            bound: false,
            low_since: None,
            silence: Silence::default(),
        })
    }

    /// Which blocks the service has by its load.
    pub fn size(&self) -> Size {
        self.size
    }

    pub(super) fn plan(&mut self, seen: &Seen) -> CorePlan {
        let mut reason = self.resize(seen);
        self.places.fill(&self.jobs, seen, &self.params.large);
        self.bound |= self.places.small.is_none();
        if self.bound && !seen.pressed {
            reason = Reason::NoJobs;
        }
        let params = &self.params;
        let (service, small) = if self.bound || self.size == Size::Large {
            (params.reserved.with(&params.small), Cores::NONE)
        } else {
            (params.reserved.clone(), params.small.clone())
        };
        CorePlan {
            service,
            speed: seen.pressed.then_some(1.0),
            jobs: self.places.plan(&self.jobs, seen, &params.large, &small),
            reason,
            ..CorePlan::default()
        }
    }

    fn resize(&mut self, seen: &Seen) -> Reason {
        let cpu = seen.cpu();
        let heard = self
            .silence
            .hear(seen.now, cpu.is_some(), self.params.patience);
        if seen.pressed {
            // What was low before tells nothing of after.
            (self.size, self.low_since) = (Size::Large, None);
            return Reason::Refused;
        }
        match (heard, cpu, self.size) {
            (Heard::NothingForLong, ..) => {
                self.size = Size::Large;
                Reason::Safe
            }
            (Heard::NothingYet, ..) => Reason::Held,
            (_, Some(cpu), Size::Small) if cpu > self.params.large_above => {
                self.size = Size::Large;
                Reason::Busy
            }
            (_, Some(cpu), Size::Large) if cpu < self.params.small_below => {
                let since = *self.low_since.get_or_insert(seen.now);
                if seen.now.since(since) < self.params.calm {
                    return Reason::Same;
                }
                self.size = Size::Small;
                self.low_since = None;
                Reason::Calm
            }
            _ => {
                self.low_since = None;
                Reason::Same
            }
        }
    }
}

#[cfg(test)]
mod tests;
