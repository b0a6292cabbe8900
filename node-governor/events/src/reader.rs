// SPDX-License-Identifier: Apache-2.0
//! The governor's side: once a tick, what runs since when, and the events since the last tick.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::FileError;
use crate::layout::{
    Event, FUNCTIONS, Geometry, HEAD_BYTES, HEADER_BYTES, Header, OWNER, Owner, PID_NAMESPACE,
    SINCE_NS, THREAD_STARTED,
};
use crate::memory::Memory;
use head::Head;
use slots::Slots;

mod error;
mod file;
mod head;
mod slots;
mod tick;

pub use error::ReadError;
pub use file::Opened;
pub use tick::{Lane, Tick};

/// Clocks of cores may differ a little, and producers write while a tick is read: only a time further ahead than
/// this is a lie.
const FUTURE_NS: u64 = 1_000_000_000;
/// More events than this cannot have been written since the last tick: at one a nanosecond it takes 3 days.
const JUMP: u64 = 1 << 48;

/// Reads the lanes.
pub struct Reader<M> {
    memory: M,
    /// For errors.
    file: PathBuf,
    geometry: Geometry,
    /// How many events of each lane are accounted for.
    read: Vec<u64>,
    heads: Vec<u8>,
    slots: Slots,
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
        read.map_err(FileError::of(&file))?;
        let header = Header::check(&page, bytes).map_err(FileError::of(&file))?;
        let geometry = header.geometry;
        let lanes = geometry.lanes() as usize;
        let events = geometry.events_per_lane() as usize;
        let mut reader = Reader {
            memory,
            file,
            geometry,
            read: vec![0; lanes],
            heads: vec![0; lanes * HEAD_BYTES as usize],
            slots: Slots::new(geometry),
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
        let mut first = 0;
        while first < self.geometry.lanes() {
            let end = self.read_slots(first, &mut tick)?;
            self.read_heads_again(first, end)?;
            for lane in first..end {
                self.show(lane, now_ns, &mut tick, &mut visit);
            }
            first = end;
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
                self.memory.fence();
                clear(OWNER, 8)
            })
            .map_err(FileError::of(&self.file))?;
        Ok(true)
    }

    /// Reads the new events of lanes from this one on, and returns the one before which there was no more room.
    fn read_slots(&mut self, first: u32, tick: &mut Tick) -> Result<u32, ReadError> {
        self.slots.clear();
        let end = self.plan_slots(first, tick)?;
        let read = self.slots.finish(&self.memory);
        read.map_err(FileError::of(&self.file))?;
        Ok(end)
    }

    fn plan_slots(&mut self, first: u32, tick: &mut Tick) -> Result<u32, ReadError> {
        for lane in first..self.geometry.lanes() {
            let until = self.head(lane).written;
            let from = match until.checked_sub(self.read[lane as usize]) {
                Some(new) if new <= JUMP => self.read[lane as usize],
                _ => {
                    tick.jumped += 1;
                    until
                }
            };
            let read = self.slots.read(&self.memory, lane, from, until);
            if !read.map_err(FileError::of(&self.file))? {
                return Ok(lane);
            }
        }
        Ok(self.geometry.lanes())
    }

    fn show(
        &mut self,
        number: u32,
        now_ns: u64,
        tick: &mut Tick,
        visit: &mut impl FnMut(&Lane<'_>),
    ) {
        let mut head = self.head(number);
        let has_events = self.slots.has(number);
        self.read[number as usize] = self.slots.until(number);
        if head.owner == 0 && !has_events {
            return;
        }
        self.events.clear();
        let lost = self.slots.believe(number, &head, &mut self.events);
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

    /// As it was read last.
    fn head(&self, lane: u32) -> Head {
        Head::decode(&self.heads.as_chunks().0[lane as usize])
    }

    fn read_heads(&mut self) -> Result<(), ReadError> {
        let read = self.memory.read_at(HEADER_BYTES, &mut self.heads);
        read.map_err(FileError::of(&self.file))?;
        // Events are read after the counts that say they are there.
        self.memory.fence();
        Ok(())
    }

    /// Of these lanes, if any of them has new events.
    fn read_heads_again(&mut self, first: u32, end: u32) -> Result<(), ReadError> {
        if self.slots.is_empty() {
            return Ok(());
        }
        // A slot's new content is not read before the count that tells of it.
        self.memory.fence();
        let bytes = HEAD_BYTES as usize;
        let heads = &mut self.heads[first as usize * bytes..end as usize * bytes];
        let read = self.memory.read_at(self.geometry.head(first), heads);
        Ok(read.map_err(FileError::of(&self.file))?)
    }

    fn read_head(&self, lane: u32) -> Result<Head, ReadError> {
        let mut bytes = [0; HEAD_BYTES as usize];
        let read = self.memory.read_at(self.geometry.head(lane), &mut bytes);
        read.map_err(FileError::of(&self.file))?;
        Ok(Head::decode(&bytes))
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
