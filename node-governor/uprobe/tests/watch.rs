// SPDX-License-Identifier: Apache-2.0
//! Real programs, watched by the real kernel. Where it does not allow that, each test says so loudly and passes.

#[path = "watch/lanes.rs"]
mod lanes;
#[path = "watch/program.rs"]
mod program;

use std::io::Write;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lanes::{Lane, lanes};
use program::{Running, cc};
use tempfile::TempDir;
use weir_uprobe::{Change, Lanes, Memory, Probe, Uprobes};

const ENTER: u64 = 1;
const LEAVE: u64 = 2;
const LANES: Lanes = Lanes {
    lanes: 32,
    events_per_lane: 4096,
};

fn can_watch() -> bool {
    let can = weir_uprobe::doctor();
    if let Err(error) = &can {
        // Not by `eprintln`, which is shown for tests that fail only.
        let _ = writeln!(
            std::io::stderr(),
            "\n*** SKIPPED, NOTHING WAS TESTED: {error} ***\n"
        );
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

fn attach(probes: &[Probe]) -> (Uprobes, Arc<Memory>) {
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

#[test]
fn a_call_of_itself_is_one_call_however_deep() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (_uprobes, memory) = attach(&[probe(&binary, "hot", 0)]);
    let mut program = Running::start(&binary);
    program.tell("recurse 3");
    // Deeper than the kernel follows returns.
    program.tell("recurse 100");
    program.tell("recurse 0");
    let [lane] = &owned(&memory)[..] else {
        panic!("one thread");
    };
    assert_eq!(lane.kinds(), pairs(3, 0));
    assert!(lane.is_outside());
}

#[test]
fn a_call_that_was_jumped_out_of_is_over_at_the_next_event() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (uprobes, memory) = attach(&[probe(&binary, "jumper", 0), probe(&binary, "main", 1)]);
    let mut program = Running::start(&binary);
    // A jump out of more than 64 calls ends what the kernel knows of this thread's returns.
    for depth in [0, 5, 60] {
        program.tell(&format!("jump {depth}"));
    }
    program.tell("return 1");
    let [lane] = &owned(&memory)[..] else {
        panic!("one thread");
    };
    let whole_program = [(ENTER, 1)].into_iter().chain(pairs(4, 0));
    assert_eq!(lane.kinds(), whole_program.collect::<Vec<_>>());
    assert_eq!(lane.since[0], 0);
    assert_ne!(lane.since[1], 0, "main has not returned");
    assert_eq!(uprobes.counts().ended_by_stack, 3);
}

#[test]
fn a_call_that_was_jumped_out_of_does_not_hide_calls_from_further_down() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (_uprobes, memory) = attach(&[probe(&binary, "jumper", 0)]);
    let mut program = Running::start(&binary);
    program.tell("jump 0");
    program.tell("below 3");
    let seen = owned(&memory);
    assert_eq!(seen[0].kinds(), pairs(4, 0));
    assert!(seen[0].is_outside());
}

#[test]
fn a_call_that_was_jumped_out_of_is_over_soon_also_without_an_event() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (mut uprobes, memory) = attach(&[probe(&binary, "jumper", 0), probe(&binary, "main", 1)]);
    let mut program = Running::start(&binary);
    for depth in [0, 100] {
        program.tell(&format!("jump {depth}"));
        assert_ne!(owned(&memory)[0].since[0], 0);
        wait(|| {
            uprobes.refresh();
            Some(()).filter(|()| owned(&memory)[0].since[0] == 0)
        });
        assert_ne!(owned(&memory)[0].since[1], 0, "main has not returned");
    }
    program.tell("return 1");
    assert_eq!(owned(&memory)[0].kinds().len(), 4);
}

#[test]
fn a_thread_that_is_inside_says_since_when_until_it_is_killed() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (_uprobes, memory) = attach(&[probe(&binary, "stayer", 7)]);
    let mut program = Running::start(&binary);
    program.tell("stay");
    let [lane] = &owned(&memory)[..] else {
        panic!("one thread");
    };
    assert_eq!(lane.kinds(), [(ENTER, 7)]);
    assert_eq!(lane.since[7], lane.events[0].2);
    program.kill();
    assert_eq!(owned(&memory), []);
}

#[test]
fn a_program_that_is_started_again_is_watched_again() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (_uprobes, memory) = attach(&[probe(&binary, "hot", 0)]);
    for _ in 0..5 {
        let mut program = Running::start(&binary);
        program.tell("calls 2 10");
        let seen = owned(&memory);
        assert_eq!(seen.len(), 2);
        for lane in seen {
            assert_eq!((lane.process, lane.kinds()), (program.id(), pairs(10, 0)));
        }
        program.kill();
        assert_eq!(owned(&memory), []);
    }
}

