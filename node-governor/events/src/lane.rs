// SPDX-License-Identifier: Apache-2.0
//! A producer's lane: the stores of each step in the order that the layout asks for.

use crate::layout::{
    CORE, Event, FUNCTIONS, FunctionId, Geometry, Kind, LIVE, OWNER, Owner, PID_NAMESPACE,
    SINCE_NS, STATE, THREAD_STARTED, UNKNOWN_CORE, WRITTEN,
};
use crate::words::Words;

/// A lane that a thread has claimed.
#[derive(Debug)]
pub(crate) struct Lane {
    geometry: Geometry,
    lane: u32,
    head: u64,
    owner: u64,
    /// As in the head: nobody else writes it.
    written: u64,
}

impl Lane {
    /// The first free lane, from one on that differs by thread.
    pub(crate) fn claim(words: &impl Words, geometry: Geometry, owner: Owner) -> Option<Lane> {
        let lanes = geometry.lanes();
        let first = owner.tid % lanes;
        let is_free = |lane: &u32| words.claim(geometry.head(*lane) + OWNER, owner.word());
        let lane = (first..lanes).chain(0..first).find(is_free)?;
        let head = geometry.head(lane);
        Some(Lane {
            geometry,
            lane,
            head,
            owner: owner.word(),
            written: words.load(head + WRITTEN),
        })
    }

    /// What the governor needs to tell whether the owner is alive.
    pub(crate) fn introduce(&self, words: &impl Words, started: u64, namespace: u64) {
        words.store(self.head + PID_NAMESPACE, namespace);
        words.store(self.head + THREAD_STARTED, started);
    }

    /// Whether it is still worth writing: neither has the file been replaced nor the lane been taken away.
    #[inline]
    pub(crate) fn is_mine(&self, words: &impl Words) -> bool {
        words.load(STATE) == LIVE && words.load(self.head + OWNER) == self.owner
    }

    /// Writes an event, and whether the function runs from now on.
    #[inline]
    pub(crate) fn record(&mut self, words: &impl Words, event: &Event) {
        let since = match event.kind {
            Kind::Enter => event.time_ns,
            Kind::Leave => 0,
        };
        let slot = self.geometry.event(self.lane, self.written);
        let [time, word] = event.encode(self.written);
        words.store(slot, time);
        words.store(slot + 8, word);
        words.store(
            self.head + SINCE_NS + 8 * event.function.index() as u64,
            since,
        );
        words.store(self.head + CORE, event.core.map_or(UNKNOWN_CORE, u64::from));
        self.written += 1;
        words.store(self.head + WRITTEN, self.written);
    }

    /// Gives the lane to whoever wants it.
    pub(crate) fn release(self, words: &impl Words) {
        for function in 0..FUNCTIONS as u64 {
            words.store(self.head + SINCE_NS + 8 * function, 0);
        }
        words.store(self.head + THREAD_STARTED, 0);
        words.store(self.head + PID_NAMESPACE, 0);
        words.store(self.head + OWNER, 0);
    }
}

/// What a thread is in the middle of, whether or not it has a lane.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    depth: [u32; FUNCTIONS],
    since_ns: [u64; FUNCTIONS],
}

impl Calls {
    /// Counts a call; whether it is the outermost.
    #[inline]
    pub(crate) fn enter(&mut self, function: FunctionId) -> bool {
        let depth = &mut self.depth[function.index()];
        *depth += 1;
        *depth == 1
    }

    /// When the outermost call began.
    #[inline]
    pub(crate) fn began(&mut self, function: FunctionId, now_ns: u64) {
        self.since_ns[function.index()] = now_ns;
    }

    /// Counts its end; whether it was the outermost.
    #[inline]
    pub(crate) fn leave(&mut self, function: FunctionId) -> bool {
        let depth = &mut self.depth[function.index()];
        *depth = depth.saturating_sub(1);
        *depth == 0
    }

    /// Whether it is running.
    pub(crate) fn is_in(&self, function: FunctionId) -> bool {
        self.depth[function.index()] > 0
    }

    /// When the outermost call began, of a function that is running.
    pub(crate) fn since(&self, function: FunctionId) -> u64 {
        self.since_ns[function.index()]
    }

    /// Says in a new lane what has been running since before it was claimed.
    pub(crate) fn tell(&self, words: &impl Words, lane: &mut Lane, core: Option<u16>) {
        for number in 0..FUNCTIONS as u8 {
            let Some(function) = FunctionId::new(number) else {
                continue;
            };
            if self.is_in(function) {
                let event = Event {
                    time_ns: self.since(function),
                    kind: Kind::Enter,
                    function,
                    core,
                };
                lane.record(words, &event);
            }
        }
    }
}
