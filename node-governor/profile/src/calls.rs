// SPDX-License-Identifier: Apache-2.0
//! Calls of observed functions, from what their threads write into a ring.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use weir_events::layout::FUNCTIONS;
use weir_events::{Geometry, Kind, Lane, Memory, Reader};

use crate::Error;

/// Threads at once, and events of each between two looks.
const LANES: u32 = 256;
const EVENTS_PER_LANE: u32 = 4096;
/// Between two looks at the events.
pub(crate) const LOOK: Duration = Duration::from_millis(10);

/// Of a ring for what is observed.
pub(crate) fn geometry() -> Geometry {
    Geometry::new(LANES, EVENTS_PER_LANE).expect("they are powers of two")
}

/// Of one function: calls that ended while it was observed.
#[derive(Clone, Debug)]
pub struct Calls {
    /// In microseconds, rounded up; two digits are what a choice needs.
    took: Histogram<u64>,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            took: Histogram::new(2).expect("0 to 5 digits are allowed"),
        }
    }
}

impl Calls {
    /// One more.
    pub fn add(&mut self, took: Duration) {
        let us = took.as_nanos().div_ceil(1000);
        // It grows as far as a u64 goes.
        let _ = self.took.record(u64::try_from(us).unwrap_or(u64::MAX));
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.took.len()
    }

    /// On average.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.took.mean() / 1e6)
    }

    /// Of all calls this share took no longer.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_micros(self.took.value_at_quantile(share))
    }
}

/// Counts by function.
#[derive(Debug)]
pub(crate) struct Counter {
    functions: Vec<Calls>,
    /// When a lane's thread entered a function.
    since: HashMap<(u32, usize), u64>,
    /// Events that were written and could not be read.
    pub(crate) lost: u64,
}

impl Counter {
    pub(crate) fn new() -> Self {
        Self {
            functions: vec![Calls::default(); FUNCTIONS],
            since: HashMap::new(),
            lost: 0,
        }
    }

    /// Reads a ring for so long; `between` is done at each look.
    pub(crate) fn watch<M: Memory>(
        &mut self,
        reader: &mut Reader<M>,
        time: Duration,
        mut between: impl FnMut(),
    ) -> Result<(), Error> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            std::thread::sleep(LOOK);
            between();
            reader.read(now_ns(), |lane| self.see(lane))?;
        }
        Ok(())
    }

    /// What is new in a lane.
    fn see(&mut self, lane: &Lane<'_>) {
        if lane.lost > 0 {
            self.lost = self.lost.saturating_add(lane.lost);
            // Which entry a leave belongs to is not known any more.
            self.since.retain(|(number, _), _| *number != lane.number);
        }
        for event in lane.events {
            let key = (lane.number, event.function.index());
            match event.kind {
                Kind::Enter => {
                    self.since.insert(key, event.time_ns);
                }
                Kind::Leave => {
                    let Some(since) = self.since.remove(&key) else {
                        continue;
                    };
                    let took = Duration::from_nanos(event.time_ns.saturating_sub(since));
                    if let Some(calls) = self.functions.get_mut(key.1) {
                        calls.add(took);
                    }
                }
            }
        }
    }

    /// By function.
    pub(crate) fn calls(self) -> Vec<Calls> {
        self.functions
    }
}

/// `CLOCK_MONOTONIC`, as events have it.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use weir_events::{Event, FunctionId};

    use super::*;

    fn event(kind: Kind, function: u8, time_ns: u64) -> Event {
        Event {
            time_ns,
            kind,
            function: FunctionId::new(function).expect("there is one"),
            core: None,
        }
    }

    fn see(counter: &mut Counter, number: u32, lost: u64, events: &[Event]) {
        counter.see(&Lane {
            number,
            owner: None,
            thread_started: 0,
            pid_namespace: 0,
            core: None,
            since_ns: [0; FUNCTIONS],
            events,
            lost,
        });
    }

    #[test]
    fn a_call_is_from_its_entry_to_its_end_in_one_lane() {
        let mut counter = Counter::new();
        see(
            &mut counter,
            0,
            0,
            &[event(Kind::Leave, 3, 500), event(Kind::Enter, 3, 1_000)],
        );
        see(&mut counter, 1, 0, &[event(Kind::Enter, 3, 2_000)]);
        see(
            &mut counter,
            0,
            0,
            &[event(Kind::Enter, 4, 2_000), event(Kind::Leave, 3, 9_000)],
        );
        see(&mut counter, 1, 0, &[event(Kind::Leave, 3, 3_000)]);
        let calls = counter.calls();
        assert_eq!(calls[3].count(), 2, "one began before it was observed");
        assert_eq!(calls[4].count(), 0, "it goes on");
        assert_eq!(calls[3].quantile(1.0), Duration::from_micros(8));
        assert_eq!(calls[3].mean(), Duration::from_nanos(4_500));
    }

    #[test]
    fn after_a_gap_no_end_belongs_to_an_entry_before_it() {
        let mut counter = Counter::new();
        see(&mut counter, 0, 0, &[event(Kind::Enter, 0, 1)]);
        see(&mut counter, 0, 5, &[event(Kind::Leave, 0, 900_000)]);
        assert_eq!(counter.lost, 5);
        assert_eq!(counter.calls()[0].count(), 0);
    }
}
