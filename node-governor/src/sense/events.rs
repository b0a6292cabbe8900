// SPDX-License-Identifier: Apache-2.0
//! Which hot function runs on which core, from the lanes that producers write.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use tracing::{error, info, warn};
use weir_events::layout::{HeaderError, RETIRED, STATE};
use weir_events::{Geometry, Kind, Lane, Memory, Opened, Owner, ReadError, Reader};

use super::threads::{Seen, Threads, Track};
use super::whose::Whose;
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
    /// Threads with hot functions on cores that are not governed.
    pub outside: u64,
    /// Lanes whose process is in another pid namespace, where its threads have other numbers.
    pub namespace: u64,
    /// Threads that the kernel saw and whose process is in another cgroup than the function is watched in.
    pub cgroup: u64,
    /// Events that the kernel saw of threads for which it had no lane.
    pub no_lane: u64,
    /// Lanes of threads that are dead, freed.
    pub dead: u64,
    /// Ticks in which the file could not be read: no function was taken to run.
    pub unreadable: u64,
}

/// Where hot functions are told of.
#[derive(Debug)]
pub struct Events {
    settings: config::Events,
    geometry: Geometry,
    /// What producers write; none while it cannot be read.
    file: Option<Lanes<File>>,
    /// What is under its name, as it was when it was opened.
    place: Option<(File, u64)>,
    /// What the kernel writes for programs that cannot.
    kernel: Option<Lanes<weir_uprobe::Memory>>,
    /// Of those; none where everybody's count.
    whose: Option<Whose>,
    threads: Threads,
    positions: Positions,
    pub(super) counts: Counts,
}

/// One memory with lanes, and what is known of their threads.
#[derive(Debug)]
struct Lanes<M> {
    reader: Reader<M>,
    tracks: Vec<Track>,
    /// To be freed after the reader is done.
    dead: Vec<(u32, Owner, u64)>,
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
    /// Makes the file, or takes it over from a former governor; reads the kernel's lanes, too, if there are any.
    pub(super) fn open(
        settings: &config::Events,
        kernel: Option<(weir_uprobe::Memory, Option<Whose>)>,
        root: &Root,
        cores: &[u32],
        tick: Duration,
    ) -> Result<Events, Error> {
        let (kernel, whose) = kernel.unzip();
        let kernel = kernel.map(|mapped: weir_uprobe::Memory| {
            let bytes = mapped.bytes();
            Reader::over(mapped, "uprobes", bytes).map(Lanes::new)
        });
        let mut events = Events {
            geometry: Geometry::new(settings.lanes, settings.events_per_lane)?,
            file: None,
            place: None,
            kernel: kernel.transpose()?,
            whose: whose.flatten(),
            threads: Threads::new(root, tick),
            positions: Positions::new(cores),
            settings: settings.clone(),
            counts: Counts::default(),
        };
        events.attach()?;
        Ok(events)
    }

    fn attach(&mut self) -> Result<(), ReadError> {
        let path = &self.settings.path;
        let (reader, opened) = Reader::create_or_adopt(path, self.geometry, self.settings.group)?;
        match opened {
            Opened::Replaced(reason) => warn!(?path, %reason, "the file of events was replaced"),
            opened => info!(?path, ?opened, "events are read"),
        }
        let place = File::options().write(true).open(path);
        self.place = place
            .and_then(|file| {
                let inode = file.metadata()?.ino();
                Ok((file, inode))
            })
            .ok();
        self.file = Some(Lanes::new(reader));
        Ok(())
    }

