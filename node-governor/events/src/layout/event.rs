// SPDX-License-Identifier: Apache-2.0
//! One event: a thread has entered a hot function, or left it.

use super::FUNCTIONS;

/// In an event: the producer does not know the core.
const UNKNOWN_CORE: u16 = u16::MAX;

/// Which hot function: 0 to 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(u8);

impl FunctionId {
    /// `None` from 16 on.
    pub const fn new(number: u8) -> Option<FunctionId> {
        if (number as usize) < FUNCTIONS {
            Some(FunctionId(number))
        } else {
            None
        }
    }

    /// 0 to 15.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The outermost call began.
    Enter = 1,
    /// The outermost call ended.
    Leave = 2,
}

/// A thread has entered a hot function, or left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// What happened.
    pub kind: Kind,
    /// To which function.
    pub function: FunctionId,
    /// Where, if the producer knows.
    pub core: Option<u16>,
}

impl Event {
    /// The two words of the event with this number, which is what the lane had written before it.
    #[inline]
    pub fn encode(&self, number: u64) -> [u64; 2] {
        let core = u64::from(self.core.unwrap_or(UNKNOWN_CORE));
        let kind = self.kind as u64;
        let function = u64::from(self.function.0);
        let word = number & u64::from(u32::MAX) | kind << 32 | function << 40 | core << 48;
        [self.time_ns, word]
    }

    /// `None` for a kind or a function that this version does not have.
    pub fn decode([time_ns, word]: [u64; 2]) -> Option<Event> {
        let core = (word >> 48) as u16;
        Some(Event {
            time_ns,
            kind: match (word >> 32) as u8 {
                1 => Kind::Enter,
                2 => Kind::Leave,
                _ => return None,
            },
            function: FunctionId::new((word >> 40) as u8)?,
            core: (core != UNKNOWN_CORE).then_some(core),
        })
    }
}

/// The low bits of the number of the event with this word.
pub const fn event_number(word: u64) -> u32 {
    word as u32
}
