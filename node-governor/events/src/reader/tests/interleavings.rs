// SPDX-License-Identifier: Apache-2.0
//! Every interleaving of a few stores with a few loads, and every order in which a processor may show the stores to
//! another: by loom. The reader's loads have no order but that of its fences, as those of the kernel in `pread`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use loom::model::Builder;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

use crate::Memory;
use crate::account::{Account, FUNCTION, event, since};
use crate::lane::Lane;
use crate::layout::{CORE, Geometry, OWNER, Owner, PID_NAMESPACE, THREAD_STARTED, WRITTEN};
use crate::reader::Reader;
use crate::words::{CLAIM, LOAD, STORE, Words};

const FIRST: Owner = Owner { pid: 1, tid: 2 };
const SECOND: Owner = Owner { pid: 1, tid: 3 };
const NAMESPACE: u64 = 4;

/// Before there is more than one thread.
struct Still(RefCell<Vec<u64>>);

impl Words for Still {
    fn load(&self, offset: u64) -> u64 {
        self.0.borrow()[offset as usize / 8]
    }

    fn store(&self, offset: u64, word: u64) {
        self.0.borrow_mut()[offset as usize / 8] = word;
    }

    fn claim(&self, offset: u64, word: u64) -> bool {
        self.store(offset, word);
        true
    }
}

/// One lane, of which loom watches the words that change: each costs it time.
struct Shared {
    geometry: Geometry,
    still: Vec<u64>,
    watched: BTreeMap<u64, AtomicU64>,
}

impl Shared {
    /// After the first thread has claimed the lane and written so many events; some more are to come.
    fn new(written: u64, more: u64) -> (Arc<Shared>, Lane) {
        let geometry = Geometry::new(1, 16).unwrap();
        let still = Still(RefCell::new(super::words(geometry)));
        let mut lane = Lane::claim(&still, geometry, FIRST).unwrap();
        lane.introduce(&still, started(FIRST), NAMESPACE);
        (0..written).for_each(|number| lane.record(&still, &event(number)));

        let head = [OWNER, THREAD_STARTED, PID_NAMESPACE, WRITTEN, CORE];
        let head = head.map(|word| geometry.head(0) + word);
        let since = geometry.since(0, FUNCTION.index());
        let slots = (written..written + more).map(|number| geometry.event(0, number));
        let still = still.0.into_inner();
        let watched = slots
            .flat_map(|slot| [slot, slot + 8])
            .chain(head)
            .chain([since])
            .map(|offset| (offset, AtomicU64::new(still[offset as usize / 8])))
            .collect();
        let shared = Shared {
            geometry,
            still,
            watched,
        };
        (Arc::new(shared), lane)
    }

    /// With none of the lane's events accounted for.
    fn reader(self: &Arc<Self>) -> Reader<Arc<Shared>> {
        let bytes = self.geometry.file_bytes();
        let mut reader = Reader::over(Arc::clone(self), "a model", bytes).unwrap();
        reader.read[0] = 0;
        reader
    }

    fn head(&self, word: u64) -> u64 {
        self.relaxed(self.geometry.head(0) + word)
    }

    fn since(&self) -> u64 {
        self.relaxed(self.geometry.since(0, FUNCTION.index()))
    }

    fn relaxed(&self, offset: u64) -> u64 {
        match self.watched.get(&offset) {
            Some(word) => word.load(Ordering::Relaxed),
            None => self.still[offset as usize / 8],
        }
    }

    fn put(&self, offset: u64, word: u64, ordering: Ordering) {
        match self.watched.get(&offset) {
            Some(watched) => watched.store(word, ordering),
            None => assert_eq!(word, self.still[offset as usize / 8], "it is not watched"),
        }
    }
}

impl Words for Shared {
    fn load(&self, offset: u64) -> u64 {
        self.watched[&offset].load(LOAD)
    }

    fn store(&self, offset: u64, word: u64) {
        self.put(offset, word, STORE);
    }

