// SPDX-License-Identifier: Apache-2.0
//! Threads of this very process.

use std::cell::RefCell;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;

use weir_events::{Geometry, Kind, Problem, Ring};

use crate::{MERGE, SCORE, now_ns, place, read, wait_until};

use Kind::{Enter, Leave};

#[test]
fn a_thread_in_a_hot_function_is_seen_until_it_leaves() {
    let place = place();
    let mut reader = place.reader();
    let ring = Ring::attach(&place.file);

    let hot = ring.enter(SCORE);
    let (tick, seen) = read(&mut reader);
    assert_eq!((tick.claimed, tick.events, tick.lost), (1, 1, 0));
    assert_eq!(seen[0].running, [SCORE]);
    let owner = seen[0].owner.unwrap();
    assert_eq!(owner.pid, std::process::id());
    assert_eq!(owner.tid, nix::unistd::gettid().as_raw() as u32);
    assert!(seen[0].thread_started > 0);

    drop(hot);
    let (_, seen) = read(&mut reader);
    assert_eq!(seen[0].running, []);
    assert_eq!(seen[0].events, [(Leave, SCORE)]);
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
    let expected = [
        (Enter, SCORE),
        (Enter, MERGE),
        (Leave, MERGE),
        (Leave, SCORE),
    ];
    assert_eq!(seen[0].events, expected);
}

#[test]
fn a_panic_leaves_the_function() {
    let place = place();
    let mut reader = place.reader();
    let ring = Ring::attach(&place.file);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _hot = ring.enter(SCORE);
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(panicked.is_err());
    let (_, seen) = read(&mut reader);
    assert_eq!(seen[0].running, []);
    assert_eq!(seen[0].events, [(Enter, SCORE), (Leave, SCORE)]);
}

#[test]
fn a_thread_gives_its_lane_back_at_its_end_and_its_events_are_still_read() {
    let place = place();
    let mut reader = place.reader();
    let ring = Ring::attach(&place.file);
    thread::scope(|scope| {
        // Joined, because a scope does not wait for what ends after the closure.
        let thread = scope.spawn(|| drop(ring.enter(SCORE)));
        thread.join().unwrap();
    });
    let (tick, seen) = read(&mut reader);
    assert_eq!((tick.claimed, tick.events), (0, 2));
    assert_eq!(seen[0].owner, None);
    assert!(read(&mut reader).1.is_empty(), "it is shown once");
}

#[test]
fn a_ring_that_is_dropped_gives_the_lane_back() {
    let place = place();
    let mut reader = place.reader();
    let ring = Ring::attach(&place.file);
    drop(ring.enter(SCORE));
    drop(ring);
    assert_eq!(read(&mut reader).0.claimed, 0);
}

#[test]
fn what_was_overwritten_is_counted_and_what_runs_is_still_true() {
    let place = place();
    let (mut reader, _) = place.opened(Geometry::new(1, 16).unwrap());
    let ring = Ring::attach(&place.file);
    for _ in 0..1000 {
        drop(ring.enter(SCORE));
    }
    let _hot = ring.enter(MERGE);
    let (tick, seen) = read(&mut reader);
    // The oldest slot is the one that the next event is written to.
    assert_eq!((tick.events, tick.lost), (15, 1986));
    assert_eq!(seen[0].events.last(), Some(&(Enter, MERGE)));
    assert_eq!(seen[0].running, [MERGE]);
}

#[test]
fn a_thread_without_a_lane_does_nothing_until_one_is_free() {
    static COMPLAINTS: AtomicU32 = AtomicU32::new(0);
    fn complain(problem: &Problem) {
        assert!(problem.to_string().ends_with("all 1 lanes are taken"));
        COMPLAINTS.fetch_add(1, Ordering::Relaxed);
    }
    let place = place();
    let (mut reader, _) = place.opened(Geometry::new(1, 16).unwrap());
    let ring = Ring::attach_or(&place.file, complain);
    let (go, gone) = mpsc::channel::<()>();
    let (claimed, is_claimed) = mpsc::channel();
    thread::scope(|scope| {
        let ring = &ring;
        let other = scope.spawn(move || {
            drop(ring.enter(MERGE));
            claimed.send(()).unwrap();
            let _ = gone.recv();
        });
        is_claimed.recv().unwrap();
        drop(ring.enter(SCORE));
        drop(ring.enter(SCORE));
        assert_eq!(read(&mut reader).0.events, 2, "of the other thread");
        drop(go);
        other.join().unwrap();
        wait_until("the lane is claimed", || {
            let _hot = ring.enter(SCORE);
            read(&mut reader)
                .1
                .iter()
                .any(|lane| lane.running == [SCORE])
        });
    });
    assert_eq!(COMPLAINTS.load(Ordering::Relaxed), 1);
}

