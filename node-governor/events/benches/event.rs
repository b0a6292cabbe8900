// SPDX-License-Identifier: Apache-2.0
//! What an event costs the program, and a tick the governor.
//!
//! `cargo bench -p weir-events`

use std::fs::File;
use std::hint::black_box;

use divan::Bencher;
use divan::counter::ItemsCount;
use tempfile::TempDir;
use weir_events::{FunctionId, Geometry, Reader, Ring};

const SCORE: FunctionId = FunctionId::new(3).unwrap();

fn main() {
    divan::main();
}

fn now_ns() -> u64 {
    let now = nix::time::ClockId::CLOCK_MONOTONIC.now().unwrap();
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// In memory, as the governor's.
fn ring() -> (TempDir, Reader<File>, Ring) {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = directory.path().join("hot.events");
    let (reader, _) = Reader::create_or_adopt(&file, Geometry::default(), None).unwrap();
    let ring = Ring::attach(&file);
    (directory, reader, ring)
}

/// In one go, so that the first call, which claims a lane, does not count.
const TIMES: u32 = 1000;

fn enter_and_leave(bencher: Bencher, ring: &Ring, events: u32) {
    drop(ring.enter(SCORE));
    bencher
        .counter(ItemsCount::new(TIMES * events))
        .bench_local(|| {
            for _ in 0..TIMES {
                drop(black_box(ring.enter(SCORE)));
            }
        });
}

/// With the time and the core of each.
#[divan::bench]
fn two_thousand_events(bencher: Bencher) {
    let (_directory, _reader, ring) = ring();
    enter_and_leave(bencher, &ring, 2);
}

/// Calls within a call, which are no events.
#[divan::bench]
fn a_thousand_calls_within(bencher: Bencher) {
    let (_directory, _reader, ring) = ring();
    let _outer = ring.enter(SCORE);
    enter_and_leave(bencher, &ring, 1);
}

/// Without a governor.
#[divan::bench]
fn a_thousand_calls_without_a_file(bencher: Bencher) {
    let ring = Ring::attach_or("/nowhere", |_| ());
    enter_and_leave(bencher, &ring, 1);
}

/// A tick in which nothing is new.
#[divan::bench]
fn idle_tick(bencher: Bencher) {
    let (_directory, mut reader, _ring) = ring();
    bencher.bench_local(|| {
        reader.read(now_ns(), |lane| {
            black_box(lane.number);
        })
    });
}

/// A tick in which each of 64 threads has called so often, which is two events each.
#[divan::bench(args = [1, 16])]
fn tick_of_64_threads(bencher: Bencher, calls: u64) {
    let (_directory, mut reader, ring) = ring();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..64 {
            let (go, told) = std::sync::mpsc::channel::<std::sync::mpsc::Sender<()>>();
            let ring = &ring;
            scope.spawn(move || {
                for done in told {
                    for _ in 0..calls {
                        drop(ring.enter(SCORE));
                    }
                    let _ = done.send(());
                }
            });
            threads.push(go);
        }
        bencher
            .with_inputs(|| {
                let (done, all) = std::sync::mpsc::channel();
                for thread in &threads {
                    let _ = thread.send(done.clone());
                }
                drop(done);
                assert_eq!(all.iter().count(), 64);
            })
            .bench_local_values(|()| {
                let tick = reader.read(now_ns(), |lane| {
                    black_box(lane.since_ns);
                });
                assert_eq!(tick.unwrap().events, 64 * 2 * calls);
            });
    });
}
