// SPDX-License-Identifier: Apache-2.0
mod joblets;
mod orders;
mod properties;
mod suspension;
mod workflow;

use std::sync::Arc;
use std::time::Duration;

use crate::*;

const MS: Duration = Duration::from_millis(1);

/// Fetches take 10 ms plus 1 ms per byte.
const TIMING: Timing = Timing {
    fetch_base: Duration::from_millis(10),
    fetch_bytes_per_second: 1000,
};

fn settings(cores: usize, cache_bytes: u64) -> Settings {
    Settings {
        cores,
        cache_bytes,
        max_queued: 1000,
        change_log: 16,
        order: Order::Priority,
        eviction: Eviction::default(),
    }
}

fn emulator(cores: usize, cache_bytes: u64) -> Emulator {
    Emulator::new(&settings(cores, cache_bytes), 7)
}

fn request(key: &str, class: u8, run: Duration) -> Request<Modelled> {
    let key = (!key.is_empty()).then(|| Arc::from(key));
    TIMING.job(key, 10, class, run)
}

fn items_of(key: &str, version: u128) -> ResultId {
    ResultId {
        kind: Kind::FeedSource,
        key: Arc::from(key),
        version,
    }
}

/// The jobs that have ended well.
fn done<E: std::fmt::Debug>(events: Vec<Event<E>>) -> Vec<(JobId, Spent)> {
    let done = events.into_iter().filter_map(|event| match event {
        Event::Ended(job, outcome) => Some((job, outcome.unwrap())),
        Event::Started(_) | Event::Began(..) => None,
    });
    done.collect()
}

#[test]
fn a_miss_fetches_then_runs_and_the_next_job_hits() {
    let mut host = emulator(1, 100);
    host.submit(Duration::ZERO, request("a", 16, 5 * MS))
        .unwrap();
    let first = done(host.advance(25 * MS));
    assert_eq!(first.len(), 1);
    assert_eq!(
        (
            first[0].1.wait,
            first[0].1.fetch,
            first[0].1.run,
            first[0].1.source
        ),
        (Duration::ZERO, 20 * MS, 5 * MS, Source::Miss)
    );
    host.submit(30 * MS, request("a", 16, 5 * MS)).unwrap();
    let second = done(host.advance(35 * MS));
    assert_eq!(
        (second[0].1.fetch, second[0].1.source),
        (Duration::ZERO, Source::Hit)
    );
}

#[test]
fn a_low_job_pauses_between_its_joblets_for_a_high_one() {
    let mut host = emulator(1, 100);
    let low = host
        .submit(Duration::ZERO, request("a", 16, 5 * MS))
        .unwrap();
    let high = host.submit(MS, request("", 0, 7 * MS)).unwrap();
    let done = done(host.advance(Duration::from_secs(1)));
    assert_eq!((done[0].0, done[0].1.wait), (high, 19 * MS));
    assert_eq!((done[1].0, done[1].1.wait), (low, 7 * MS));
}

#[test]
fn a_late_caller_loses_no_core_time() {
    let mut host = emulator(1, 100);
    for _ in 0..3 {
        host.submit(Duration::ZERO, request("", 16, 5 * MS))
            .unwrap();
    }
    let done = done(host.advance(Duration::from_secs(9)));
    let waits: Vec<_> = done.iter().map(|(_, d)| d.wait).collect();
    assert_eq!(waits, [Duration::ZERO, 5 * MS, 10 * MS]);
}

#[test]
fn equal_fetches_are_shared_and_take_the_place_of_the_most_important() {
    let mut host = emulator(1, 100);
    let blocker = host.submit(Duration::ZERO, request("", 0, 5 * MS)).unwrap();
    let other = host.submit(Duration::ZERO, request("b", 16, MS)).unwrap();
    let low = host.submit(Duration::ZERO, request("a", 16, MS)).unwrap();
    let high = host.submit(Duration::ZERO, request("a", 0, MS)).unwrap();
    let done = done(host.advance(Duration::from_secs(1)));
    let order: Vec<_> = done.iter().map(|(job, _)| *job).collect();
    // The fetch of `a` overtakes `b` for the high job; the low job then has its turn by age.
    assert_eq!(order, [blocker, high, other, low]);
    let source = |id| done.iter().find(|d| d.0 == id).unwrap().1.source;
    assert_eq!((source(low), source(high)), (Source::Miss, Source::Shared));
}

