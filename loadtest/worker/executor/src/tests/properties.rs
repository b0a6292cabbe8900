// SPDX-License-Identifier: Apache-2.0
//! What holds after every step of random histories, under every order.

use std::collections::{BTreeSet, HashMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::scheduler::QuantumSettings;

/// One moment of a history, `after` ms later than the one before.
#[derive(Debug, Clone)]
struct Moment {
    after: u32,
    act: Act,
}

#[derive(Debug, Clone)]
enum Act {
    Submit(Request<Modelled>),
    Cancel(usize),
}

fn order() -> impl Strategy<Value = Order> {
    let quantum = (1..20u32).prop_map(|ms| Order::RoundRobin { quantum: ms * MS });
    let basic = (1..20_000u64).prop_map(|us| {
        Order::Quantum(QuantumSettings {
            basic: Duration::from_micros(us),
            ..QuantumSettings::default()
        })
    });
    // The compiler says so here when the list below lacks a new one.
    let _ = |order| match order {
        Order::Priority
        | Order::Suspending
        | Order::RoundRobin { .. }
        | Order::Quantum(_)
        | Order::RateBased
        | Order::ThreadPerJob => (),
    };
    prop_oneof![
        Just(Order::Priority),
        Just(Order::Suspending),
        Just(Order::RateBased),
        Just(Order::ThreadPerJob),
        quantum,
        basic
    ]
}

/// A job that stops at some kind, on one of a few projects with a few sets of rules.
fn job() -> impl Strategy<Value = Request<Modelled>> {
    let class = prop::sample::select(vec![0u8, 3, 16]);
    let rules = (0..3u128, 0..3u128, 0..3u128);
    let lasts = prop::array::uniform4(0..15u32);
    (
        class,
        0..5u8,
        rules,
        lasts,
        1..=4usize,
        1..4usize,
        any::<bool>(),
    )
        .prop_map(
            |(class, key, (items, shared, own), lasts, len, cores, keep)| {
                let version = [items, items * 3 + shared, items * 9 + shared * 3 + own, 0];
                let steps = Kind::ALL.into_iter().zip(version).zip(lasts);
                let steps = steps.map(|((kind, version), ms)| Step {
                    kind,
                    result: (kind != Kind::OutputFeed).then(|| ResultId {
                        kind,
                        key: Arc::from(format!("k{key}")),
                        version,
                    }),
                    keep: keep || kind == Kind::FeedSource,
                    cores,
                    work: Modelled {
                        core_time: ms * MS,
                        bytes: 10 + u64::from(key),
                    },
                });
                Request {
                    class,
                    steps: steps.take(len).collect(),
                }
            },
        )
}

/// Work that is named by its result, and may fail.
#[derive(Debug, Clone)]
struct Fallible(Option<ResultId>);

impl Work for Fallible {
    type Output = Option<ResultId>;
    type Error = &'static str;
}

fn fallible(request: Request<Modelled>) -> Request<Fallible> {
    let step = |step: Step<Modelled>| Step {
        work: Fallible(step.result.clone()),
        kind: step.kind,
        result: step.result,
        keep: step.keep,
        cores: step.cores,
    };
    Request {
        class: request.class,
        steps: request.steps.into_iter().map(step).collect(),
    }
}

fn history() -> impl Strategy<Value = Vec<Moment>> {
    let act = prop_oneof![
        4 => job().prop_map(Act::Submit),
        1 => any::<usize>().prop_map(Act::Cancel)
    ];
    let moment = (0..15u32, act).prop_map(|(after, act)| Moment { after, act });
    prop::collection::vec(moment, 1..100)
}

fn host(cores: usize, order: Order) -> Emulator {
    let settings = Settings {
        order,
        ..settings(cores, 100)
    };
    Emulator::new(&settings, 7)
}

/// Plays a history; after every moment `check` sees the emulator and the time.
fn play(history: &[Moment], host: &mut Emulator, mut check: impl FnMut(&mut Emulator, Duration)) {
    let (mut now, mut jobs) = (Duration::ZERO, Vec::new());
    for moment in history {
        now += moment.after * MS;
        match &moment.act {
            Act::Submit(request) => jobs.push(host.submit(now, request.clone()).unwrap()),
            Act::Cancel(n) if !jobs.is_empty() => host.cancel(now, jobs[n % jobs.len()]),
            Act::Cancel(_) => {}
        }
        check(host, now);
    }
}

const END: Duration = Duration::from_secs(3600);

proptest! {
    #[test]
    fn the_books_balance_after_every_moment_and_the_host_ends_idle(
        history in history(), cores in 1usize..5, order in order(),
    ) {
        let mut host = host(cores, order);
        play(&history, &mut host, |host, _| {
            host.executor().check_books();
            assert!(!host.executor().idles_while_a_joblet_waits());
            assert!(host.executor().cache().bytes() <= 100);
        });
        host.advance(END);
        let load = host.load(END);
        prop_assert_eq!((load.in_progress, load.busy_cores), (0, 0));
        prop_assert_eq!(load.queued, [0; CLASSES]);
        prop_assert_eq!(load.stalled, [0; Kind::COUNT]);
        host.executor().check_books();
    }

    #[test]
    fn every_job_that_is_not_cancelled_is_answered_once(
        history in history(), cores in 1usize..5, order in order(),
    ) {
        let mut host = host(cores, order);
        let (mut now, mut jobs) = (Duration::ZERO, Vec::new());
        let (mut answered, mut cancelled) = (Vec::new(), HashSet::new());
        for moment in &history {
            now += moment.after * MS;
            answered.extend(done(host.advance(now)).into_iter().map(|(job, _)| job));
            match &moment.act {
                Act::Submit(request) => jobs.push(host.submit(now, request.clone()).unwrap()),
                Act::Cancel(n) if !jobs.is_empty() => {
                    let job = jobs[n % jobs.len()];
                    host.cancel(now, job);
                    if !answered.contains(&job) {
                        cancelled.insert(job);
                    }
                }
                Act::Cancel(_) => {}
            }
        }
        answered.extend(done(host.advance(END)).into_iter().map(|(job, _)| job));
        let once: HashSet<_> = answered.iter().copied().collect();
        prop_assert_eq!(once.len(), answered.len());
        // A job may be complete as soon as it is submitted, and then a cancel comes too late.
        let all: HashSet<_> = jobs.into_iter().collect();
        let either: HashSet<_> = once.union(&cancelled).copied().collect();
        prop_assert_eq!(either, all);
    }

    #[test]
    fn what_is_stopped_suspended_or_fails_leaves_no_core_held_no_job_behind_and_no_result(
        acts in prop::collection::vec((0..8u8, any::<usize>(), job()), 1..120),
        cores in 1usize..5, order in order(),
    ) {
        let suspends = order == Order::Suspending;
        let settings = Settings { order, ..settings(cores, 100) };
        let mut host = Executor::<Fallible>::new(&settings, 1);
        let (mut running, mut jobs) = (Vec::new(), Vec::new());
        let (mut asked, mut standing) = (Vec::new(), HashMap::new());
        let mut stopped = HashSet::new();
        let mut failed: HashSet<ResultId> = HashSet::new();
        for (n, (act, pick, request)) in acts.into_iter().enumerate() {
            let now = u32::try_from(n).unwrap() * MS;
            match act {
                0 | 1 => jobs.push(host.submit(now, fallible(request)).unwrap()),
                2 if !jobs.is_empty() => {
                    let joblet = host.abort(jobs[pick % jobs.len()]);
                    stopped.extend(joblet.filter(|joblet| standing.remove(joblet).is_none()));
                }
                3 if !jobs.is_empty() => match host.cancel(jobs[pick % jobs.len()]) {
                    Some(Unwanted::Runs(joblet)) => {
                        prop_assert!(host.give_up(joblet));
                        stopped.insert(joblet);
                    }
                    Some(Unwanted::Stands(joblet)) => {
                        prop_assert!(standing.remove(&joblet).is_some());
                    }
                    None => {}
                },
                4 | 5 if !asked.is_empty() => {
                    let joblet = asked.swap_remove(pick % asked.len());
                    let at = running.iter().position(|start: &Start<Fallible>| start.joblet == joblet);
                    // It may have ended meanwhile.
                    if let Some(at) = at {
                        let start = running.swap_remove(at);
                        if host.suspended(now, joblet) {
                            standing.insert(joblet, start);
                        }
                    }
                }
                _ if !running.is_empty() => {
                    let start: Start<Fallible> = running.swap_remove(pick % running.len());
                    // What was asked to stop may have been done already.
                    let stops = stopped.contains(&start.joblet) && pick % 2 == 0;
                    let result = match stops || act == 6 {
                        true => Err("stopped or failed"),
                        false => Ok(Product { output: start.work.0.clone(), bytes: 10 }),
                    };
                    if let (Err(_), Some(id)) = (&result, &start.work.0) {
                        failed.insert(id.clone());
                    } else if let Some(id) = &start.work.0 {
                        failed.remove(id);
                    }
                    host.finish(now, start.joblet, result);
                }
                _ => {}
            }
            while let Some(start) = host.start(now) {
                if start.resumed {
                    let before = standing.remove(&start.joblet);
                    prop_assert!(before.is_some_and(|before| start.cores <= before.cores));
                }
                running.push(start);
            }
            while let Some(joblet) = host.suspend() {
                prop_assert!(suspends && running.iter().any(|start| start.joblet == joblet));
                asked.push(joblet);
            }
            host.check_books();
        }
        for start in running {
            host.finish(END, start.joblet, Err("the end"));
        }
        while let Some(start) = host.start(END) {
            standing.remove(&start.joblet);
            host.finish(END, start.joblet, Err("the end"));
        }
        host.check_books();
        prop_assert!(standing.is_empty());
        let load = host.load(END);
        prop_assert_eq!((load.in_progress, load.busy_cores), (0, 0));
        prop_assert_eq!(load.stalled, [0; Kind::COUNT]);
        for id in failed {
            prop_assert!(host.cache().get(&id).is_none_or(|made| made.as_ref() == Some(&id)));
        }
    }

    #[test]
    fn wait_fetch_and_run_add_up_to_the_time_in_the_host(
        history in history(), cores in 1usize..4, order in order(),
    ) {
        let mut came = HashMap::new();
        let mut host = host(cores, order);
        let mut now = Duration::ZERO;
        let check = |host: &mut Emulator, until: Duration, came: &HashMap<JobId, Duration>| {
            // One due time at a time, so that `advance` is called at the instant of the end.
            while let Some(due) = host.next_due().filter(|due| *due <= until) {
                for (job, d) in done(host.advance(due)) {
                    if let Some(came) = came.get(&job) {
                        assert_eq!(d.wait + d.fetch + d.run, due - *came);
                    }
                }
            }
        };
        for moment in &history {
            now += moment.after * MS;
            check(&mut host, now, &came);
            if let Act::Submit(request) = &moment.act {
                let id = host.submit(now, request.clone()).unwrap();
                came.insert(id, now);
                // A job whose results are all cached ends at once, and no joblet with it.
                for (job, d) in done(host.advance(now)) {
                    assert_eq!(d.wait + d.fetch + d.run, now - came[&job]);
                }
            }
        }
        check(&mut host, END, &came);
        prop_assert_eq!(host.load(END).in_progress, 0);
    }

    #[test]
    fn nothing_starts_before_something_more_important_or_older(
        jobs in prop::collection::vec(job(), 1..40),
    ) {
        let mut executor = Executor::new(&settings(1, 100), 1);
        for job in jobs {
            executor.submit(Duration::ZERO, job).unwrap();
        }
        let mut now = Duration::ZERO;
        loop {
            let best = executor.best_waiting();
            let Some(start) = executor.start(now) else { break };
            prop_assert_eq!(Some(start.joblet), best);
            now += MS;
            let product = Product { output: 0, bytes: start.work.bytes };
            executor.finish(now, start.joblet, Ok(product));
        }
    }

    #[test]
    fn cache_changes_replayed_from_any_version_give_the_present_set(
        inserts in prop::collection::vec((0..12u8, 0..3u128, 1..50u64, any::<bool>()), 1..60),
        log in 1usize..64,
        eviction in prop::sample::select(vec![Eviction::Oldest, Eviction::Largest, Eviction::LeastUsed]),
    ) {
        let mut cache = Cache::new(100, eviction, log, 9);
        let mut now = Duration::ZERO;
        let mut past: Vec<(u64, BTreeSet<Arc<str>>)> = vec![(0, BTreeSet::new())];
        for (key, version, bytes, derived) in inserts {
            let mut result = items_of(&format!("k{key}"), version);
            if derived {
                result.kind = Kind::Operators;
            }
            now += Duration::from_secs(bytes * 60);
            if cache.take_up(now, &result).is_none() {
                cache.insert(now, result, (), bytes);
            }
            prop_assert!(cache.bytes() <= 100);
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
}
