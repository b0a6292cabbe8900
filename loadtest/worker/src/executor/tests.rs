// SPDX-License-Identifier: Apache-2.0
use std::collections::{BTreeSet, HashMap, HashSet};

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn settings(cores: usize, cache_bytes: u64) -> Settings {
    Settings {
        cores,
        cache_bytes,
        max_queued: 1000,
        change_log: 16,
    }
}

/// Fetches take 10 ms plus 1 ms per byte.
fn emulator(cores: usize, cache_bytes: u64) -> Emulator {
    let timing = Timing {
        fetch_base: 10 * MS,
        fetch_bytes_per_second: 1000,
    };
    Emulator::new(&settings(cores, cache_bytes), timing, 7)
}

fn request(key: &str, class: u8) -> Request {
    Request {
        key: (!key.is_empty()).then(|| Arc::from(key)),
        bytes: 10,
        class,
    }
}

fn done(events: Vec<Event>) -> Vec<Done> {
    let done = events.into_iter().filter_map(|event| match event {
        Event::Done(done) => Some(done),
        Event::Began(..) => None,
    });
    done.collect()
}

#[test]
fn a_miss_fetches_then_runs_and_the_next_job_hits() {
    let mut host = emulator(1, 100);
    host.submit(Duration::ZERO, request("a", 16), 5 * MS)
        .unwrap();
    let first = done(host.advance(25 * MS));
    assert_eq!(first.len(), 1);
    assert_eq!(
        (first[0].wait, first[0].fetch, first[0].run, first[0].source),
        (Duration::ZERO, 20 * MS, 5 * MS, Source::Miss)
    );
    host.submit(30 * MS, request("a", 16), 5 * MS).unwrap();
    let second = done(host.advance(35 * MS));
    assert_eq!(
        (second[0].fetch, second[0].source),
        (Duration::ZERO, Source::Hit)
    );
}

#[test]
fn a_low_job_pauses_between_its_joblets_for_a_high_one() {
    let mut host = emulator(1, 100);
    let low = host
        .submit(Duration::ZERO, request("a", 16), 5 * MS)
        .unwrap();
    let high = host.submit(MS, request("", 0), 7 * MS).unwrap();
    let done = done(host.advance(Duration::from_secs(1)));
    assert_eq!((done[0].job, done[0].wait), (high, 19 * MS));
    assert_eq!((done[1].job, done[1].wait), (low, 7 * MS));
}

#[test]
fn a_late_caller_loses_no_core_time() {
    let mut host = emulator(1, 100);
    for _ in 0..3 {
        host.submit(Duration::ZERO, request("", 16), 5 * MS)
            .unwrap();
    }
    let done = done(host.advance(Duration::from_secs(9)));
    let waits: Vec<_> = done.iter().map(|d| d.wait).collect();
    assert_eq!(waits, [Duration::ZERO, 5 * MS, 10 * MS]);
}

#[test]
fn equal_fetches_are_shared_and_take_the_place_of_the_most_important() {
    let mut host = emulator(1, 100);
    let blocker = host.submit(Duration::ZERO, request("", 0), 5 * MS).unwrap();
    let other = host.submit(Duration::ZERO, request("b", 16), MS).unwrap();
    let low = host.submit(Duration::ZERO, request("a", 16), MS).unwrap();
    let high = host.submit(Duration::ZERO, request("a", 0), MS).unwrap();
    let done = done(host.advance(Duration::from_secs(1)));
    let order: Vec<_> = done.iter().map(|d| d.job).collect();
    // The fetch of `a` overtakes `b` for the high job; the low job then has its turn by age.
    assert_eq!(order, [blocker, high, other, low]);
    let source = |id| done.iter().find(|d| d.job == id).unwrap().source;
    assert_eq!((source(low), source(high)), (Source::Miss, Source::Shared));
}

#[test]
fn a_cancelled_leader_leaves_the_fetch_to_whoever_shares_it() {
    let mut host = emulator(1, 100);
    host.submit(Duration::ZERO, request("", 0), 5 * MS).unwrap();
    let leader = host.submit(Duration::ZERO, request("a", 0), MS).unwrap();
    let sharer = host.submit(Duration::ZERO, request("a", 16), MS).unwrap();
    host.cancel(MS, leader);
    let done = done(host.advance(Duration::from_secs(1)));
    assert_eq!(done.last().unwrap().job, sharer);
    assert_eq!(host.load(Duration::from_secs(1)).in_progress, 0);
}

#[test]
fn a_fetch_nobody_wants_any_more_is_dropped_while_it_waits() {
    let mut host = emulator(1, 100);
    host.submit(Duration::ZERO, request("", 0), 5 * MS).unwrap();
    let alone = host.submit(Duration::ZERO, request("a", 16), MS).unwrap();
    host.cancel(MS, alone);
    host.advance(Duration::from_secs(1));
    assert!(!host.executor().cache().contains("a"));
}

