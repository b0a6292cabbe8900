// SPDX-License-Identifier: Apache-2.0
//! Neither an event nor a tick takes memory from the heap.

use weir_events::{FunctionId, Geometry, Reader, Ring};

/// Allocations of this thread meanwhile.
fn allocations(work: impl FnOnce()) -> u64 {
    allocation_counter::measure(work).count_total
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
    // An optimiser leaves out what nobody looks at.
    let one = || drop(std::hint::black_box(vec![0_u8; 9]));
    assert!(allocations(one) > 0, "they are counted");

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
