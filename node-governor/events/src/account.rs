// SPDX-License-Identifier: Apache-2.0
//! What a reader has handed out of one lane, held against what its threads have written, which follows from an
//! event's number.

use crate::layout::{Event, FunctionId, Kind};
use crate::{Memory, Reader};

pub(crate) const FUNCTION: FunctionId = FunctionId::new(3).unwrap();
const NOW: u64 = 1 << 40;

/// The lane's event with this number: the function is entered by the even ones and left by the odd ones.
pub(crate) fn event(number: u64) -> Event {
    Event {
        time_ns: 1 + number,
        kind: match number % 2 {
            0 => Kind::Enter,
            _ => Kind::Leave,
        },
        function: FUNCTION,
        core: Some(number as u16),
    }
}

/// Since when the function runs after so many events.
pub(crate) fn since(written: u64) -> u64 {
    match written % 2 {
        0 => 0,
        _ => written,
    }
}

/// Of lane 0.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// Events that were handed out or counted as lost.
    events: u64,
}

impl Account {
    /// Reads what is new, while no more than `written` events can ever have been written.
    pub(crate) fn tick(&mut self, reader: &mut Reader<impl Memory>, written: u64) {
        let capacity = u64::from(reader.geometry().events_per_lane());
        let tick = reader.read(NOW, |lane| {
            let end = self.events + lane.events.len() as u64 + lane.lost;
            assert!(end <= written, "no event is handed out twice");
            let mut shown = lane.events.iter().peekable();
            for number in self.events..end {
                if shown.next_if(|shown| **shown == event(number)).is_none() {
                    let overwritten = number + capacity <= written;
                    assert!(overwritten, "event {number} is lost: {lane:?}");
                }
            }
            assert_eq!(shown.next(), None, "whole, and in order: {lane:?}");
            let runs = lane.since_ns[FUNCTION.index()];
            let is_current = (end..=written).any(|count| since(count) == runs);
            assert!(is_current, "what runs is as new as the events: {lane:?}");
            self.events = end;
        });
        let tick = tick.unwrap();
        assert_eq!((tick.future, tick.jumped), (0, 0));
    }

    /// After the last tick, with nothing written meanwhile.
    pub(crate) fn settle(&mut self, reader: &mut Reader<impl Memory>, written: u64) {
        self.tick(reader, written);
        assert_eq!(self.events, written, "each is handed out or counted");
    }
}
