// SPDX-License-Identifier: Apache-2.0
//! From files to what is planned with.
//!
//! ```text
//!  lanes of hot functions ── events ──┐ (whose thread is where: threads)
//!  proc/stat ── utilisation ──────────┼──> Sensed
//!  hot calls, a page or a query ── tail ────┘        powercap ── energy ──> shown only
//! ```

#[cfg(test)]
#[path = "../../control-plane/tests/certificates/mod.rs"]
mod certificates;
pub mod energy;
pub mod events;
mod measure;
pub mod mesh;
pub mod page;
pub mod peers;
pub mod power;
pub mod promql;
pub mod service;
mod tail;
mod threads;
pub mod uprobe;
mod utilisation;
mod whose;

use std::time::Duration;

use weir_events::Geometry;

use crate::config::Config;
use crate::node::Node;
use crate::root::Root;
use crate::sensed::{Nanos, Sensed};
use events::{Counts, Events};
pub use measure::measure;
pub use tail::Measured;
use tail::Tails;
use uprobe::Watch;
use utilisation::Utilisation;
use whose::Whose;

/// Everything that is read once a tick.
#[derive(Debug)]
pub struct Sense {
    events: Events,
    utilisation: Utilisation,
    tail: Tails,
    watch: Option<Watch>,
}

/// Why nothing can be heard of hot functions.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Of programs that tell of them.
    #[error("events: {0}")]
    Events(#[from] events::Error),
    /// Of programs that cannot.
    #[error("uprobes: {0}; see weir-governor check")]
    Uprobe(#[from] weir_uprobe::Error),
    /// Of the kernel's counters.
    #[error(transparent)]
    Utilisation(#[from] utilisation::Error),
}

impl Sense {
    /// Opens what there is; makes the file that producers write to.
    pub fn open(config: &Config, root: &Root, node: &Node) -> Result<Sense, Error> {
        let numbers: Vec<u32> = node.cores.iter().map(|core| core.number).collect();
        let sizes = &config.events;
        let geometry =
            Geometry::new(sizes.lanes, sizes.events_per_lane).map_err(events::Error::from)?;
        let (watch, mapped) = match &config.uprobes[..] {
            [] => (None, None),
            uprobes => {
                let probes: Vec<_> = uprobes.iter().map(|uprobe| uprobe.probe.clone()).collect();
                let (watch, mapped) = Watch::start(&probes, geometry)?;
                (Some(watch), Some((mapped, Whose::new(uprobes, root))))
            }
        };
        Ok(Sense {
            events: Events::open(&config.events, mapped, root, &numbers, config.tick)?,
            utilisation: Utilisation::new(
                root,
                &numbers,
                config
                    .policy
                    .as_ref()
                    .is_some_and(|policy| policy.goes_by_load()),
            )?,
            tail: Tails::new(&config.tail),
            watch,
        })
    }

    /// Where a latency that is measured elsewhere is put.
    pub fn measured(&self) -> Measured {
        self.tail.measured()
    }

    /// What was lost, refused or freed so far.
    pub fn counts(&self) -> &Counts {
        &self.events.counts
    }

    /// Fills in everything but which cores are online. Allocates nothing once the buffers have grown.
    pub fn sense(&mut self, now: Nanos, sensed: &mut Sensed) {
        sensed.now = now;
        self.events.sense(now, sensed);
        self.events.counts.no_lane = self.watch.as_ref().map_or(0, Watch::no_lane);
        self.utilisation.sense(now, sensed);
        self.tail.sense(now, sensed);
    }

    /// Once a second: whether the file of events is still the one that producers find.
    pub fn look(&mut self) {
        self.events.look();
    }
}

/// `CLOCK_MONOTONIC`, as producers read it.
pub fn now() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
    Nanos((seconds + Duration::from_nanos(time.tv_nsec.unsigned_abs())).as_nanos() as u64)
}
