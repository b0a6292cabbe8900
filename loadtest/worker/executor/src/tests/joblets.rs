// SPDX-License-Identifier: Apache-2.0
//! Jobs of four joblets, run by hand: what is shared, skipped, stopped or lost.

use super::*;

/// A joblet named by what it makes; its output is that name.
#[derive(Debug, Clone, PartialEq)]
struct Named(String);

impl Work for Named {
    type Output = String;
    type Error = &'static str;
}

fn step(kind: Kind, name: &str, shareable: bool) -> Step<Named> {
    Step {
        kind,
        result: shareable.then(|| ResultId {
            kind,
            key: Arc::from("shop"),
            version: u128::from(name.bytes().map(u64::from).sum::<u64>()),
        }),
        keep: true,
        cores: 1,
        work: Named(name.to_owned()),
    }
}

/// A job on the items of one shop: shared rules, channel rules, answer.
fn job(class: u8, shared: &str, own: &str) -> Request<Named> {
    Request {
        class,
        steps: vec![
            step(Kind::FeedSource, "items", true),
            step(Kind::SharedOperators, shared, true),
            step(Kind::Operators, own, true),
            step(Kind::OutputFeed, "answer", false),
        ],
    }
}

fn executor(cores: usize) -> Executor<Named> {
    Executor::new(&settings(cores, 1000), 1)
}

fn made(start: &Start<Named>) -> Result<Product<String>, &'static str> {
    Ok(Product {
        output: start.work.0.clone(),
        bytes: 10,
    })
}

/// Runs everything there is, one joblet after another; returns what ran.
fn run(executor: &mut Executor<Named>) -> Vec<(Kind, Option<String>)> {
    let mut ran = Vec::new();
    while let Some(start) = executor.start(Duration::ZERO) {
        ran.push((start.kind, start.input.clone()));
        executor.finish(MS, start.joblet, made(&start));
        executor.check_books();
    }
    ran
}

#[test]
fn each_joblet_is_given_the_result_of_the_one_before() {
    let mut host = executor(1);
    host.submit(Duration::ZERO, job(0, "shared", "own"))
        .unwrap();
    let inputs = run(&mut host);
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        inputs,
        [
            (Kind::FeedSource, None),
            (Kind::SharedOperators, some("items")),
            (Kind::Operators, some("shared")),
            (Kind::OutputFeed, some("own")),
        ]
    );
    assert_eq!(done(host.events()).len(), 1);
}

#[test]
fn three_jobs_with_two_sets_of_shared_rules_run_one_fetch_and_two_sets_as_in_figure_2() {
    let mut host = executor(4);
    for (shared, own) in [("s1", "a"), ("s2", "b"), ("s2", "c")] {
        host.submit(Duration::ZERO, job(16, shared, own)).unwrap();
    }
    let ran = run(&mut host);
    let count = |kind| ran.iter().filter(|(k, _)| *k == kind).count();
    let counts = Kind::ALL.map(count);
    assert_eq!(counts, [1, 2, 3, 3]);
    assert_eq!(done(host.events()).len(), 3);
}

#[test]
fn a_cached_result_skips_everything_before_it() {
    let mut host = executor(1);
    host.submit(Duration::ZERO, job(0, "shared", "own"))
        .unwrap();
    run(&mut host);
    host.submit(Duration::ZERO, job(0, "shared", "own"))
        .unwrap();
    assert_eq!(run(&mut host), [(Kind::OutputFeed, Some("own".to_owned()))]);
    host.submit(Duration::ZERO, job(0, "shared", "other"))
        .unwrap();
    let kinds: Vec<_> = run(&mut host).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [Kind::Operators, Kind::OutputFeed]);
    let sources: Vec<_> = done(host.events())
        .into_iter()
        .map(|(_, s)| s.source)
        .collect();
    assert_eq!(sources, [Source::Miss, Source::Hit, Source::Hit]);
}

#[test]
fn what_shall_not_be_cached_is_shared_but_not_kept() {
    let mut host = executor(1);
    let mut request = job(0, "shared", "own");
    request.steps[1].keep = false;
    request.steps[2].keep = false;
    host.submit(Duration::ZERO, request.clone()).unwrap();
    host.submit(Duration::ZERO, request.clone()).unwrap();
    assert_eq!(run(&mut host).len(), 5, "only the answer is made twice");
    assert_eq!(host.cache().len(), 1);
}

#[test]
fn a_result_is_kept_if_anybody_who_shared_it_may_keep_it() {
    let mut host = executor(1);
    let mut unkept = job(0, "s", "a");
    unkept.steps.iter_mut().for_each(|step| step.keep = false);
    host.submit(Duration::ZERO, unkept).unwrap();
    host.submit(Duration::ZERO, job(0, "s", "a")).unwrap();
    run(&mut host);
    assert_eq!(host.cache().len(), 3);
}

