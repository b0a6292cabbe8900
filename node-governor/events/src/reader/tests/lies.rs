// SPDX-License-Identifier: Apache-2.0
//! Memory that no producer of ours has written.

use std::cell::{Cell, RefCell};
use std::io;

use proptest::prelude::*;

use crate::Memory;
use crate::layout::{
    CORE, Event, FunctionId, Geometry, HEADER_BYTES, Kind, OWNER, Owner, SINCE_NS, WRITTEN,
};
use crate::reader::{Reader, Tick};

const NOW: u64 = 1 << 40;

struct Bytes {
    bytes: RefCell<Vec<u8>>,
    reads: Cell<usize>,
    read: Cell<usize>,
}

impl Bytes {
    fn new(geometry: Geometry) -> Bytes {
        let words = super::words(geometry).into_iter();
        let bytes = words.flat_map(u64::to_le_bytes).collect();
        Bytes {
            bytes: RefCell::new(bytes),
            reads: Cell::new(0),
            read: Cell::new(0),
        }
    }

    fn put(&self, offset: u64, word: u64) {
        self.write_at(offset, &word.to_le_bytes()).unwrap();
    }
}

impl Memory for &Bytes {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.reads.set(self.reads.get() + 1);
        self.read.set(self.read.get() + buffer.len());
        let bytes = self.bytes.borrow();
        let wanted = offset as usize..offset as usize + buffer.len();
        buffer.copy_from_slice(bytes.get(wanted).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let at = offset as usize;
        self.bytes.borrow_mut()[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

fn memory() -> (Geometry, Bytes) {
    let geometry = Geometry::new(2, 16).unwrap();
    let memory = Bytes::new(geometry);
    memory.put(geometry.head(0) + OWNER, Owner { pid: 1, tid: 2 }.word());
    (geometry, memory)
}

fn reader(memory: &Bytes) -> Reader<&Bytes> {
    let bytes = memory.bytes.borrow().len() as u64;
    Reader::over(memory, "lies", bytes).unwrap()
}

#[test]
fn times_in_the_future_are_taken_as_now_and_counted() {
    let (geometry, memory) = memory();
    let mut reader = reader(&memory);
    memory.put(geometry.since(0, 0), NOW + 10_000_000_000);
    // A producer may write while a tick is read: that is no lie.
    memory.put(geometry.since(0, 1), NOW + 10_000);
    let event = Event {
        time_ns: u64::MAX,
        kind: Kind::Enter,
        function: FunctionId::new(0).unwrap(),
        core: None,
    };
    let [time, word] = event.encode(0);
    memory.put(geometry.event(0, 0), time);
    memory.put(geometry.event(0, 0) + 8, word);
    memory.put(geometry.head(0) + WRITTEN, 1);
    let tick = reader.read(NOW, |lane| {
        assert_eq!(lane.since_ns[..3], [NOW, NOW, 0]);
        assert_eq!(
            lane.events,
            [Event {
                time_ns: NOW,
                ..event
            }]
        );
    });
    assert_eq!(tick.unwrap().future, 2);
}

#[test]
fn a_count_that_jumps_is_read_on_from_where_it_is() {
    let (geometry, memory) = memory();
    let mut reader = reader(&memory);
    let mut after = |written: u64| {
        memory.put(geometry.head(0) + WRITTEN, written);
        let tick = reader.read(NOW, |lane| assert!(lane.events.is_empty()));
        let Tick {
            events,
            lost,
            jumped,
            ..
        } = tick.unwrap();
        (events, lost, jumped)
    };
    assert_eq!(after(100), (0, 100, 0), "no slot has such an event");
    assert_eq!(after(40), (0, 0, 1));
    assert_eq!(after(41), (0, 1, 0));
    assert_eq!(after(u64::MAX), (0, 0, 1));
    assert_eq!(after(1), (0, 0, 1));
}

#[test]
fn a_kind_or_function_of_another_version_is_lost() {
    let (geometry, memory) = memory();
    let mut reader = reader(&memory);
    memory.put(geometry.event(0, 0) + 8, 3 << 32);
    memory.put(geometry.event(0, 1) + 8, 1 | 1 << 32 | 16 << 40);
    memory.put(geometry.head(0) + WRITTEN, 2);
    let tick = reader.read(NOW, |_| ()).unwrap();
    assert_eq!((tick.events, tick.lost), (0, 2));
}

#[test]
fn a_lane_that_is_not_the_dead_threads_any_more_is_not_freed() {
    let (geometry, memory) = memory();
    let mut reader = reader(&memory);
    memory.put(geometry.since(0, 5), 9);
    let (owner, other) = (Owner { pid: 1, tid: 2 }, Owner { pid: 1, tid: 3 });
    assert!(!reader.free(0, other, 0).unwrap());
    assert!(
        !reader.free(0, owner, 1).unwrap(),
        "the same id, started at another time"
    );
    assert!(!reader.free(2, owner, 0).unwrap(), "no such lane");
    assert!(reader.free(0, owner, 0).unwrap());
    let zeros = [0; 8];
    for offset in [OWNER, SINCE_NS + 40] {
        let mut word = [1; 8];
        (&memory)
            .read_at(geometry.head(0) + offset, &mut word)
            .unwrap();
        assert_eq!(word, zeros);
    }
    assert!(!reader.free(0, owner, 0).unwrap(), "it is free");
}

fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => any::<u64>(),
        2 => 0..300_u64,
        // An event with a number that may be right.
        4 => (0..300_u64, 0..4_u64, 0..20_u64).prop_map(|(n, kind, f)| n | kind << 32 | f << 40),
        1 => Just(u64::MAX),
        1 => Just(NOW),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_are_read_without_a_panic_and_in_bounded_time(
        (lanes, events) in (1..6_u32, 4..7_u32),
        ticks in proptest::collection::vec(proptest::collection::vec((any::<u32>(), word()), 0..400), 1..6),
    ) {
        let geometry = Geometry::new(lanes, 1 << events).unwrap();
        let memory = Bytes::new(geometry);
        let mut reader = reader(&memory);
        let words = ((geometry.file_bytes() - HEADER_BYTES) / 8) as u32;
        for tick in ticks {
            for (at, word) in tick {
                // Half of them in the heads.
                let at = if at & 1 == 0 { at % words } else { at % (lanes * 32) };
                memory.put(HEADER_BYTES + 8 * u64::from(at), word);
            }
            memory.reads.set(0);
            memory.read.set(0);
            let mut shown = 0;
            let tick = reader.read(NOW, |lane| {
                shown += lane.events.len() as u64;
                assert!(lane.number < lanes);
                assert!(lane.events.len() <= 1 << events);
                assert!(lane.since_ns.iter().all(|since| *since <= NOW));
            }).unwrap();
            prop_assert_eq!(tick.events, shown);
            prop_assert!(tick.claimed <= lanes);
            prop_assert!(memory.reads.get() <= 1 + 2 * lanes as usize);
            prop_assert!(memory.read.get() as u64 <= geometry.file_bytes() + u64::from(lanes) * 256);
        }
    }
}

#[test]
fn memory_that_has_become_shorter_is_an_error() {
    let (geometry, memory) = memory();
    let mut reader = reader(&memory);
    memory.put(geometry.head(0) + CORE, 3);
    memory
        .bytes
        .borrow_mut()
        .truncate(geometry.event(0, 0) as usize);
    assert_eq!(
        reader.read(NOW, |_| ()).unwrap().claimed,
        1,
        "no event is looked for"
    );
    memory.put(geometry.head(0) + WRITTEN, 1);
    let error = reader.read(NOW, |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("lies: "), "{error}");
}