#[test]
fn a_program_may_start_before_the_governor() {
    static COMPLAINTS: AtomicU32 = AtomicU32::new(0);
    fn complain(problem: &Problem) {
        assert!(matches!(problem, Problem::File { .. }));
        COMPLAINTS.fetch_add(1, Ordering::Relaxed);
    }
    let place = place();
    let ring = Ring::attach_or(&place.file, complain);
    drop(ring.enter(SCORE));
    drop(ring.enter(SCORE));
    assert_eq!(COMPLAINTS.load(Ordering::Relaxed), 1);
    let mut reader = place.reader();
    wait_until("the program has attached", || {
        let _hot = ring.enter(SCORE);
        read(&mut reader).0.claimed == 1
    });
    assert_eq!(COMPLAINTS.load(Ordering::Relaxed), 1);
}

#[test]
fn what_is_no_ring_of_this_version_is_left_alone() {
    thread_local! {
        static SAID: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }
    let place = place();
    drop(place.reader());
    let good = fs::read(&place.file).unwrap();
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    for (bytes, expected) in [
        (Vec::new(), "the file has 0 bytes, expected 4096"),
        (
            good[..5000].to_vec(),
            "the file has 5000 bytes, expected 1118208",
        ),
        (changed(0, b'w'), "are \"WEIREVT1\""),
        (changed(8, 2), "version is 2, this program knows 1"),
        (changed(24, 2), "retired by the governor"),
    ] {
        fs::write(&place.file, &bytes).unwrap();
        let complain =
            |problem: &Problem| SAID.with_borrow_mut(|said| said.push(problem.to_string()));
        let ring = Ring::attach_or(&place.file, complain);
        drop(ring.enter(SCORE));
        drop(ring.enter(SCORE));
        let said = SAID.take();
        assert!(said.len() == 1 && said[0].ends_with(expected), "{said:?}");
        assert!(
            said[0].starts_with(place.file.to_str().unwrap()),
            "{said:?}"
        );
        assert!(
            fs::read(&place.file).unwrap() == bytes,
            "nothing is written"
        );
    }
}

#[test]
fn a_program_goes_to_the_new_file_with_all_that_runs() {
    let place = place();
    drop(place.reader());
    let ring = Ring::attach(&place.file);
    let before = now_ns();
    let _hot = ring.enter(SCORE);
    let between = now_ns();

    let (mut reader, _) = place.opened(Geometry::new(8, 32).unwrap());
    assert_eq!(
        read(&mut reader).0.claimed,
        0,
        "nothing tells the thread before its next call"
    );
    let _other = ring.enter(MERGE);
    let (_, seen) = read(&mut reader);
    assert_eq!(seen[0].running, [SCORE, MERGE]);
    assert!((before..=between).contains(&seen[0].since_ns[0]));
}

#[test]
fn a_thread_whose_lane_was_taken_away_claims_another() {
    let place = place();
    let mut reader = place.reader();
    let ring = Ring::attach(&place.file);
    let _hot = ring.enter(SCORE);
    let (_, seen) = read(&mut reader);
    let owner = seen[0].owner.unwrap();
    assert!(
        reader
            .free(seen[0].number, owner, seen[0].thread_started)
            .unwrap()
    );
    assert_eq!(read(&mut reader).0.claimed, 0);
    let _other = ring.enter(MERGE);
    assert_eq!(read(&mut reader).1[0].running, [SCORE, MERGE]);
}

#[test]
fn threads_that_write_as_fast_as_they_can_are_counted_exactly() {
    const CALLS: u64 = 20_000;
    let place = place();
    let (mut reader, _) = place.opened(Geometry::new(8, 64).unwrap());
    let ring = Ring::attach(&place.file);
    let (mut events, mut lost) = (0, 0);
    let mut tick = || {
        let now = now_ns();
        let tick = reader.read(now, |lane| {
            for (_, since) in lane.running() {
                assert!(since <= now);
            }
            let pairs = lane.events.windows(2);
            for pair in pairs.filter(|_| lane.lost == 0) {
                assert_ne!(pair[0].kind, pair[1].kind, "enter and leave take turns");
                assert!(pair[0].time_ns <= pair[1].time_ns);
            }
        });
        let tick = tick.unwrap();
        (events, lost) = (events + tick.events, lost + tick.lost);
        tick
    };
    thread::scope(|scope| {
        let threads = [(); 6].map(|()| {
            scope.spawn(|| {
                for _ in 0..CALLS {
                    drop(ring.enter(SCORE));
                }
            })
        });
        while !threads.iter().all(|thread| thread.is_finished()) {
            tick();
        }
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(tick().claimed, 0);
    assert_eq!(events + lost, 6 * 2 * CALLS);
}
