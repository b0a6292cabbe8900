// SPDX-License-Identifier: Apache-2.0
//! A tick takes no memory from the heap: whatever the policy, with 64 cores that all have events.

// Counting allocations takes an allocator, and that trait is unsafe.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use kernel::Kernel;
use producer::Producer;
use weir_governor::run::Governor;
use weir_governor::sensed::Nanos;

// The other tests use the rest of them.
#[allow(dead_code)]
#[path = "governor/kernel.rs"]
mod kernel;
#[allow(dead_code)]
#[path = "governor/producer.rs"]
mod producer;

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

const CORES: u16 = 64;
const MS: u64 = 1_000_000;

#[test]
fn a_tick_allocates_nothing() {
    for policy in [
        "performance",
        "powersave",
        "ondemand",
        "two_state",
        "three_state",
        "multi_state",
        "iso_latency",
        "slow_to_fast",
        "adaptive",
    ] {
        assert_eq!(allocations(policy), 0, "{policy}");
    }
}

/// In two seconds, without what is done once a second.
fn allocations(policy: &str) -> u64 {
    let kernel = Kernel::without_processes(CORES.into());
    kernel.processes();
    let config = kernel.config(&format!("{{ {policy}: {{}} }}"));
    let mut governor = Governor::start(config, &kernel.root()).unwrap();
    let mut threads: Vec<Producer> = (0..CORES.into())
        .map(|number| {
            kernel.thread(number, 77, number);
            Producer::claim(&kernel, number, number, 77)
        })
        .collect();
    let start = 1_000_000 * MS;
    let mut counted = 0;
    for tick in 0..200 {
        let now = Nanos(start + tick * 10 * MS);
        for (core, thread) in threads.iter_mut().enumerate() {
            let core = Some(core as u16);
            match tick % 3 {
                0 => thread.enter(1, now, core),
                1 => thread.leave(1, now, core),
                _ => {}
            }
        }
        let before = ALLOCATIONS.get();
        governor.tick(now, false);
        // The others are what the first takes for good, and those that look at files once a second.
        if tick > 0 && tick % 100 != 0 {
            counted += ALLOCATIONS.get() - before;
        }
    }
    let book = governor.book().read();
    assert!(book.events.events > 8000, "{policy}: {:?}", book.events);
    counted
}
