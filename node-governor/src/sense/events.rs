// SPDX-License-Identifier: Apache-2.0
//! Which hot function runs on which core, from the lanes that producers write.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use tracing::{error, info, warn};
use weir_events::layout::HeaderError;
use weir_events::{Geometry, Kind, Lane, Opened, Owner, ReadError, Reader};

use super::threads::{Seen, Threads, Track};
use crate::config;
use crate::root::Root;
use crate::sensed::{FUNCTIONS, Finished, Nanos, Sensed};

/// Calls that ended in one tick and are kept; more only say the same again.
const FINISHED: usize = 4096;

/// Why nothing can be heard of hot functions.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be made or read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Its sizes are none.
    #[error(transparent)]
    Sizes(#[from] HeaderError),
}

/// What was lost, refused or freed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lanes with an owner, in the last tick.
    pub lanes: u32,
    /// Events that were read.
    pub events: u64,
    /// Events that were written and could not be read.
    pub lost: u64,
    /// Lies: times to come.
    pub future: u64,
    /// Lies: numbers of events that no producer can have written.
    pub jumped: u64,
    /// Hot functions on cores that are not governed.
    pub outside: u64,
    /// Lanes whose process is in another pid namespace, where its threads have other numbers.
    pub namespace: u64,
    /// Lanes of threads that are dead, freed.
    pub dead: u64,
    /// Ticks in which the file could not be read: no function was taken to run.
    pub unreadable: u64,
}

/// The file of events and whose lanes are in it.
#[derive(Debug)]
pub struct Events {
    settings: config::Events,
    geometry: Geometry,
    /// None while the file cannot be read.
    open: Option<Open>,
    threads: Threads,
    tracks: Vec<Track>,
    /// To be freed after the reader is done.
    dead: Vec<(u32, Owner, u64)>,
    positions: Positions,
    counts: Counts,
}

#[derive(Debug)]
struct Open {
    reader: Reader<File>,
    inode: u64,
}

/// From a core's number to its position in the node.
#[derive(Debug)]
struct Positions(Vec<Option<usize>>);

impl Positions {
    fn new(numbers: &[u32]) -> Self {
        let most = numbers.iter().max().map_or(0, |most| *most as usize + 1);
        let mut positions = vec![None; most];
        for (position, number) in numbers.iter().enumerate() {
            positions[*number as usize] = Some(position);
        }
        Self(positions)
    }

    fn of(&self, number: u32) -> Option<usize> {
        self.0.get(number as usize).copied().flatten()
    }
}

impl Events {
    /// Makes the file, or takes it over from a former governor.
    pub fn open(
        settings: &config::Events,
        root: &Root,
        cores: &[u32],
        tick: Duration,
    ) -> Result<Events, Error> {
        let geometry = Geometry::new(settings.lanes, settings.events_per_lane)?;
        let mut events = Events {
            geometry,
            open: None,
            threads: Threads::new(root, tick),
            tracks: vec![Track::default(); settings.lanes as usize],
            dead: Vec::with_capacity(settings.lanes as usize),
            positions: Positions::new(cores),
            settings: settings.clone(),
            counts: Counts::default(),
        };
        events.attach()?;
        Ok(events)
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    fn attach(&mut self) -> Result<(), ReadError> {
        let path = &self.settings.path;
        let (reader, opened) = Reader::create_or_adopt(path, self.geometry, self.settings.group)?;
        match opened {
            Opened::Replaced(reason) => warn!(?path, %reason, "the file of events was replaced"),
            opened => info!(?path, ?opened, "events are read"),
        }
        let inode = std::fs::metadata(path).map_or(0, |found| found.ino());
        self.open = Some(Open { reader, inode });
        self.tracks.fill(Track::default());
        Ok(())
    }

    /// Tries again what failed, and makes the file again where it was taken away.
    pub(super) fn look(&mut self, _now: Nanos) {
        let path = &self.settings.path;
        if let Some(open) = &self.open {
            let found = std::fs::metadata(path);
            let same = found.as_ref().is_ok_and(|found| found.ino() == open.inode);
            if same {
                return;
            }
            warn!(?path, "the file of events has been taken away");
            self.open = None;
        }
        if let Err(error) = self.attach() {
            error!(%error, "no events can be read; tried again every second");
        }
    }

    /// Sets every core's hot functions, and which calls have ended.
    pub(super) fn sense(&mut self, now: Nanos, sensed: &mut Sensed) {
        sensed.finished.clear();
        sensed.finished.reserve(FINISHED);
        for core in &mut sensed.cores {
            core.hot = Default::default();
        }
        let Some(open) = &mut self.open else {
            self.counts.unreadable += 1;
            return;
        };
        let (threads, counts, dead) = (&mut self.threads, &mut self.counts, &mut self.dead);
        threads.begin();
        let read = open.reader.read(now.0, |lane| {
            let Some(track) = self.tracks.get_mut(lane.number as usize) else {
                return;
            };
            match threads.see(track, lane, now) {
                Seen::Alive => {}
                Seen::Elsewhere { first } => {
                    counts.namespace += u64::from(first);
                    return;
                }
                Seen::Dead(owner) => {
                    // Reserved for every lane.
                    dead.push((lane.number, owner, lane.thread_started));
                    return;
                }
            }
            finished(track, lane, &self.positions, sensed);
            let core = track.core(lane).and_then(|core| self.positions.of(core));
            let Some(seen) = core.and_then(|core| sensed.cores.get_mut(core)) else {
                let new = lane.running().next().is_some() && !track.outside;
                counts.outside += u64::from(new);
                track.outside |= new;
                return;
            };
            track.outside = false;
            for (function, since) in lane.running() {
                seen.hot.enter(function.index(), Nanos(since));
            }
        });
        let freed = dead.drain(..).try_fold(0, |freed, (lane, owner, started)| {
            let free = open.reader.free(lane, owner, started)?;
            Ok(freed + u64::from(free))
        });
        match read.and_then(|tick| Ok((tick, freed?))) {
            Ok((tick, freed)) => {
                counts.lanes = tick.claimed;
                counts.events += tick.events;
                counts.lost = counts.lost.saturating_add(tick.lost);
                counts.future += tick.future;
                counts.jumped += tick.jumped;
                counts.dead += freed;
            }
            Err(error) => {
                error!(%error, "events cannot be read: no function is taken to run");
                counts.unreadable += 1;
                counts.lanes = 0;
                self.open = None;
                for core in &mut sensed.cores {
                    core.hot = Default::default();
                }
                sensed.finished.clear();
            }
        }
    }
}

/// Calls whose end and whose beginning are both known.
fn finished(track: &mut Track, lane: &Lane<'_>, positions: &Positions, sensed: &mut Sensed) {
    if lane.lost > 0 {
        track.entered = [0; FUNCTIONS];
    }
    for event in lane.events {
        let function = event.function.index();
        match event.kind {
            Kind::Enter => track.entered[function] = event.time_ns,
            Kind::Leave => {
                let entered = std::mem::take(&mut track.entered[function]);
                let core = event.core.map(u32::from).or(track.core(lane));
                let core = core.and_then(|core| positions.of(core));
                if let Some(core) = core
                    && entered > 0
                    && sensed.finished.len() < FINISHED
                {
                    let took = Nanos(event.time_ns).since(Nanos(entered));
                    sensed.finished.push(Finished {
                        function,
                        core,
                        took,
                    });
                }
            }
        }
    }
}
