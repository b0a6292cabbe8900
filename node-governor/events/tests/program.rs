// SPDX-License-Identifier: Apache-2.0
//! A program with a ring, and a governor that reads it.

use std::fs::File;
use std::path::PathBuf;

use tempfile::TempDir;
use weir_events::{Event, FunctionId, Geometry, Kind, Opened, Owner, Reader, Ring, Tick};

const SCORE: FunctionId = FunctionId::new(3).unwrap();
const MERGE: FunctionId = FunctionId::new(4).unwrap();

struct Place {
    _directory: TempDir,
    file: PathBuf,
}

fn place() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("weir").join("hot.events");
    Place {
        _directory: directory,
        file,
    }
}

impl Place {
    fn reader(&self) -> Reader<File> {
        self.opened(Geometry::default()).0
    }

    fn opened(&self, geometry: Geometry) -> (Reader<File>, Opened) {
        Reader::create_or_adopt(&self.file, geometry, None).unwrap()
    }
}

fn now_ns() -> u64 {
    let now = nix::time::ClockId::CLOCK_MONOTONIC.now().unwrap();
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// What one lane showed in one tick.
#[derive(Debug, Default)]
struct Seen {
    owner: Option<Owner>,
    thread_started: u64,
    running: Vec<FunctionId>,
    events: Vec<(Kind, FunctionId)>,
}

fn read(reader: &mut Reader<File>) -> (Tick, Vec<Seen>) {
    let mut seen = Vec::new();
    let tick = reader.read(now_ns(), |lane| {
        let event = |event: &Event| (event.kind, event.function);
        seen.push(Seen {
            owner: lane.owner,
            thread_started: lane.thread_started,
            running: lane.running().map(|(function, _)| function).collect(),
            events: lane.events.iter().map(event).collect(),
        });
    });
    (tick.unwrap(), seen)
}

#[test]
fn a_thread_in_a_hot_function_is_seen_until_it_leaves() {
    let place = place();
    let mut reader = place.reader();
    let ring = Ring::attach(&place.file);

    let hot = ring.enter(SCORE);
    let (tick, seen) = read(&mut reader);
    assert_eq!((tick.claimed, tick.events, tick.lost), (1, 1, 0));
    assert_eq!(seen[0].running, [SCORE]);
    let pid = std::process::id();
    assert_eq!(seen[0].owner.map(|owner| owner.pid), Some(pid));
    assert!(seen[0].thread_started > 0);

    drop(hot);
    let (_, seen) = read(&mut reader);
    assert_eq!(seen[0].running, []);
    assert_eq!(seen[0].events, [(Kind::Leave, SCORE)]);
}

#[test]
fn recursion_is_one_call_and_another_function_is_not() {
    let place = place();
    let mut reader = place.reader();
    let ring = Ring::attach(&place.file);
    {
        let _outer = ring.enter(SCORE);
        let _inner = ring.enter(SCORE);
        let _other = ring.enter(MERGE);
    }
    let (_, seen) = read(&mut reader);
    use Kind::{Enter, Leave};
    let expected = [
        (Enter, SCORE),
        (Enter, MERGE),
        (Leave, MERGE),
        (Leave, SCORE),
    ];
    assert_eq!(seen[0].events, expected);
}
