// SPDX-License-Identifier: Apache-2.0
//! What a tick shows.

use crate::layout::{Event, FUNCTIONS, FunctionId, Owner};

/// One lane in one tick.
#[derive(Debug)]
pub struct Lane<'tick> {
    /// Its number, for [`Reader::free`](crate::Reader::free).
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