#[test]
fn a_job_cancelled_on_a_core_holds_it_to_the_end_and_is_not_reported() {
    let mut host = emulator(1, 100);
    let gone = host
        .submit(Duration::ZERO, request("", 16), 50 * MS)
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
    host.submit(Duration::ZERO, request("a", 16), MS).unwrap();
    assert_eq!(done(host.advance(Duration::from_secs(1))).len(), 1);
    assert!(host.executor().cache().is_empty());
}

#[test]
fn more_jobs_than_may_queue_are_refused() {
    let mut settings = settings(1, 0);
    settings.max_queued = 1;
    let mut executor = Executor::new(&settings, 1);
    executor.submit(MS, request("", 16)).unwrap();
    executor.start(MS).unwrap();
    executor.submit(MS, request("", 16)).unwrap();
    assert_eq!(executor.submit(MS, request("", 16)), Err(Full(1)));
}

#[test]
fn the_delay_is_that_of_the_last_second_or_of_who_still_waits() {
    let mut host = emulator(1, 100);
    host.submit(Duration::ZERO, request("", 16), 4000 * MS)
        .unwrap();
    host.submit(Duration::ZERO, request("", 16), MS).unwrap();
    assert_eq!(host.load(500 * MS).queuing_delay, Some(Duration::ZERO));
    assert_eq!(host.load(3000 * MS).queuing_delay, Some(3000 * MS));
    assert_eq!(host.load(4500 * MS).queuing_delay, Some(4000 * MS));
    assert_eq!(host.load(9000 * MS).queuing_delay, None);
}

#[test]
fn a_question_from_another_life_or_the_future_is_answered_with_everything() {
    let mut cache = Cache::new(100, 2, 7);
    for key in ["a", "b", "c"] {
        cache.insert(Arc::from(key), 1);
    }
    assert!(cache.changes_since(0, Some(7)).reset);
    assert!(cache.changes_since(3, Some(8)).reset);
    assert!(cache.changes_since(4, Some(7)).reset);
    assert!(!cache.changes_since(1, Some(7)).reset);
    assert!(
        !cache.changes_since(3, None).reset,
        "an epoch may be left out"
    );
    cache.insert(Arc::from("d"), 1);
    assert!(cache.changes_since(1, Some(7)).reset, "forgotten by now");
}

/// One step of a random history, each after `after` ms.
#[derive(Debug, Clone)]
struct Step {
    after: u64,
    act: Act,
}

