// SPDX-License-Identifier: Apache-2.0
//! A decision takes no memory from the heap, whatever it decides.

// Counting allocations takes an allocator, and that trait is unsafe.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use weir_policy::{
    CacheShard, Cluster, Host, HostId, HostState, KeyHash, Keys, Level, Load, Outcome, Overload,
    Policy, Rank, Request, Selection, Table,
};

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

const NOW: Duration = Duration::from_secs(1000);

fn address(host: usize) -> String {
    format!("10.0.{}.{}:9000", 100 + host / 100, 100 + host % 100)
}

/// 1,000 hosts of which one of `open` admits; key 1 is cached at two of them.
fn cluster(selection: Selection, open: usize) -> Cluster {
    let host = |number| Host {
        address: address(number),
        state: HostState::Up,
        load: Some(Load {
            observed: NOW,
            in_progress: number as u32 % 7,
            ..Load::default()
        }),
        level: if number % open == 0 {
            Level::ALL
        } else {
            Level::NONE
        },
        capacity_millicores: 0,
        speed_permille: 0,
        preempt_at: None,
    };
    let policy = Policy {
        overload: Overload::Dagor,
        selection,
        ranked_hosts: 8,
        ..Policy::default()
    };
    let ids = vec![HostId::of(&address(0)), HostId::of(&address(10))];
    let shard = CacheShard::new(0, 1, ids, vec![1], vec![2], vec![0, 2]).unwrap();
    let mut cluster = Cluster::default();
    cluster.set_table(
        Table::new(policy, (0..1000).map(host).collect(), 1).unwrap(),
        NOW,
        NOW,
    );
    cluster.set_cache_shard(0, shard);
    let request = Request {
        keys: KeyHash(2).into(),
        rank: Rank::new(16, 64),
    };
    cluster.assigned(HostId::of(&address(20)), &request, NOW);
    cluster
}

#[test]
fn a_decision_takes_no_memory_from_the_heap() {
    let keys = [
        Keys::default(),
        KeyHash(1).into(),
        KeyHash(2).into(),
        KeyHash(3).into(),
        Keys::new([1, 2, 3].map(KeyHash)),
    ];
    // All open, most closed, all but one closed.
    for (selection, open) in Selection::ALL
        .into_iter()
        .flat_map(|s| [1, 10, 1000].map(|open| (s, open)))
    {
        let cluster = cluster(selection, open);
        for keys in &keys {
            let request = Request {
                keys: keys.clone(),
                rank: Rank::new(16, 64),
            };
            let mut rng = SmallRng::seed_from_u64(1);
            let before = ALLOCATIONS.get();
            let fresh = cluster.decide(&request, NOW, &mut rng);
            let stale = cluster.decide(&request, NOW + Duration::from_secs(60), &mut rng);
            assert_eq!(
                ALLOCATIONS.get(),
                before,
                "{selection:?}, one of {open} open, {keys:?}"
            );
            assert!(
                matches!(fresh.outcome, Outcome::Send(_))
                    && matches!(stale.outcome, Outcome::Send(_))
            );
        }
    }
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(vec![0u8; 100]));
    assert_eq!(ALLOCATIONS.get(), before + 1, "the allocator counts");
}
