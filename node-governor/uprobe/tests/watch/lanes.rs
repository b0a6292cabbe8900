// SPDX-License-Identifier: Apache-2.0
//! The lanes as a test wants to see them, read as the governor reads them.

use weir_events::{Kind, Owner, Reader};
use weir_uprobe::Memory;

/// What is known of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) lane: u32,
    pub(crate) owner: Owner,
    pub(crate) started: u64,
    /// Since when each function runs.
    pub(crate) since: [u64; 16],
    /// Each event: kind, function, time.
    pub(crate) events: Vec<(Kind, usize, u64)>,
}

impl Seen {
    pub(crate) fn is_outside(&self) -> bool {
        self.since == [0; 16]
    }

    pub(crate) fn kinds(&self) -> Vec<(Kind, usize)> {
        self.events
            .iter()
            .map(|(kind, function, _)| (*kind, *function))
            .collect()
    }
}

/// Reads on from where it began, and keeps all events of threads that live.
pub(crate) struct Lanes {
    reader: Reader<Memory>,
    seen: Vec<Seen>,
    pub(crate) lost: u64,
}

impl Lanes {
    pub(crate) fn new(memory: Memory) -> Self {
        let bytes = memory.bytes();
        let reader = Reader::over(memory, "uprobes", bytes).expect("a reader");
        let (seen, lost) = (Vec::new(), 0);
        Self { reader, seen, lost }
    }

    /// Every thread that has a lane, by its number.
    pub(crate) fn look(&mut self) -> Vec<Seen> {
        let mut living = Vec::new();
        let before = std::mem::take(&mut self.seen);
        let tick = self.reader.read(now(), |lane| {
            let Some(owner) = lane.owner else {
                return;
            };
            let earlier = before.iter().find(|seen| seen.owner == owner);
            let mut events = earlier.map_or(Vec::new(), |seen| seen.events.clone());
            let new = lane.events.iter();
            events.extend(new.map(|event| (event.kind, event.function.index(), event.time_ns)));
            living.push(Seen {
                lane: lane.number,
                owner,
                started: lane.thread_started,
                since: lane.since_ns,
                events,
            });
        });
        let tick = tick.expect("it can be read");
        assert_eq!((tick.future, tick.jumped), (0, 0));
        self.lost += tick.lost;
        self.seen = living;
        self.seen.sort_by_key(|seen| seen.owner.tid);
        self.seen.clone()
    }

    /// As the governor does for a thread that is dead.
    pub(crate) fn free(&mut self, seen: &Seen) -> bool {
        let freed = self.reader.free(seen.lane, seen.owner, seen.started);
        freed.expect("it can be written")
    }
}

fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