    fn claim(&self, offset: u64, word: u64) -> bool {
        self.watched[&offset]
            .compare_exchange(0, word, CLAIM, Ordering::Relaxed)
            .is_ok()
    }
}

impl Memory for Arc<Shared> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        for (at, word) in (offset..).step_by(8).zip(buffer.as_chunks_mut().0) {
            *word = self.relaxed(at).to_le_bytes();
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        for (at, word) in (offset..).step_by(8).zip(bytes.as_chunks().0) {
            self.put(at, u64::from_le_bytes(*word), Ordering::Relaxed);
        }
        Ok(())
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

fn started(owner: Owner) -> u64 {
    100 + u64::from(owner.tid)
}

/// The lane, if it is free, with the event that follows there.
fn claim_and_record(memory: &Shared, number: u64) {
    if let Some(mut lane) = Lane::claim(memory, memory.geometry, SECOND) {
        lane.introduce(memory, started(SECOND), NAMESPACE);
        lane.record(memory, &event(number));
    }
}

/// Interleavings with so many preemptions at the most, which are hundreds of thousands by night.
fn check(by_day: usize, by_night: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = match weir_needs::is_nightly() {
        false => Some(by_day),
        true => by_night,
    };
    builder.check(model);
}

/// The ring is full but for one slot, and nothing of it read: the second event overwrites the oldest.
#[test]
fn an_event_that_is_overwritten_meanwhile_is_lost_and_no_other() {
    check(3, None, || {
        let (written, all) = (15, 17);
        let (memory, mut lane) = Shared::new(written, all - written);
        let mut reader = memory.reader();
        let writer = thread::spawn(move || {
            (written..all).for_each(|number| lane.record(&*memory, &event(number)));
        });
        let mut account = Account::default();
        account.tick(&mut reader, all);
        writer.join().unwrap();
        account.settle(&mut reader, all);
    });
}

#[test]
fn a_lane_that_changes_hands_goes_on_with_the_next_event() {
    check(1, Some(2), || {
        let (memory, mut lane) = Shared::new(1, 2);
        let mut reader = memory.reader();
        let first = thread::spawn({
            let memory = Arc::clone(&memory);
            move || {
                lane.record(&*memory, &event(1));
                lane.release(&*memory);
            }
        });
        let second = thread::spawn({
            let memory = Arc::clone(&memory);
            move || claim_and_record(&memory, 2)
        });
        let mut account = Account::default();
        account.tick(&mut reader, 3);
        first.join().unwrap();
        second.join().unwrap();
        settle(&memory, &mut account, &mut reader, 2);
    });
}

/// The first thread was killed in the function.
#[test]
fn a_lane_that_is_freed_is_the_next_owners_alone() {
    check(3, None, || {
        let (memory, _) = Shared::new(1, 1);
        let mut reader = memory.reader();
        let second = thread::spawn({
            let memory = Arc::clone(&memory);
            move || claim_and_record(&memory, 1)
        });
        assert!(reader.free(0, FIRST, started(FIRST)).unwrap());
        let mut account = Account::default();
        account.tick(&mut reader, 2);
        second.join().unwrap();
        settle(&memory, &mut account, &mut reader, 1);
    });
}

/// The lane is free after so many events, or the second thread has claimed it and written another.
fn settle(
    memory: &Arc<Shared>,
    account: &mut Account,
    reader: &mut Reader<Arc<Shared>>,
    written: u64,
) {
    let (owner, started, namespace, written, since) = match memory.head(OWNER) {
        0 => (0, 0, 0, written, 0),
        _ => (
            SECOND.word(),
            started(SECOND),
            NAMESPACE,
            written + 1,
            since(written + 1),
        ),
    };
    assert_eq!(memory.head(OWNER), owner);
    assert_eq!(memory.head(THREAD_STARTED), started);
    assert_eq!(memory.head(PID_NAMESPACE), namespace);
    assert_eq!(memory.head(WRITTEN), written);
    assert_eq!(memory.since(), since);
    account.settle(reader, written);
}
