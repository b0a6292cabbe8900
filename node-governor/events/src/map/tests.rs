// SPDX-License-Identifier: Apache-2.0
//! The unsafe code, as far as Miri can run it: it knows threads and what a processor may reorder, but neither files
//! in memory nor forks.

use std::thread;

use memmap2::MmapMut;

use super::*;
use crate::account::{Account, event};
use crate::lane::Lane;
use crate::layout::{Geometry, Header, Owner};
use crate::{Memory, Reader};

/// Of each thread: a few more than the lane keeps.
const EVENTS: u64 = 10;

/// In any order but for fences, as `pread`.
impl Memory for &Map {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        for (at, word) in (offset..).step_by(8).zip(buffer.as_chunks_mut().0) {
            *word = self.word(at).load(Ordering::Relaxed).to_le_bytes();
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        for (at, word) in (offset..).step_by(8).zip(bytes.as_chunks().0) {
            let word = u64::from_le_bytes(*word);
            self.word(at).store(word, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Writes events from this one on, and gives the lane back.
fn write(map: &Map, mut lane: Lane, first: u64) {
    (first..first + EVENTS).for_each(|number| lane.record(map, &event(number)));
    lane.release(map);
}

#[test]
fn two_threads_write_one_lane_in_turn_and_a_third_reads_it() {
    let geometry = Geometry::new(1, 16).unwrap();
    let bytes = geometry.file_bytes();
    let map = Map::over(MmapMut::map_anon(bytes as usize).unwrap().into());
    let header = Header {
        geometry,
        retired: false,
        created_unix_ms: 0,
    };
    (&map).write_at(0, &header.encode()).unwrap();
    let mut reader = Reader::over(&map, "a mapping", bytes).unwrap();
    let mut account = Account::default();
    let claim = |tid| Lane::claim(&map, geometry, Owner { pid: 1, tid });
    let first = claim(1).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| write(&map, first, 0));
        let second = scope.spawn(|| {
            let lane = loop {
                match claim(2) {
                    Some(lane) => break lane,
                    None => thread::yield_now(),
                }
            };
            write(&map, lane, EVENTS);
        });
        while !second.is_finished() {
            account.tick(&mut reader, 2 * EVENTS);
        }
    });
    account.settle(&mut reader, 2 * EVENTS);
}

#[test]
fn the_clock_does_not_go_back() {
    let before = now_ns();
    assert!(0 < before && before <= now_ns());
}