#[test]
fn a_cancelled_leader_leaves_the_fetch_to_whoever_shares_it() {
    let mut host = emulator(1, 100);
    host.submit(Duration::ZERO, request("", 0, 5 * MS)).unwrap();
    let leader = host.submit(Duration::ZERO, request("a", 0, MS)).unwrap();
    let sharer = host.submit(Duration::ZERO, request("a", 16, MS)).unwrap();
    host.cancel(MS, leader);
    let done = done(host.advance(Duration::from_secs(1)));
    assert_eq!(done.last().unwrap().0, sharer);
    assert_eq!(host.load(Duration::from_secs(1)).in_progress, 0);
}

#[test]
fn a_fetch_nobody_wants_any_more_is_dropped_while_it_waits() {
    let mut host = emulator(1, 100);
    host.submit(Duration::ZERO, request("", 0, 5 * MS)).unwrap();
    let alone = host.submit(Duration::ZERO, request("a", 16, MS)).unwrap();
    host.cancel(MS, alone);
    host.advance(Duration::from_secs(1));
    assert!(!host.executor().cache().contains("a"));
}

#[test]
fn a_job_cancelled_on_a_core_holds_it_to_the_end_and_is_not_reported() {
    let mut host = emulator(1, 100);
    let gone = host
        .submit(Duration::ZERO, request("", 16, 50 * MS))
        .unwrap();
    host.cancel(MS, gone);
    let load = host.load(MS);
    assert_eq!((load.in_progress, load.busy_cores), (1, 1));
    assert!(done(host.advance(50 * MS)).is_empty());
    assert_eq!(host.load(50 * MS).busy_cores, 0);
}

#[test]
fn data_larger_than_the_cache_is_served_but_not_kept() {
    let mut host = emulator(1, 9);
    host.submit(Duration::ZERO, request("a", 16, MS)).unwrap();
    assert_eq!(done(host.advance(Duration::from_secs(1))).len(), 1);
    assert!(host.executor().cache().is_empty());
}

#[test]
fn more_jobs_than_may_queue_are_refused() {
    let mut settings = settings(1, 0);
    settings.max_queued = 1;
    let mut executor = Executor::new(&settings, 1);
    executor.submit(MS, request("", 16, MS)).unwrap();
    executor.start(MS).unwrap();
    executor.submit(MS, request("", 16, MS)).unwrap();
    assert_eq!(executor.submit(MS, request("", 16, MS)), Err(Full(1)));
}

#[test]
fn the_delay_is_that_of_the_last_second_or_of_who_still_waits() {
    let mut host = emulator(1, 100);
    host.submit(Duration::ZERO, request("", 16, 4000 * MS))
        .unwrap();
    host.submit(Duration::ZERO, request("", 16, MS)).unwrap();
    assert_eq!(host.load(500 * MS).queuing_delay, Some(Duration::ZERO));
    assert_eq!(host.load(3000 * MS).queuing_delay, Some(3000 * MS));
    assert_eq!(host.load(4500 * MS).queuing_delay, Some(4000 * MS));
    assert_eq!(host.load(9000 * MS).queuing_delay, None);
}

#[test]
fn a_question_from_another_life_or_the_future_is_answered_with_everything() {
    let mut cache = Cache::<()>::new(100, Eviction::Oldest, 2, 7);
    for key in ["a", "b", "c"] {
        cache.insert(MS, items_of(key, 0), (), 1);
    }
    assert!(cache.changes_since(0, Some(7)).reset);
    assert!(cache.changes_since(3, Some(8)).reset);
    assert!(cache.changes_since(4, Some(7)).reset);
    assert!(!cache.changes_since(1, Some(7)).reset);
    assert!(
        !cache.changes_since(3, None).reset,
        "an epoch may be left out"
    );
    cache.insert(MS, items_of("d", 0), (), 1);
    assert!(cache.changes_since(1, Some(7)).reset, "forgotten by now");
}