    /// Tries again what failed, and makes the file again where it was taken away.
    pub(super) fn look(&mut self) {
        let path = &self.settings.path;
        if self.file.is_some() {
            let found = std::fs::metadata(path).map(|found| found.ino()).ok();
            let Some((old, inode)) = &self.place else {
                return;
            };
            if found == Some(*inode) {
                return;
            }
            warn!(?path, "the file of events has been taken away");
            // Who writes to it shall look for the new one. It is nobody's any more, whether or not that can be said.
            let _ = old.write_all_at(&RETIRED.to_le_bytes(), STATE);
            self.file = None;
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
        self.threads.begin();
        self.counts.lanes = 0;
        let mut look = Look {
            now,
            threads: &mut self.threads,
            whose: self.whose.as_mut(),
            positions: &self.positions,
            counts: &mut self.counts,
            sensed,
        };
        let mut readable = true;
        if let Some(lanes) = &mut self.kernel {
            readable &= lanes.read(&mut look, false);
        }
        // Who writes there speaks for itself.
        look.whose = None;
        let file = self.file.as_mut();
        if !file.is_some_and(|lanes| lanes.read(&mut look, true)) {
            self.file = None;
            readable = false;
        }
        self.counts.unreadable += u64::from(!readable);
    }
}

/// One tick's.
struct Look<'a> {
    now: Nanos,
    threads: &'a mut Threads,
    whose: Option<&'a mut Whose>,
    positions: &'a Positions,
    counts: &'a mut Counts,
    sensed: &'a mut Sensed,
}

impl<M: Memory> Lanes<M> {
    fn new(reader: Reader<M>) -> Self {
        let lanes = reader.geometry().lanes() as usize;
        Self {
            reader,
            tracks: (0..lanes).map(|_| Track::default()).collect(),
            dead: Vec::with_capacity(lanes),
        }
    }

    /// False if they cannot be read: then nothing of them runs. `frees`: lanes of dead threads are given back.
    fn read(&mut self, look: &mut Look<'_>, frees: bool) -> bool {
        let read = self.reader.read(look.now.0, |lane| {
            if let Some(track) = self.tracks.get_mut(lane.number as usize)
                && let Seen::Dead(owner) = look.lane(track, lane)
            {
                // There is room for every lane.
                self.dead.push((lane.number, owner, lane.thread_started));
            }
        });
        let (reader, dead) = (&mut self.reader, &mut self.dead);
        let dead = dead.drain(..).filter(|_| frees);
        let freed = dead
            .into_iter()
            .try_fold(0, |freed, (lane, owner, started)| {
                let free = reader.free(lane, owner, started)?;
                Ok::<u64, ReadError>(freed + u64::from(free))
            });
        let counts = &mut *look.counts;
        match read.and_then(|tick| Ok((tick, freed?))) {
            Ok((tick, freed)) => {
                counts.lanes += tick.claimed;
                counts.events += tick.events;
                counts.lost = counts.lost.saturating_add(tick.lost);
                counts.future += tick.future;
                counts.jumped += tick.jumped;
                counts.dead += freed;
                true
            }
            Err(error) => {
                error!(%error, "events cannot be read: no function is taken to run");
                for core in &mut look.sensed.cores {
                    core.hot = Default::default();
                }
                false
            }
        }
    }
}

impl Look<'_> {
    fn lane(&mut self, track: &mut Track, lane: &Lane<'_>) -> Seen {
        let seen = self.threads.see(track, lane, self.now);
        if let Seen::Elsewhere { first } = seen {
            self.counts.namespace += u64::from(first);
        }
        if !matches!(seen, Seen::Alive) {
            return seen;
        }
        if let Some(whose) = &mut self.whose {
            let foreign = self.threads.belongs(track, lane, whose, self.now);
            self.counts.cgroup += u64::from(foreign);
        }
        finished(track, lane, self.positions, self.sensed);
        let core = track.core(lane).and_then(|core| self.positions.of(core));
        match core.and_then(|core| self.sensed.cores.get_mut(core)) {
            Some(core) => {
                track.outside = false;
                for (function, since) in lane.running().filter(|(f, _)| track.counts(f.index())) {
                    core.hot.enter(function.index(), Nanos(since));
                }
            }
            None => {
                let running = lane
                    .running()
                    .any(|(function, _)| track.counts(function.index()));
                let new = running && !track.outside;
                self.counts.outside += u64::from(new);
                track.outside |= new;
            }
        }
        seen
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
                    && track.counts(function)
                    && entered > 0
                    && sensed.finished.len() < FINISHED
                {
                    let took = Nanos(event.time_ns).since(Nanos(entered));
                    sensed.finished.push(Finished {
                        function,
                        core,
                        took,
                        at: Nanos(event.time_ns),
                    });
                }
            }
        }
    }
}
