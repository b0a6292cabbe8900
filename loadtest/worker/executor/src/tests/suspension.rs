// SPDX-License-Identifier: Apache-2.0
//! Joblets that run make room for more important ones.

use super::*;

/// Lasts until the test says that it has ended.
#[derive(Debug, Clone)]
struct Held;

impl Work for Held {
    type Output = ();
    type Error = &'static str;
}

const MADE: Result<Product<()>, &str> = Ok(Product {
    output: (),
    bytes: 1,
});

fn executor(cores: usize) -> Executor<Held> {
    let settings = Settings {
        order: Order::Suspending,
        ..settings(cores, 1000)
    };
    Executor::new(&settings, 1)
}

fn job(class: u8, kinds: &[Kind], cores: usize) -> Request<Held> {
    let step = |kind: &Kind| Step {
        kind: *kind,
        result: None,
        keep: false,
        cores,
        work: Held,
    };
    Request {
        class,
        steps: kinds.iter().map(step).collect(),
    }
}

fn rules(class: u8) -> Request<Held> {
    job(class, &[Kind::Operators], 1)
}

#[test]
fn what_runs_makes_room_goes_on_later_and_its_time_adds_up() {
    let mut host = executor(1);
    let low = host.submit(Duration::ZERO, rules(16)).unwrap();
    let start = host.start(2 * MS).unwrap();
    assert!(!start.resumed);
    assert_eq!(host.suspend(), None, "nobody waits");
    let high = host.submit(3 * MS, rules(0)).unwrap();
    assert!(host.start(3 * MS).is_none());
    assert_eq!(host.suspend(), Some(start.joblet));
    assert_eq!(host.suspend(), None, "one for each that waits");
    assert!(host.suspended(5 * MS, start.joblet));
    host.check_books();
    let load = host.load(5 * MS);
    assert_eq!(
        (load.busy_cores, load.queued[0], load.queued[16]),
        (0, 1, 1)
    );
    let first = host.start(5 * MS).unwrap();
    assert!(host.start(5 * MS).is_none());
    assert_eq!(host.suspend(), None, "what waits is less important");
    host.finish(9 * MS, first.joblet, MADE);
    let again = host.start(9 * MS).unwrap();
    assert_eq!((again.joblet, again.resumed), (start.joblet, true));
    host.finish(12 * MS, again.joblet, MADE);
    let events = host.events();
    let began = |event: &&Event<_>| matches!(event, Event::Began(job, _) if *job == low);
    assert_eq!(events.iter().filter(began).count(), 1);
    let done = done(events);
    assert_eq!(
        done.iter().map(|(job, _)| *job).collect::<Vec<_>>(),
        [high, low]
    );
    let spent = &done[1].1;
    assert_eq!(
        (spent.wait, spent.run, spent.cost.run),
        (6 * MS, 6 * MS, 6 * MS)
    );
    host.check_books();
}

#[test]
fn of_several_the_least_important_and_youngest_is_asked_and_no_fetch() {
    let mut host = executor(4);
    for class in [0, 16, 16, 3] {
        host.submit(Duration::ZERO, rules(class)).unwrap();
    }
    let mut running: Vec<_> = std::iter::from_fn(|| host.start(Duration::ZERO)).collect();
    running.sort_by_key(|start| start.joblet);
    for _ in 0..5 {
        host.submit(MS, rules(2)).unwrap();
    }
    let asked: Vec<_> = std::iter::from_fn(|| host.suspend()).collect();
    let expected: Vec<_> = [2, 1, 3].map(|at: usize| running[at].joblet).into();
    assert_eq!(asked, expected, "and none of class 0");
    host.check_books();

    for (kind, cores, asked) in [
        (Kind::FeedSource, 1, false),
        (Kind::OutputFeed, 2, false),
        (Kind::OutputFeed, 1, true),
    ] {
        let mut host = executor(cores);
        host.submit(Duration::ZERO, job(16, &[kind], cores))
            .unwrap();
        host.start(Duration::ZERO).unwrap();
        host.submit(MS, rules(0)).unwrap();
        assert_eq!(host.suspend().is_some(), asked, "{kind:?} on {cores}");
    }
}

#[test]
fn no_more_stand_than_there_are_cores() {
    let mut host = executor(1);
    host.submit(Duration::ZERO, rules(20)).unwrap();
    let low = host.start(Duration::ZERO).unwrap();
    host.submit(MS, rules(10)).unwrap();
    assert_eq!(host.suspend(), Some(low.joblet));
    host.suspended(MS, low.joblet);
    host.start(MS).unwrap();
    host.submit(2 * MS, rules(0)).unwrap();
    assert_eq!(host.suspend(), None);
}

#[test]
fn what_nobody_wants_any_more_does_not_stand_on() {
    let mut host = executor(1);
    let low = host.submit(Duration::ZERO, rules(16)).unwrap();
    let start = host.start(Duration::ZERO).unwrap();
    let high = host.submit(MS, rules(0)).unwrap();
    host.suspend();
    assert!(host.suspended(MS, start.joblet));
    assert_eq!(host.cancel(low), Some(Unwanted::Stands(start.joblet)));
    host.check_books();

    let low = host.submit(MS, rules(16)).unwrap();
    let first = host.start(MS).unwrap();
    host.finish(2 * MS, first.joblet, MADE);
    assert_eq!(done(host.events())[0].0, high);
    let start = host.start(2 * MS).unwrap();
    host.submit(3 * MS, rules(0)).unwrap();
    assert_eq!(host.suspend(), Some(start.joblet));
    assert_eq!(host.cancel(low), Some(Unwanted::Runs(start.joblet)));
    assert!(!host.suspended(4 * MS, start.joblet), "to be stopped");
    host.check_books();
    assert_eq!(host.load(4 * MS).in_progress, 1);
    host.finish(5 * MS, start.joblet, Err("stopped"));
    host.check_books();
}

#[test]
fn it_goes_on_with_the_cores_that_are_idle_and_no_more_than_it_had() {
    let mut host = executor(4);
    host.submit(Duration::ZERO, job(16, &[Kind::Operators], 4))
        .unwrap();
    let low = host.start(Duration::ZERO).unwrap();
    assert_eq!(low.cores, 4);
    host.submit(MS, job(0, &[Kind::Operators], 3)).unwrap();
    host.suspend();
    host.suspended(MS, low.joblet);
    let high = host.start(MS).unwrap();
    let again = host.start(MS).unwrap();
    assert_eq!((high.cores, again.cores, again.resumed), (3, 1, true));
    host.check_books();
}

#[test]
fn a_modelled_joblet_stands_at_once_and_loses_nothing() {
    let settings = Settings {
        order: Order::Suspending,
        ..settings(1, 1000)
    };
    let mut host = Emulator::new(&settings, 1);
    host.submit(Duration::ZERO, request("", 16, 100 * MS))
        .unwrap();
    host.submit(10 * MS, request("", 0, 5 * MS)).unwrap();
    assert_eq!(host.free_in(12 * MS, 16), 93 * MS, "what is left of both");
    let ends: Vec<_> = std::iter::from_fn(|| {
        let due = host.next_due()?;
        Some((due, done(host.advance(due))))
    })
    .collect();
    let [(first, high), (second, low)] = &ends[..] else {
        panic!("{ends:?}");
    };
    assert_eq!((*first, *second), (15 * MS, 105 * MS));
    assert_eq!(
        (high[0].1.wait, low[0].1.wait, low[0].1.run),
        (Duration::ZERO, 5 * MS, 100 * MS)
    );
}