/// The keys that stay of a (60 bytes, used twice), b (20 bytes, used three times) and c (20 bytes, used once), when d of
/// so many bytes comes at that time.
fn stay(eviction: Eviction, bytes: u64, now: Duration) -> Vec<Arc<str>> {
    let mut cache = Cache::new(100, eviction, 10, 7);
    for (key, bytes) in [("a", 60), ("b", 20), ("c", 20)] {
        cache.insert(Duration::ZERO, items_of(key, 0), (), bytes);
    }
    for key in ["a", "b", "b"] {
        assert!(cache.take_up(30 * MS, &items_of(key, 0)).is_some());
    }
    cache.insert(now, items_of("d", 0), (), bytes);
    let mut keys = cache.changes_since(0, None).added;
    keys.sort();
    keys
}

#[test]
fn what_leaves_a_full_cache_is_chosen() {
    let names = |keys: &[&str]| keys.iter().map(|key| Arc::from(*key)).collect::<Vec<_>>();
    let soon = 40 * MS;
    let all = [
        (Eviction::Oldest, names(&["b", "c", "d"])),
        (Eviction::Largest, names(&["b", "c", "d"])),
        (Eviction::LeastUsed, names(&["a", "b", "d"])),
    ];
    for (eviction, left) in all {
        assert_eq!(stay(eviction, 20, soon), left, "{eviction:?}");
    }
    // Only c was not used for an hour then.
    let later = crate::cache::WINDOW + 20 * MS;
    assert_eq!(stay(Eviction::Oldest, 20, later), names(&["b", "c", "d"]));
    for eviction in [Eviction::Largest, Eviction::LeastUsed] {
        assert_eq!(stay(eviction, 20, later), names(&["a", "b", "d"]));
    }
    assert_eq!(stay(Eviction::Largest, 80, later), names(&["b", "d"]));
    for name in ["oldest", "largest", "least-used"] {
        assert!(name.parse::<Eviction>().is_ok(), "{name}");
    }
    assert!("newest".parse::<Eviction>().is_err());
}

#[test]
fn new_items_of_a_key_replace_the_old_ones() {
    let mut cache = Cache::new(100, Eviction::Oldest, 10, 7);
    cache.insert(MS, items_of("a", 1), "old", 60);
    cache.insert(MS, items_of("b", 1), "other", 40);
    cache.insert(MS, items_of("a", 2), "new", 60);
    assert_eq!(cache.get(&items_of("a", 1)), None);
    assert_eq!(cache.get(&items_of("a", 2)), Some(&"new"));
    assert_eq!((cache.bytes(), cache.evictions()), (100, 0));
    let changes = cache.changes_since(2, Some(7));
    assert!(changes.added.is_empty() && changes.removed.is_empty());
}

#[test]
fn a_core_is_free_once_what_goes_before_is_done() {
    let mut host = emulator(2, 100);
    for (key, class, run) in [("a", 16, 5), ("b", 16, 30), ("c", 0, 7), ("d", 31, 1)] {
        // Fetches of 20 ms.
        host.submit(Duration::ZERO, request(key, class, run * MS))
            .unwrap();
    }
    // At 8 ms both cores fetch for 12 ms more. Then c takes both, until 19 and 32 ms from now; a's
    // and b's runs take the first of them until 54 ms; d the other until 53 ms.
    assert_eq!(host.free_in(8 * MS, 0), 19 * MS);
    assert_eq!(host.free_in(8 * MS, 16), 32 * MS);
    assert_eq!(host.free_in(8 * MS, 31), 53 * MS);
    assert_eq!(host.left(8 * MS, &items_of("a", 0)), Some(12 * MS));
    assert_eq!(host.left(8 * MS, &items_of("c", 0)), None);
    host.advance(Duration::from_secs(1));
    assert_eq!(host.free_in(Duration::from_secs(1), 31), Duration::ZERO);
}
