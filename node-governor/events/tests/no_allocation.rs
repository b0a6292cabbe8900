// SPDX-License-Identifier: Apache-2.0
//! Neither an event nor a tick takes memory from the heap.

// Counting allocations takes an allocator, and that trait is unsafe.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use weir_events::{FunctionId, Geometry, Reader, Ring};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, which counts what each thread asks for.
struct Counting;

// SAFETY: every call goes on to the system's allocator unchanged; `dealloc` is all that is not counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often this thread asked for memory meanwhile.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn neither_an_event_nor_a_tick_takes_memory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hot.events");
    let geometry = Geometry::new(256, 64).unwrap();
    let (mut reader, _) = Reader::create_or_adopt(&file, geometry, None).unwrap();
    let ring = Ring::attach(&file);
    let function = FunctionId::new(0).unwrap();
    // The first claims a lane.
    drop(ring.enter(function));
    assert!(allocations(|| drop(vec![0_u8; 9])) > 0, "they are counted");

    let (mut events, mut lost) = (0, 0);
    for calls in [1, 10, 31, 32, 500] {
        let took = allocations(|| {
            for _ in 0..calls {
                drop(ring.enter(function));
            }
        });
        assert_eq!(took, 0);
        let took = allocations(|| {
            let tick = reader.read(1 << 62, |lane| events += lane.events.len());
            lost += tick.unwrap().lost;
        });
        assert_eq!(took, 0);
    }
    let free = allocations(|| {
        let nobody = weir_events::Owner { pid: 1, tid: 1 };
        assert!(!reader.free(0, nobody, 0).unwrap());
    });
    assert_eq!(free, 0);
    assert_eq!(events as u64 + lost, 2 * (1 + 1 + 10 + 31 + 32 + 500));
    assert!(lost > 0);
}
