// SPDX-License-Identifier: Apache-2.0
//! The governor's side: once a tick, what runs since when, and the events since the last tick.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

use crate::layout::{
    EVENT_BYTES, Event, FUNCTIONS, FunctionId, Geometry, HEAD_BYTES, HEADER_BYTES, Header,
    HeaderError, OWNER, Owner, PID_NAMESPACE, SINCE_NS, THREAD_STARTED, event_number,
};
use crate::memory::Memory;
use head::Head;

mod file;
mod head;

pub use file::Opened;

/// Clocks of cores may differ a little, and producers write while a tick is read: only a time further ahead than
/// this is a lie.
const FUTURE_NS: u64 = 1_000_000_000;
/// More events than this cannot have been written since the last tick: at one a nanosecond it takes 3 days.
const JUMP: u64 = 1 << 48;

/// Why nothing could be read, or why the file cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Truncated while it was read, or worse.
    #[error("{}: {source}", file.display())]
    File {
        /// Of the ring.
        file: PathBuf,
        /// From the system.
        source: io::Error,
    },
    /// Not a ring of this version.
    #[error("{}: {source}", file.display())]
    Header {
        /// Of the ring.
        file: PathBuf,
        /// What is wrong.
        source: HeaderError,
    },
    /// Something is in its place that is not the governor's to use or to replace.
    #[error("{}: {found}; expected {expected}", file.display())]
    Refused {
        /// What is in its place, or the directory it would be in.
        file: PathBuf,
        /// What it is.
        found: String,
        /// What would do.
        expected: String,
    },
}

/// One lane in one tick.
#[derive(Debug)]
pub struct Lane<'tick> {
    /// Its number, for [`Reader::free`].
    pub number: u32,
    /// Whose it is; `None`: given back since the last tick, and here only for its last events.
    pub owner: Option<Owner>,
    /// Field 22 of the owner's `/proc/PID/task/TID/stat`; 0 = not known yet.
    pub thread_started: u64,
    /// Inode of the owner's `/proc/self/ns/pid`; 0 = not known yet.
    pub pid_namespace: u64,
    /// The core at the last event, if the producer knows it.
    pub core: Option<u32>,
    /// Since when each function has been running, 0 = it is not. The truth, whatever became of the events.
    pub since_ns: [u64; FUNCTIONS],
    /// Since the last tick, in order. The first may be those of the lane's last owner.
    pub events: &'tick [Event],
    /// Events that are missing among them, or before them.
    pub lost: u64,
}

impl Lane<'_> {
    /// The functions that run, and since when.
    pub fn running(&self) -> impl Iterator<Item = (FunctionId, u64)> + '_ {
        let functions = (0..FUNCTIONS as u8).filter_map(FunctionId::new);
        functions
            .map(|function| (function, self.since_ns[function.index()]))
            .filter(|(_, since)| *since > 0)
    }
}

/// All lanes in one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// Lanes with an owner.
    pub claimed: u32,
    /// Events that were read.
    pub events: u64,
    /// Events that were written and could not be read.
    pub lost: u64,
    /// Lies: times more than a second ahead, taken as now.
    pub future: u64,
    /// Lies: counts of events that went back, or ahead as none can. The lane is read on from there.
    pub jumped: u64,
}

/// Reads the lanes.
pub struct Reader<M> {
    memory: M,
    /// For errors.
    file: PathBuf,
    geometry: Geometry,
    /// How many events of each lane are accounted for.
    read: Vec<u64>,
    heads: Vec<u8>,
    slots: Vec<u8>,
    events: Vec<Event>,
}

impl<M> fmt::Debug for Reader<M> {
    /// Without the buffers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("file", &self.file)
            .field("geometry", &self.geometry)
            .finish_non_exhaustive()
    }
}

impl<M: Memory> Reader<M> {
    /// Reads on from what is there now. `name` is for errors, `bytes` how long the memory is.
    pub fn over(memory: M, name: impl AsRef<Path>, bytes: u64) -> Result<Reader<M>, ReadError> {
        let file = name.as_ref().to_owned();
        let mut page = [0; 40];
        let read = match bytes {
            0..HEADER_BYTES => Ok(()),
            _ => memory.read_at(0, &mut page),
        };
        read.map_err(|source| ReadError::File {
            file: file.clone(),
            source,
        })?;
        let header = Header::check(&page, bytes).map_err(|source| ReadError::Header {
            file: file.clone(),
            source,
        })?;
        let geometry = header.geometry;
        let lanes = geometry.lanes() as usize;
        let events = geometry.events_per_lane() as usize;
        let mut reader = Reader {
            memory,
            file,
            geometry,
            read: vec![0; lanes],
            heads: vec![0; lanes * HEAD_BYTES as usize],
            slots: vec![0; events * EVENT_BYTES as usize],
            events: Vec::with_capacity(events),
        };
        reader.read_heads()?;
        for (read, head) in reader.read.iter_mut().zip(reader.heads.as_chunks().0) {
            *read = Head::decode(head).written;
        }
        Ok(reader)
    }