#[test]
fn a_program_that_runs_already_is_watched_from_then_on() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let mut program = Running::start(&binary);
    program.tell("calls 1 10");
    let (uprobes, memory) = attach(&[probe(&binary, "hot", 0)]);
    program.tell("calls 2 10");
    assert_eq!(owned(&memory).len(), 2);
    drop(uprobes);
    program.tell("calls 2 10");
    assert_eq!(owned(&memory).len(), 2);
}

#[test]
fn threads_that_come_and_go_leave_their_lanes_to_others() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (uprobes, memory) = attach(&[probe(&binary, "hot", 0)]);
    let mut program = Running::start(&binary);
    program.tell("short 500 2");
    assert_eq!(owned(&memory), []);
    assert_eq!(uprobes.counts().no_lane, 0);
}

#[test]
fn threads_beyond_the_lanes_are_counted_and_run_on() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (uprobes, memory) = attach(&[probe(&binary, "hot", 0)]);
    let mut program = Running::start(&binary);
    program.tell("calls 40 3");
    assert_eq!(owned(&memory).len(), 32);
    assert_eq!(uprobes.counts().no_lane, 8 * 3);
}

#[test]
fn another_process_of_the_same_file_is_left_out_where_one_is_named() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (mut other, mut named) = (Running::start(&binary), Running::start(&binary));
    let probe = Probe {
        process: NonZeroU32::new(named.id()),
        ..probe(&binary, "hot", 0)
    };
    let (_uprobes, memory) = attach(&[probe]);
    other.tell("calls 2 10");
    named.tell("calls 3 10");
    other.tell("recurse 3");
    let seen = owned(&memory);
    assert_eq!(seen.len(), 3);
    assert!(
        seen.iter()
            .all(|lane| lane.process == named.id() && lane.kinds() == pairs(10, 0))
    );
}

#[test]
fn a_function_of_a_library_is_watched_in_programs_that_load_it() {
    if !can_watch() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (library, binary) = (dir.path().join("libhot.so"), dir.path().join("hot"));
    cc(&["-shared", "-fPIC"], "library.c", &library);
    let path = library.display().to_string();
    cc(&["-DIN_LIBRARY", &path], "hot.c", &binary);
    let (_uprobes, memory) = attach(&[probe(&library, "hot", 0)]);
    let mut program = Running::start(&binary);
    program.tell("calls 2 50");
    let seen = owned(&memory);
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|lane| lane.kinds() == pairs(50, 0)));
}

#[test]
fn programs_that_are_not_relocated_and_functions_that_are_not_exported_are_watched_too() {
    if !can_watch() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let binary = dir.path().join("hot");
    cc(&["-no-pie", "-static", "-DHIDDEN"], "hot.c", &binary);
    let (_uprobes, memory) = attach(&[probe(&binary, "hot", 0)]);
    let mut program = Running::start(&binary);
    program.tell("calls 2 50");
    let seen = owned(&memory);
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|lane| lane.kinds() == pairs(50, 0)));
}

#[test]
fn a_function_of_rust_is_found_by_the_name_that_rust_gives_it() {
    if !can_watch() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let binary = dir.path().join("hot");
    program::rustc(&["-O"], "hot.rs", &binary);
    let (uprobes, memory) = attach(&[probe(&binary, "hot::search::evaluate", 0)]);
    let (_, site) = uprobes.sites().next().expect("one");
    assert!(site.name.starts_with('_'), "{site:?}");
    let mut program = Running::start(&binary);
    program.tell("calls 3 50");
    let seen = owned(&memory);
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|lane| lane.kinds() == pairs(50, 0)));
}

#[test]
fn a_file_that_was_replaced_is_watched_anew() {
    if !can_watch() {
        return;
    }
    let (dir, binary) = hot_c();
    let (mut uprobes, memory) = attach(&[probe(&binary, "hot", 0)]);
    let mut old = Running::start(&binary);
    let next = dir.path().join("next");
    cc(&["-O0"], "hot.c", &next);
    std::fs::rename(&next, &binary).expect("one file system");
    let changes = wait(|| Some(uprobes.refresh()).filter(|changes| !changes.is_empty()));
    assert!(matches!(changes[..], [Change::Replaced(_)]), "{changes:?}");
    let mut new = Running::start(&binary);
    new.tell("calls 2 10");
    old.tell("calls 1 10");
    let mut processes = owned(&memory)
        .iter()
        .map(|lane| lane.process)
        .collect::<Vec<_>>();
    processes.sort_unstable();
    let mut wanted = [new.id(), new.id(), old.id()];
    wanted.sort_unstable();
    assert_eq!(processes, wanted);
    // What comes next has no such function.
    std::fs::copy("/bin/true", &next).expect("a file");
    std::fs::rename(&next, &binary).expect("one file system");
    let changes = wait(|| Some(uprobes.refresh()).filter(|changes| !changes.is_empty()));
    assert!(matches!(changes[..], [Change::Lost(_)]), "{changes:?}");
}

/// Asks until there is an answer.
fn wait<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(answer) = ask() {
            return answer;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("no answer in half a minute");
}
