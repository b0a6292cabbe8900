// SPDX-License-Identifier: Apache-2.0
//! The new events of some lanes, as they were read.

use std::io;

use super::head::Head;
use crate::layout::{EVENT_BYTES, Event, Geometry, event_number};
use crate::memory::Memory;

/// Lanes are read one after another until this is full: the heads that tell which of the events can be believed
/// are then read for all of them at once.
const BYTES: usize = 64 * 1024;

/// What lies between the new events of two lanes is read with them up to this: a call of the kernel costs more than
/// copying so much.
const GAP: usize = 1024;

/// Events of some lanes that are read by one call.
#[derive(Clone, Copy, Default)]
struct Run {
    /// Where it begins in the memory.
    offset: u64,
    /// And in the buffer.
    at: usize,
    length: usize,
}

/// What was read of one lane.
#[derive(Clone, Copy, Default)]
struct Part {
    /// Numbers of the events that are new.
    from: u64,
    until: u64,
    /// The number of the first that may still be there.
    first: u64,
    /// Where the bytes are that were read, and where they are among those of the lane.
    at: usize,
    start: usize,
}

/// New events of some lanes.
pub(super) struct Slots {
    geometry: Geometry,
    bytes: Vec<u8>,
    used: usize,
    /// Not read yet; empty where there is none.
    run: Run,
    parts: Vec<Part>,
}

impl Slots {
    pub(super) fn new(geometry: Geometry) -> Slots {
        let one_lane = geometry.events_per_lane() as usize * EVENT_BYTES as usize;
        Slots {
            geometry,
            bytes: vec![0; one_lane.max(BYTES)],
            used: 0,
            run: Run::default(),
            parts: vec![Part::default(); geometry.lanes() as usize],
        }
    }

    pub(super) fn clear(&mut self) {
        self.used = 0;
        self.run = Run::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Reads the lane's events with these numbers, or those that are still there, at the latest by
    /// [`finish`](Self::finish); `false` if there is no room. Lanes come in their order.
    pub(super) fn read(
        &mut self,
        memory: &impl Memory,
        lane: u32,
        from: u64,
        until: u64,
    ) -> io::Result<bool> {
        let capacity = u64::from(self.geometry.events_per_lane());
        let first = from.max(until.saturating_sub(capacity));
        let mut part = Part {
            from,
            until,
            first,
            at: self.used,
            start: 0,
        };
        if from < until {
            let end = self.offset(lane, until - 1) + EVENT_BYTES as usize;
            let length = match self.offset(lane, first) {
                start if start < end => {
                    part.start = start;
                    end - start
                }
                // They go over the end: all.
                _ => capacity as usize * EVENT_BYTES as usize,
            };
            let offset = self.geometry.event(lane, 0) + part.start as u64;
            let end = self.run.offset + self.run.length as u64;
            let gap = offset.checked_sub(end).filter(|gap| *gap <= GAP as u64);
            let gap = gap.filter(|_| self.run.length > 0).map(|gap| gap as usize);
            let used = self.used + gap.unwrap_or(0) + length;
            if used > self.bytes.len() {
                return Ok(false);
            }
            match gap {
                Some(gap) => self.run.length += gap + length,
                None => {
                    self.finish(memory)?;
                    self.run = Run {
                        offset,
                        at: self.used,
                        length,
                    };
                }
            }
            self.used = used;
            part.at = used - length;
        }
        self.parts[lane as usize] = part;
        Ok(true)
    }

    /// Reads what is not read yet.
    pub(super) fn finish(&mut self, memory: &impl Memory) -> io::Result<()> {
        let run = std::mem::take(&mut self.run);
        if run.length == 0 {
            return Ok(());
        }
        memory.read_at(run.offset, &mut self.bytes[run.at..run.at + run.length])
    }

    /// Whether the lane has new events.
    pub(super) fn has(&self, lane: u32) -> bool {
        let part = self.parts[lane as usize];
        part.from < part.until
    }

    /// How many events of the lane are accounted for with these.
    pub(super) fn until(&self, lane: u32) -> u64 {
        self.parts[lane as usize].until
    }

    /// Those of the lane's events that were there when they were read, by its head after that; and how many were
    /// not.
    pub(super) fn believe(&self, lane: u32, after: &Head, events: &mut Vec<Event>) -> u64 {
        let part = self.parts[lane as usize];
        let capacity = u64::from(self.geometry.events_per_lane());
        // The event with the number `written` may be half in its slot.
        let safe = after.written.saturating_add(1).saturating_sub(capacity);
        for number in part.first.max(safe)..part.until {
            let at = part.at + self.offset(lane, number) - part.start;
            let word =
                |at: usize| u64::from_le_bytes(*self.bytes[at..].first_chunk().unwrap_or(&[0; 8]));
            let words = [word(at), word(at + 8)];
            if event_number(words[1]) == number as u32 {
                events.extend(Event::decode(words));
            }
        }
        part.until - part.from - events.len() as u64
    }

    /// Where the event is among the bytes of its lane.
    fn offset(&self, lane: u32, number: u64) -> usize {
        (self.geometry.event(lane, number) - self.geometry.event(lane, 0)) as usize
    }
}