#[test]
fn a_prefetch_leaves_the_items_and_a_second_one_ends_at_once() {
    let mut host = executor(1);
    let mut prefetch = job(0, "", "");
    prefetch.steps.truncate(1);
    host.submit(Duration::ZERO, prefetch.clone()).unwrap();
    assert_eq!(run(&mut host).len(), 1);
    assert!(host.cache().contains("shop"));
    host.submit(Duration::ZERO, prefetch).unwrap();
    assert_eq!(done(host.events()).len(), 2);
    host.check_books();
}

#[test]
fn a_failed_joblet_fails_all_who_shared_it_and_leaves_nothing() {
    let mut host = executor(1);
    host.submit(Duration::ZERO, job(0, "s", "a")).unwrap();
    host.submit(Duration::ZERO, job(16, "t", "b")).unwrap();
    let start = host.start(Duration::ZERO).unwrap();
    host.finish(MS, start.joblet, Err("store unreachable"));
    let events = host.events();
    let failed = |event: &&Event<_>| matches!(event, Event::Ended(_, Err("store unreachable")));
    assert_eq!(events.iter().filter(failed).count(), 2);
    assert!(host.cache().is_empty());
    assert_eq!(host.load(MS).in_progress, 0);
    host.submit(MS, job(0, "s", "a")).unwrap();
    assert_eq!(run(&mut host).len(), 4, "the next job tries again");
}

#[test]
fn an_aborted_joblet_is_stopped_only_if_it_runs_for_nobody_else_and_is_not_joined_again() {
    let mut host = executor(2);
    let alone = host.submit(Duration::ZERO, job(0, "s", "a")).unwrap();
    let start = host.start(Duration::ZERO).unwrap();
    assert_eq!(host.abort(alone), Some(start.joblet));
    let next = host.submit(MS, job(0, "s", "a")).unwrap();
    let again = host.start(MS).unwrap();
    assert_eq!(
        again.kind,
        Kind::FeedSource,
        "not the one that is being stopped"
    );
    let sharer = host.submit(MS, job(16, "s", "a")).unwrap();
    host.finish(MS, start.joblet, Err("stopped"));
    host.check_books();
    assert!(done(host.events()).is_empty(), "nobody waited for it");
    assert_eq!(host.abort(next), None, "another job wants it");
    host.finish(MS, again.joblet, made(&again));
    run(&mut host);
    assert_eq!(done(host.events())[0].0, sharer);
    assert_eq!(host.load(MS).busy_cores, 0);
}

#[test]
fn a_result_evicted_between_two_joblets_is_not_lost_to_its_job() {
    let mut host = Executor::new(&settings(1, 10), 1);
    host.submit(Duration::ZERO, job(0, "s", "a")).unwrap();
    let start = host.start(Duration::ZERO).unwrap();
    host.finish(MS, start.joblet, made(&start));
    let mut other = job(0, "t", "b");
    for step in &mut other.steps {
        step.result = step.result.take().map(|r| ResultId {
            key: Arc::from("other"),
            ..r
        });
    }
    host.submit(MS, other).unwrap();
    assert_eq!(run(&mut host).len(), 7);
    assert_eq!(done(host.events()).len(), 2);
}

#[test]
fn a_joblet_takes_as_many_cores_as_it_can_use_and_are_idle() {
    let mut host = executor(4);
    let mut wide = job(0, "s", "a");
    wide.steps[0].cores = 3;
    let mut wider = job(0, "s", "a");
    wider.steps[0].cores = 100;
    wider.steps[0].result = None;
    host.submit(Duration::ZERO, wide).unwrap();
    host.submit(Duration::ZERO, wider).unwrap();
    let (first, second) = (
        host.start(Duration::ZERO).unwrap(),
        host.start(Duration::ZERO).unwrap(),
    );
    assert_eq!((first.cores, second.cores), (3, 1));
    assert!(host.start(Duration::ZERO).is_none());
    assert_eq!(host.load(MS).busy_cores, 4);
}

#[test]
fn a_job_is_told_when_its_first_and_its_last_joblet_get_a_core() {
    let mut host = executor(1);
    let first = host.submit(Duration::ZERO, job(0, "s", "a")).unwrap();
    assert!(host.events().is_empty());
    let start = host.start(Duration::ZERO).unwrap();
    assert_eq!(host.events(), [Event::Started(first)]);
    let second = host.submit(MS, job(0, "t", "b")).unwrap();
    assert_eq!(
        host.events(),
        [Event::Started(second)],
        "it shares the fetch that runs"
    );
    host.finish(2 * MS, start.joblet, made(&start));
    assert_eq!(host.load(2 * MS).stalled, [0, 2, 0, 0]);
    run(&mut host);
    let events = host.events();
    let [Event::Began(began, spent), Event::Ended(ended, Ok(_)), ..] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!((*began, *ended), (first, first));
    assert_eq!((spent.fetch, spent.source), (2 * MS, Source::Miss));
}
