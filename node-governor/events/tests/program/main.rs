// SPDX-License-Identifier: Apache-2.0
//! Programs with a ring, and a governor that reads it.

mod c;
mod file;
mod processes;
mod threads;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weir_events::{Event, FunctionId, Geometry, Kind, Opened, Owner, ReadError, Reader, Tick};

const SCORE: FunctionId = FunctionId::new(3).unwrap();
const MERGE: FunctionId = FunctionId::new(4).unwrap();

const LOCKED: &str = "another governor reads it";

/// Where the ring is.
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
        let mut opened = None;
        wait_until("the last reader's lock is gone", || {
            match Reader::create_or_adopt(&self.file, geometry, None) {
                // A process that another test is about to start has it until then.
                Err(ReadError::Refused { found, .. }) if found == LOCKED => {}
                other => opened = Some(other.unwrap()),
            }
            opened.is_some()
        });
        opened.unwrap()
    }
}

fn now_ns() -> u64 {
    let now = nix::time::ClockId::CLOCK_MONOTONIC.now().unwrap();
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// What one lane showed in one tick.
#[derive(Debug, Default)]
struct Seen {
    number: u32,
    owner: Option<Owner>,
    thread_started: u64,
    running: Vec<FunctionId>,
    since_ns: Vec<u64>,
    events: Vec<(Kind, FunctionId)>,
}

fn read(reader: &mut Reader<File>) -> (Tick, Vec<Seen>) {
    let mut seen = Vec::new();
    let tick = reader.read(now_ns(), |lane| {
        let event = |event: &Event| (event.kind, event.function);
        seen.push(Seen {
            number: lane.number,
            owner: lane.owner,
            thread_started: lane.thread_started,
            running: lane.running().map(|(function, _)| function).collect(),
            since_ns: lane.running().map(|(_, since)| since).collect(),
            events: lane.events.iter().map(event).collect(),
        });
    });
    (tick.unwrap(), seen)
}

/// Frees the lanes of threads that are no more, as the governor does.
fn free_dead(reader: &mut Reader<File>) -> usize {
    let (_, seen) = read(reader);
    let dead = seen.iter().filter_map(|lane| Some((lane, lane.owner?)));
    let dead = dead.filter(|(lane, owner)| {
        let stat = format!("/proc/{}/task/{}/stat", owner.pid, owner.tid);
        let stat = std::fs::read_to_string(stat).unwrap_or_default();
        let started = stat.rsplit(')').next().unwrap();
        let started = started.split_whitespace().nth(19);
        started.and_then(|started| started.parse().ok()) != Some(lane.thread_started)
    });
    dead.map(|(lane, owner)| reader.free(lane.number, owner, lane.thread_started))
        .filter(|freed| *freed.as_ref().unwrap())
        .count()
}

/// Until it is so; a program tries again once a second.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn word(file: &Path, offset: u64) -> u64 {
    use std::os::unix::fs::FileExt;
    let mut word = [0; 8];
    File::open(file)
        .unwrap()
        .read_exact_at(&mut word, offset)
        .unwrap();
    u64::from_le_bytes(word)
}
