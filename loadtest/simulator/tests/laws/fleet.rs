// SPDX-License-Identifier: Apache-2.0
//! What happens to hosts shows in what happens to requests.

use std::time::Duration;

use weir_policy::{Overload, Selection};
use weir_replay::record::Outcome;
use weir_sim::scenario::{Accept, HostFault, Preemption, Trouble};
use weir_sim::workload::Work;
use weir_sim::{Ended, Scenario};

use crate::{SECOND, jobs, keys, play, policy, scenario};

const RUN: Duration = Duration::from_millis(50);

fn played(scenario: &Scenario) -> Vec<Ended> {
    play(scenario, &keys(40), jobs(2000, 40, SECOND / 50, RUN, 9))
}

fn within(all: &[Ended], from: u64, to: u64) -> impl Iterator<Item = &Ended> {
    let times = Duration::from_secs(from)..Duration::from_secs(to);
    all.iter().filter(move |ended| times.contains(&ended.at))
}

#[test]
fn a_lost_host_gets_nothing_and_its_requests_go_elsewhere() {
    let lost = |what, at| Trouble {
        at: at * SECOND,
        host: 0,
        what,
    };
    let all = played(&Scenario {
        policy: policy(Selection::Baseline, Overload::None),
        troubles: vec![lost(HostFault::Lost, 10), lost(HostFault::Back, 20)],
        ..scenario()
    });
    assert!(all.iter().all(|ended| ended.outcome == Outcome::Ok));
    let passed_over = within(&all, 10, 13).filter(|ended| ended.unconnected > 0);
    assert!(passed_over.count() > 0, "the next of the order gets them");
    let at_it = |from, to| within(&all, from, to).filter(|e| e.host == Some(0)).count();
    assert!(at_it(0, 9) > 50);
    assert_eq!(at_it(13, 19), 0, "the table says that it is down");
    assert!(at_it(25, 35) > 50, "and that it is back");
}

#[test]
fn a_slowed_host_takes_longer() {
    let slowed = Trouble {
        at: 10 * SECOND,
        host: 1,
        what: HostFault::Slowed(3.0),
    };
    let all = played(&Scenario {
        policy: policy(Selection::Random, Overload::None),
        troubles: vec![slowed],
        ..scenario()
    });
    let run = |from, to| {
        let of = within(&all, from, to).filter(|ended| ended.host == Some(1));
        let runs: Vec<_> = of
            .map(|e| e.spent.as_ref().unwrap().run.as_secs_f64())
            .collect();
        runs.iter().sum::<f64>() / runs.len() as f64
    };
    let ratio = run(11, 40) / run(0, 10);
    assert!((2.4..3.6).contains(&ratio), "{ratio}");
}

#[test]
fn preempted_hosts_say_so_before_and_come_back_with_an_empty_cache() {
    let all = played(&Scenario {
        // Who fetches only what is nowhere.
        policy: policy(Selection::Dynamic, Overload::None),
        preemption: Some(Preemption {
            hosts: 2,
            life: 20 * SECOND,
            notice: 3 * SECOND,
            away: (2 * SECOND, 4 * SECOND),
        }),
        ..scenario()
    });
    assert!(all.iter().all(|ended| ended.outcome == Outcome::Ok));
    let misses = |from, to| {
        let missed = |e: &&Ended| e.spent.as_ref().unwrap().fetch > Duration::ZERO;
        within(&all, from, to).filter(missed).count()
    };
    assert!(misses(0, 2) > 20, "at first nothing is cached");
    assert_eq!(misses(3, 4), 0);
    assert!(misses(4, 40) > 10, "what was cached there is fetched again");
    let lost = all.iter().filter(|ended| ended.attempts > 1).count();
    assert!(
        lost < 10,
        "{lost}: the notice was long enough for nearly all"
    );
}

#[test]
fn who_waits_too_long_for_a_connection_goes_to_the_next_host() {
    let slow_accept = Scenario {
        policy: policy(Selection::Baseline, Overload::None),
        accept: Accept {
            free: 2,
            per_job: SECOND,
            ..Accept::AT_ONCE
        },
        ..scenario()
    };
    let hot = || {
        let mut jobs = jobs(600, 1, SECOND / 100, RUN, 9);
        jobs.iter_mut().for_each(|job| job.work = Work::Whole(RUN));
        jobs
    };
    let silent = |all: &[Ended]| all.iter().map(|e| e.connect_timeouts).sum::<u32>();
    let hosts = |all: &[Ended]| {
        let mut used: Vec<_> = all.iter().filter_map(|ended| ended.host).collect();
        used.sort_unstable();
        used.dedup();
        used.len()
    };
    let patient = play(&slow_accept, &keys(1), hot());
    assert_eq!((silent(&patient), hosts(&patient)), (0, 1));
    let mut hasty = slow_accept;
    hasty.timeouts.connect = Some(SECOND / 2);
    let hasty = play(&hasty, &keys(1), hot());
    assert!(silent(&hasty) > 0);
    assert!(
        hosts(&hasty) >= 3,
        "those that a decision names, and whoever follows where one of them fails much"
    );
    let worst = |all: &[Ended]| all.iter().map(|e| e.duration).max();
    assert!(worst(&hasty) < worst(&patient));
}

#[test]
fn a_job_that_waits_too_long_is_given_up_by_its_host() {
    let mut scenario = Scenario {
        policy: policy(Selection::Baseline, Overload::None),
        attempts: 1,
        ..scenario()
    };
    scenario.timeouts.queue = Some(SECOND);
    let all = play(&scenario, &keys(1), jobs(600, 1, SECOND / 100, RUN, 9));
    let given_up = all.iter().filter(|ended| ended.queue_timeouts.len() == 1);
    assert!(given_up.clone().count() > 20);
    for ended in given_up {
        assert_eq!(ended.outcome, Outcome::Failed);
        assert!(ended.duration >= SECOND);
    }
    let waits = all.iter().filter(|ended| ended.outcome == Outcome::Ok);
    assert!(waits.map(|ended| ended.first_wait).max() <= Some(SECOND));
}

#[test]
fn every_job_that_was_given_up_is_told_with_the_host_that_did() {
    let mut scenario = Scenario {
        policy: policy(Selection::Random, Overload::None),
        attempts: 3,
        ..scenario()
    };
    scenario.timeouts.queue = Some(SECOND / 10);
    let all = play(&scenario, &keys(1), jobs(1000, 1, SECOND / 150, RUN, 9));
    let again = all.iter().filter(|e| e.queue_timeouts.len() > 1);
    let elsewhere = again.filter(|e| e.queue_timeouts.iter().any(|host| Some(*host) != e.host));
    assert!(elsewhere.count() > 5);
}

#[test]
fn a_caller_that_waits_too_long_for_an_answer_tries_again() {
    let mut scenario = Scenario {
        attempts: 3,
        ..scenario()
    };
    scenario.timeouts.read = Some(RUN);
    let all = played(&scenario);
    let timed_out = all.iter().filter(|ended| ended.read_timeouts > 0);
    assert!(timed_out.clone().any(|ended| ended.read_timeouts == 3));
    for ended in timed_out {
        let failed = ended.outcome == Outcome::Timeout;
        assert_eq!(failed, ended.read_timeouts == ended.attempts);
    }
}
