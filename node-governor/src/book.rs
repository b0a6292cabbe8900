// SPDX-License-Identifier: Apache-2.0
//! What has happened so far: written by the loop, read by whoever asks. Counters count from the start.

pub mod energy;
pub mod shares;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use energy::EnergyBook;
use serde::{Deserialize, Serialize};
use shares::SharesBook;

use crate::apply::{Apply, Status};
use crate::frequency::Khz;
use crate::node::Node;
use crate::plan::Plan;
use crate::sense::energy::Zone;
use crate::sense::events::Counts;
use crate::sensed::{FUNCTIONS, Nanos, Sensed, Tail};

/// Rungs that are told apart; all above are counted with the last.
const RUNGS: usize = 17;
/// Different times that a core has spent in are told apart up to this many.
const RESIDENCIES: usize = 64;
/// Where a core has no table, frequencies are told apart by this.
const WIDTH_KHZ: u32 = 100_000;

/// Everything that is shown.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// By position in the node.
    pub cores: Vec<CoreBook>,
    /// Decisions taken.
    pub ticks: u64,
    /// Those that began more than a tenth of their time too late.
    pub late: u64,
    /// Of the file of events.
    pub events: Counts,
    /// What the service's latency was last.
    pub tail: Option<Tail>,
    /// A stream to weir-control is open; none where it is not configured.
    pub mesh_connected: Option<bool>,
    /// Each for itself.
    pub zones: Vec<ZoneBook>,
    /// By class.
    pub energy: EnergyBook,
    /// Until the next decision.
    pub sleep: Duration,
    /// Of the last tick.
    pub now: Nanos,
    /// The same by the clock on the wall; none before the first.
    pub ticked: Option<SystemTime>,
    /// Of the service's cores and the jobs; none where cores are not divided.
    pub shares: Option<SharesBook>,
}

/// Of one core.
#[derive(Clone, Debug, Default)]
pub struct CoreBook {
    /// As the kernel counts.
    pub number: u32,
    /// How its files are.
    pub status: Status,
    /// What it is planned to do.
    pub rung: usize,
    /// At what frequency.
    pub planned: Khz,
    /// Changes of what was planned.
    pub transitions: u64,
    /// Share of time not idle.
    pub busy: f64,
    /// Since when its hot functions run.
    pub since: [Option<Nanos>; FUNCTIONS],
    /// How long it was where.
    pub residency: Vec<Residency>,
    /// The one that time was added to last: mostly the next, too.
    pub(crate) lately: usize,
    /// Where no other frequency lies between.
    pub(crate) has_table: bool,
}

/// Time spent on a rung, at a frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residency {
    /// Of the policy's ladder.
    pub rung: usize,
    /// As written; to the hundred MHz below where the core has no table.
    pub khz: Khz,
    /// For how long.
    pub time: Duration,
}

/// Of one zone of RAPL.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ZoneBook {
    /// As the kernel calls it.
    pub name: String,
    /// Of its folder.
    pub path: String,
    /// Since the governor started.
    pub joules: f64,
}

impl Book {
    /// Nothing has happened.
    pub fn new(node: &Node, zones: &[Zone]) -> Self {
        let core = |core: &crate::node::NodeCore| CoreBook {
            number: core.number,
            residency: Vec::with_capacity(RESIDENCIES),
            has_table: !core.range.steps.is_empty(),
            ..CoreBook::default()
        };
        let zone = |zone: &Zone| ZoneBook {
            name: zone.name.clone(),
            path: zone.path.display().to_string(),
            joules: 0.0,
        };
        Self {
            cores: node.cores.iter().map(core).collect(),
            zones: zones.iter().map(zone).collect(),
            ..Self::default()
        }
    }

    /// What was in force until now.
    pub fn passed(&mut self, now: Nanos) {
        let time = match self.ticks {
            0 => Duration::ZERO,
            _ => now.since(self.now),
        };
        self.now = now;
        for core in &mut self.cores {
            core.passed(time);
        }
    }

    /// What was just sensed, planned and applied. Does not allocate.
    pub fn decided(
        &mut self,
        sensed: &Sensed,
        plan: &Plan,
        apply: Option<&Apply>,
        counts: &Counts,
    ) {
        self.ticks += 1;
        self.events = *counts;
        self.tail = sensed.tail.filter(|tail| tail.requests > 0);
        self.sleep = plan.sleep;
        for (index, core) in self.cores.iter_mut().enumerate() {
            core.status = apply.map_or(Status::default(), |apply| apply.status(index));
            if let Some(seen) = sensed.cores.get(index) {
                core.busy = seen.busy;
                core.since = [None; FUNCTIONS];
                for (function, since) in seen.hot.running() {
                    core.since[function] = Some(since);
                }
            }
            let setting = plan.cores.get(index).copied().unwrap_or_default();
            let (rung, planned) = (setting.rung.min(RUNGS - 1), setting.frequency);
            let first = core.planned == Khz::default();
            core.transitions += u64::from(!first && (rung, planned) != (core.rung, core.planned));
            (core.rung, core.planned) = (rung, planned);
        }
    }

    /// What the zones have counted.
    pub fn used(&mut self, zones: &[Zone]) {
        for (book, zone) in self.zones.iter_mut().zip(zones) {
            book.joules = zone.joules;
        }
    }
}

impl CoreBook {
    fn passed(&mut self, time: Duration) {
        let Some(khz) = self.status.khz.filter(|_| self.status.online) else {
            return;
        };
        let khz = match self.has_table {
            true => khz,
            false => Khz(khz.0 / WIDTH_KHZ * WIDTH_KHZ),
        };
        let rung = self.rung;
        let here = |entry: &Residency| (entry.rung, entry.khz) == (rung, khz);
        let same = self.residency.get(self.lately).is_some_and(here);
        let found = match same {
            true => Some(self.lately),
            false => self.residency.iter().position(here),
        };
        if found.is_none() && self.residency.len() < RESIDENCIES {
            self.lately = self.residency.len();
            return self.residency.push(Residency { rung, khz, time });
        }
        // Where there are more than can be told apart, the last stands for the rest.
        let index = found.unwrap_or(RESIDENCIES - 1);
        self.lately = index;
        if let Some(entry) = self.residency.get_mut(index) {
            entry.time += time;
        }
    }
}

/// The book, shared: the loop holds it for some microseconds in each tick.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<Book>>);

impl Shared {
    /// For the loop and its readers.
    pub fn new(book: Book) -> Self {
        Self(Arc::new(Mutex::new(book)))
    }

    /// For a moment.
    pub fn lock(&self) -> MutexGuard<'_, Book> {
        // Whatever panicked left numbers behind, which are as good as any.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy.
    pub fn read(&self) -> Book {
        self.lock().clone()
    }
}
