// SPDX-License-Identifier: Apache-2.0
//! Real programs, watched by the real kernel. Where it does not allow that, each test says so loudly and passes.

#[path = "watch/lanes.rs"]
mod lanes;
#[path = "watch/program.rs"]
mod program;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use lanes::{Lane, lanes};
use program::{Running, cc};
use tempfile::TempDir;
use weir_uprobe::{Lanes, Memory, Probe, Uprobes};

const ENTER: u64 = 1;
const LEAVE: u64 = 2;
const LANES: Lanes = Lanes {
    lanes: 32,
    events_per_lane: 4096,
};

fn can_watch() -> bool {
    let can = weir_uprobe::doctor();
    if let Err(error) = &can {
        eprintln!("\n*** SKIPPED, NOTHING WAS TESTED: {error} ***\n");
    }
    can.is_ok()
}

fn probe(binary: &Path, symbol: &str, function: u8) -> Probe {
    Probe {
        function,
        binary: binary.to_owned(),
        symbol: symbol.to_owned(),
        process: None,
    }
}

fn attach(probes: &[Probe]) -> (Uprobes, Memory) {
    Uprobes::attach(probes, LANES).unwrap_or_else(|error| panic!("{error}"))
}

/// A C program of its own for each test: what others attach to is another file.
fn hot_c() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let binary = dir.path().join("hot");
    cc(&[], "hot.c", &binary);
    (dir, binary)
}

fn owned(memory: &Memory) -> Vec<Lane> {
    lanes(memory, LANES)
}

fn pairs(times: usize, function: u64) -> Vec<(u64, u64)> {
    [(ENTER, function), (LEAVE, function)].repeat(times)
}

#[test]
fn each_call_in_each_thread_is_seen_once() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (uprobes, memory) = attach(&[probe(&binary, "hot", 3)]);
    let mut program = Running::start(&binary);
    program.tell("calls 4 500");
    let seen = owned(&memory);
    assert_eq!(seen.len(), 4, "{:?}", uprobes.counts());
    for lane in &seen {
        assert_eq!(lane.process, program.id());
        assert_eq!(lane.kinds(), pairs(500, 3));
        assert!(lane.is_outside());
        assert!(lane.events.is_sorted_by_key(|(_, _, time)| *time));
        assert_eq!(lane.started, started(lane.process, lane.thread));
    }
}

/// Field 22 of `/proc/PID/task/TID/stat`.
fn started(process: u32, thread: u32) -> u64 {
    let stat =
        std::fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).expect("it runs");
    let after_name = stat.rsplit(')').next().expect("a name");
    after_name
        .split_whitespace()
        .nth(19)
        .and_then(|field| field.parse().ok())
        .expect("a number")
}