    /// How many lanes there are, and how many events each keeps.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Shows each lane that has an owner or new events. `now_ns` is `CLOCK_MONOTONIC` just before.
    ///
    /// Takes no memory from the heap. After an error it can be tried again: what the tick had not shown is shown
    /// then.
    pub fn read(
        &mut self,
        now_ns: u64,
        mut visit: impl FnMut(&Lane<'_>),
    ) -> Result<Tick, ReadError> {
        let mut tick = Tick::default();
        self.read_heads()?;
        for number in 0..self.geometry.lanes() {
            let index = number as usize;
            let mut head = Head::decode(&self.heads.as_chunks().0[index]);
            let until = head.written;
            let from = match until.checked_sub(self.read[index]) {
                Some(new) if new <= JUMP => self.read[index],
                _ => {
                    tick.jumped += 1;
                    until
                }
            };
            let mut lost = 0;
            self.events.clear();
            if from < until {
                head = self.read_events(number, from, until)?;
                lost = (until - from) - self.events.len() as u64;
            }
            self.read[index] = until;
            if head.owner == 0 && from == until {
                continue;
            }
            tick.claimed += u32::from(head.owner != 0);
            tick.events += self.events.len() as u64;
            tick.lost = tick.lost.saturating_add(lost);
            tick.future += not_later_than(now_ns, &mut head, &mut self.events);
            visit(&Lane {
                number,
                owner: Owner::from_word(head.owner),
                thread_started: head.thread_started,
                pid_namespace: head.pid_namespace,
                core: head.core,
                since_ns: head.since_ns,
                events: &self.events,
                lost,
            });
        }
        Ok(tick)
    }

    /// Frees the lane of a thread that is dead; `false` if it has changed hands since it was read.
    ///
    /// Of a thread that lives after all it takes the lane: that one claims another at its next call.
    pub fn free(
        &mut self,
        lane: u32,
        owner: Owner,
        thread_started: u64,
    ) -> Result<bool, ReadError> {
        if lane >= self.geometry.lanes() {
            return Ok(false);
        }
        let at = self.geometry.head(lane);
        let head = self.read_head(lane)?;
        if head.owner != owner.word() || head.thread_started != thread_started {
            return Ok(false);
        }
        // As a thread gives it back: the truth first, the owner last.
        let zeros = [0; 8 * FUNCTIONS];
        let clear = |from: u64, bytes: usize| self.memory.write_at(at + from, &zeros[..bytes]);
        clear(SINCE_NS, zeros.len())
            .and_then(|()| clear(THREAD_STARTED, 8))
            .and_then(|()| clear(PID_NAMESPACE, 8))
            .and_then(|()| {
                fence(Ordering::SeqCst);
                clear(OWNER, 8)
            })
            .map_err(|source| self.failed(source))?;
        Ok(true)
    }

    /// Those that are still there of the events with these numbers; and the head after that.
    fn read_events(&mut self, lane: u32, from: u64, until: u64) -> Result<Head, ReadError> {
        let capacity = u64::from(self.geometry.events_per_lane());
        let first = from.max(until.saturating_sub(capacity));
        let start = self.geometry.event(lane, 0);
        let slot = |number: u64| (self.geometry.event(lane, number) - start) as usize;
        // From the first to the last, or all where they go over the end.
        let wanted = match slot(first)..slot(until - 1) + EVENT_BYTES as usize {
            wanted if wanted.start < wanted.end => wanted,
            _ => 0..self.slots.len(),
        };
        let at = start + wanted.start as u64;
        let read = self.memory.read_at(at, &mut self.slots[wanted]);
        read.map_err(|source| self.failed(source))?;
        // What a slot is overwritten with is not read before the count that tells so.
        fence(Ordering::SeqCst);
        let head = self.read_head(lane)?;
        // The event with the number `written` may be half in its slot.
        let safe = head.written.saturating_add(1).saturating_sub(capacity);
        for number in first.max(safe)..until {
            let words = &self.slots[slot(number)..];
            let word = |at: usize| {
                words[at..]
                    .first_chunk()
                    .map_or(0, |b| u64::from_le_bytes(*b))
            };
            if event_number(word(8)) == number as u32 {
                self.events.extend(Event::decode([word(0), word(8)]));
            }
        }
        Ok(head)
    }

    fn read_heads(&mut self) -> Result<(), ReadError> {
        let read = self.memory.read_at(HEADER_BYTES, &mut self.heads);
        read.map_err(|source| self.failed(source))?;
        // Events are read after the counts that say they are there.
        fence(Ordering::SeqCst);
        Ok(())
    }

    fn read_head(&self, lane: u32) -> Result<Head, ReadError> {
        let mut bytes = [0; HEAD_BYTES as usize];
        let read = self.memory.read_at(self.geometry.head(lane), &mut bytes);
        read.map_err(|source| self.failed(source))?;
        Ok(Head::decode(&bytes))
    }

    fn failed(&self, source: io::Error) -> ReadError {
        ReadError::File {
            file: self.file.clone(),
            source,
        }
    }
}

/// Takes later times as now; how many were lies.
fn not_later_than(now_ns: u64, head: &mut Head, events: &mut [Event]) -> u64 {
    let latest = now_ns.saturating_add(FUTURE_NS);
    let mut lies = 0;
    for since in &mut head.since_ns {
        lies += u64::from(*since > latest);
        *since = (*since).min(now_ns);
    }
    for event in events.iter_mut().filter(|event| event.time_ns > latest) {
        lies += 1;
        event.time_ns = now_ns;
    }
    lies
}

#[cfg(test)]
mod tests;
