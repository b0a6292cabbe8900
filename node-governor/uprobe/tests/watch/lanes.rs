// SPDX-License-Identifier: Apache-2.0
//! The lanes as a test wants to see them.

use weir_uprobe::{Lanes, Memory};

/// What a lane holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) started: u64,
    pub(crate) written: u64,
    pub(crate) since: [u64; 16],
    /// Those still there: kind, function, time.
    pub(crate) events: Vec<(u64, u64, u64)>,
}

impl Lane {
    pub(crate) fn is_outside(&self) -> bool {
        self.since == [0; 16]
    }

    pub(crate) fn kinds(&self) -> Vec<(u64, u64)> {
        self.events
            .iter()
            .map(|(kind, function, _)| (*kind, *function))
            .collect()
    }
}

/// Every lane that is owned.
pub(crate) fn lanes(memory: &Memory, laid_out: Lanes) -> Vec<Lane> {
    (0..laid_out.lanes.into())
        .map(|lane| read(memory, laid_out, lane))
        .filter(|lane| lane.thread != 0)
        .collect()
}

fn word(memory: &Memory, at: u64) -> u64 {
    let mut bytes = [0; 8];
    memory.read_at(at, &mut bytes).expect("within the memory");
    u64::from_ne_bytes(bytes)
}

fn read(memory: &Memory, laid_out: Lanes, lane: u64) -> Lane {
    let head = 4096 + lane * 256;
    let per_lane = u64::from(laid_out.events_per_lane);
    let events = 4096 + u64::from(laid_out.lanes) * 256 + lane * per_lane * 16;
    let owner = word(memory, head);
    let written = word(memory, head + 64);
    let kept = (written.saturating_sub(per_lane)..written).map(|number| {
        let at = events + number % per_lane * 16;
        let of = word(memory, at + 8);
        assert_eq!(of & 0xffff_ffff, number, "the event's own number");
        (of >> 32 & 0xff, of >> 40 & 0xff, word(memory, at))
    });
    Lane {
        process: owner as u32,
        thread: (owner >> 32) as u32,
        started: word(memory, head + 8),
        written,
        since: std::array::from_fn(|function| word(memory, head + 128 + function as u64 * 8)),
        events: kept.collect(),
    }
}