#[derive(Debug, Clone)]
enum Act {
    Submit {
        key: u8,
        bytes: u64,
        class: u8,
        run: u64,
    },
    Cancel(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let submit = (
        0..8u8,
        0..60u64,
        prop::sample::select(vec![0, 3, 16]),
        0..30u64,
    )
        .prop_map(|(key, bytes, class, run)| Act::Submit {
            key,
            bytes,
            class,
            run,
        });
    let act = prop_oneof![4 => submit, 1 => any::<usize>().prop_map(Act::Cancel)];
    prop::collection::vec(
        (0..15u64, act).prop_map(|(after, act)| Step { after, act }),
        1..120,
    )
}

/// Key 0 is "no key"; the size belongs to the key, as it does with real data.
fn request_of(key: u8, bytes: u64, class: u8) -> Request {
    Request {
        key: (key > 0).then(|| Arc::from(format!("k{key}"))),
        bytes: bytes + u64::from(key),
        class,
    }
}

/// Plays a history; after every step `check` sees the emulator and the time.
fn play(steps: &[Step], cores: usize, mut check: impl FnMut(&mut Emulator, Duration)) -> Emulator {
    let mut host = emulator(cores, 100);
    let (mut now, mut jobs) = (Duration::ZERO, Vec::new());
    for step in steps {
        now += u32::try_from(step.after).unwrap() * MS;
        match step.act {
            Act::Submit {
                key,
                bytes,
                class,
                run,
            } => {
                let request = request_of(key, bytes, class);
                let run = u32::try_from(run).unwrap() * MS;
                jobs.push(host.submit(now, request, run).unwrap());
            }
            Act::Cancel(n) if !jobs.is_empty() => host.cancel(now, jobs[n % jobs.len()]),
            Act::Cancel(_) => {}
        }
        check(&mut host, now);
    }
    host
}

/// The counters against what they count.
fn check_books(executor: &Executor, cores: usize) {
    assert!(executor.cores.iter().flatten().count() <= cores);
    assert!(executor.cache.bytes() <= 100);
    let keys = executor.cache.changes_since(0, None).added;
    assert_eq!(keys.len(), executor.cache.len());
    let mut queued = [0u32; CLASSES];
    for job in executor.jobs.values().filter(|job| job.waiting) {
        queued[usize::from(job.class)] += 1;
    }
    assert_eq!(queued, executor.queued);
    assert!(
        executor.queue.is_empty() || executor.cores.iter().all(Option::is_some),
        "a core idles while a joblet waits"
    );
    for (key, flight) in &executor.flights {
        let fetches = |j: &&Joblet| matches!(j, Joblet::Fetch { key: k, .. } if k == key);
        let waiting = executor.queue.values().filter(fetches).count();
        let running = executor.cores.iter().flatten().filter(fetches).count();
        assert_eq!(waiting + running, 1, "one fetch of {key} at a time");
        assert_eq!(flight.running, running == 1);
        if !flight.running {
            let place = executor.queue.iter().find(|(_, j)| fetches(j)).unwrap().0;
            assert_eq!(Some(place), flight.waiters.first());
        }
        assert!(!executor.cache.contains(key), "fetched while cached");
    }
}

proptest! {
    #[test]
    fn the_books_balance_after_every_step_and_the_host_ends_idle(
        steps in steps(), cores in 1usize..5,
    ) {
        let mut host = play(&steps, cores, |host, _| check_books(host.executor(), cores));
        let end = Duration::from_secs(3600);
        host.advance(end);
        let load = host.load(end);
        prop_assert_eq!((load.in_progress, load.busy_cores), (0, 0));
        prop_assert_eq!(load.queued, [0; CLASSES]);
        prop_assert!(host.executor().flights.is_empty());
    }

    #[test]
    fn every_job_that_is_not_cancelled_is_answered_once(steps in steps(), cores in 1usize..5) {
        let mut answered = Vec::new();
        let mut host = play(&steps, cores, |host, now| answered.extend(done(host.advance(now))));
        answered.extend(done(host.advance(Duration::from_secs(3600))));
        let ids: HashSet<_> = answered.iter().map(|d| d.job).collect();
        prop_assert_eq!(ids.len(), answered.len());
        let submitted = steps.iter().filter(|s| matches!(s.act, Act::Submit { .. })).count();
        let cancels = steps.len() - submitted;
        prop_assert!(answered.len() + cancels >= submitted);
    }

    #[test]
    fn nothing_starts_before_something_more_important_or_older(
        jobs in prop::collection::vec((0..6u8, 0..3u8), 1..40),
    ) {
        let mut executor = Executor::new(&settings(1, 100), 1);
        let mut rank = HashMap::new();
        for (key, class) in jobs {
            let id = executor.submit(Duration::ZERO, request_of(key, 5, class)).unwrap();
            rank.insert(id, (class, id));
        }
        let mut now = Duration::ZERO;
        while let Some(start) = executor.start(now) {
            if let Joblet::Run(id) = start.joblet {
                let ready = executor.queue.iter().filter(|(_, j)| matches!(j, Joblet::Run(_)));
                for (waiting, _) in ready {
                    prop_assert!(rank[&id] < (waiting.class, waiting.job));
                }
            }
            now += MS;
            executor.finish(now, start.core);
        }
    }

    #[test]
    fn cache_changes_replayed_from_any_version_give_the_present_set(
        inserts in prop::collection::vec((0..12u8, 1..50u64), 1..60), log in 1usize..64,
    ) {
        let mut cache = Cache::new(100, log, 9);
        let mut past: Vec<(u64, BTreeSet<Arc<str>>)> = vec![(0, BTreeSet::new())];
        for (key, bytes) in inserts {
            cache.insert(Arc::from(format!("k{key}")), bytes);
            let all = cache.changes_since(0, None);
            past.push((all.version, all.added.into_iter().collect()));
        }
        let present = past.last().unwrap().1.clone();
        for (version, mut keys) in past {
            let changes = cache.changes_since(version, Some(9));
            if changes.reset {
                keys.clear();
            }
            for key in changes.removed {
                prop_assert!(keys.remove(&key), "removed what was not there");
            }
            for key in changes.added {
                prop_assert!(keys.insert(key), "added what was there");
            }
            prop_assert_eq!(&keys, &present);
        }
    }

    #[test]
    fn wait_fetch_and_run_add_up_to_the_time_in_the_host(steps in steps(), cores in 1usize..4) {
        let mut came = HashMap::new();
        let mut host = emulator(cores, 100);
        let mut now = Duration::ZERO;
        let check = |host: &mut Emulator, until: Duration, came: &HashMap<JobId, Duration>| {
            // One due time at a time, so that `advance` is called at the instant of the end.
            while let Some(due) = host.next_due().filter(|due| *due <= until) {
                for d in done(host.advance(due)) {
                    assert_eq!(d.wait + d.fetch + d.run, due - came[&d.job]);
                }
            }
        };
        for step in &steps {
            now += u32::try_from(step.after).unwrap() * MS;
            check(&mut host, now, &came);
            if let Act::Submit { key, bytes, class, run } = step.act {
                let run = u32::try_from(run).unwrap() * MS;
                let id = host.submit(now, request_of(key, bytes, class), run).unwrap();
                came.insert(id, now);
            }
        }
        check(&mut host, Duration::from_secs(3600), &came);
    }
}
