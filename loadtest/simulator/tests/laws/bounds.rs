// SPDX-License-Identifier: Apache-2.0
//! Bounds are what they are called.

use std::time::Duration;

use proptest::prelude::*;
use weir_policy::{Overload, Selection};
use weir_replay::record::Outcome;
use weir_sim::scenario::{HostFault, Placement, Preemption, Trouble};
use weir_sim::workload::LOW;
use weir_sim::{Ended, Scenario};

use crate::queueing::erlang_c;
use crate::{SECOND, jobs, keys, play, policy, scenario};

const MS: Duration = Duration::from_millis(1);

fn by(placement: Placement) -> Scenario {
    Scenario {
        placement,
        ..scenario()
    }
}

fn mean(all: &[Ended]) -> f64 {
    let sum: Duration = all.iter().map(|ended| ended.duration).sum();
    sum.as_secs_f64() / all.len() as f64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Eight cores, 70 to 90 % of them busy, and every fifth job is followed by another. The bound is greedy: by chance
    /// others may be a little before it. Seen: by 0.046 at most in 400 cases, and once by 0.115.
    #[test]
    fn no_policy_comes_before_the_clairvoyant(seed in 0u64..1000, run in 28u32..36) {
        let work = || jobs(4000, 12, 5 * MS, run * MS, seed);
        let bound = mean(&play(&by(Placement::Clairvoyant), &keys(12), work()));
        for selection in Selection::ALL {
            let scenario = Scenario { policy: policy(selection, Overload::None), ..scenario() };
            let got = mean(&play(&scenario, &keys(12), work()));
            prop_assert!(bound <= 1.2 * got, "{selection:?}: {got} before {bound}");
        }
    }

    #[test]
    fn every_request_ends_once_whatever_happens_to_hosts(seed in 0u64..1000, clairvoyant: bool) {
        let placement = if clairvoyant { Placement::Clairvoyant } else { Placement::CentralQueue };
        let mut scenario = by(placement);
        scenario.seed = seed;
        scenario.timeouts.deadline = SECOND;
        let fault = |at, host, what| Trouble { at: at * SECOND, host, what };
        scenario.troubles = vec![
            fault(1, 0, HostFault::Lost), fault(2, 0, HostFault::Back), fault(1, 1, HostFault::Slowed(3.0)),
            fault(2, 1, HostFault::Lost), fault(2, 2, HostFault::Lost), fault(2, 3, HostFault::Lost),
            fault(3, 3, HostFault::Back),
        ];
        let jobs = jobs(1000, 12, 5 * MS, 60 * MS, seed);
        let following = jobs.iter().filter(|job| job.then.is_some()).count();
        let all = play(&scenario, &keys(12), jobs);
        prop_assert_eq!(all.len(), 1000 + following);
        let mut places: Vec<_> = all.iter().map(|ended| ended.index).collect();
        places.sort_unstable();
        places.dedup();
        prop_assert_eq!(places.len(), all.len());
        prop_assert!(all.iter().any(|ended| ended.outcome == Outcome::Ok));
    }
}

#[test]
fn one_queue_waits_as_erlang_c_has_it() {
    let scenario = by(Placement::CentralQueue);
    let mut work = jobs(60_000, 0, 5 * MS, 32 * MS, 3);
    for job in &mut work {
        job.class = LOW;
        job.then = None;
    }
    let all = play(&scenario, &[], work);
    let waits: Duration = all
        .iter()
        .map(|ended| ended.duration - ended.spent.as_ref().unwrap().run - 2 * scenario.network)
        .sum();
    let got = waits.as_secs_f64() / all.len() as f64;
    // 6.4 of 8 cores are busy.
    let expected = erlang_c(8, 6.4) * 0.032 / (8.0 - 6.4);
    assert!((got / expected - 1.0).abs() < 0.15, "{got} for {expected}");
}

#[test]
fn the_clairvoyant_leaves_out_hosts_that_will_be_gone_and_the_slow() {
    let mut scenario = by(Placement::Clairvoyant);
    scenario.preemption = Some(Preemption {
        hosts: 2,
        life: 10 * SECOND,
        notice: SECOND,
        away: (SECOND, 2 * SECOND),
    });
    // Of each of the two hosts some ten lives.
    let all = play(&scenario, &keys(12), jobs(12_000, 12, 10 * MS, 20 * MS, 1));
    // More important requests that come later may still make one late.
    let lost = all.iter().filter(|ended| ended.attempts > 1).count();
    assert!(lost < 3, "{lost} were lost with their hosts");
    scenario.preemption = None;
    scenario.troubles = vec![Trouble {
        at: Duration::ZERO,
        host: 2,
        what: HostFault::Slowed(10.0),
    }];
    let all = play(&scenario, &keys(12), jobs(4000, 12, 10 * MS, 20 * MS, 1));
    let slow = all.iter().filter(|ended| ended.host == Some(2)).count();
    assert!(slow < 100, "{slow} went to the slow host");
}

#[test]
fn a_queue_of_any_length_goes_to_any_number_of_cores_at_once() {
    let mut scenario = by(Placement::CentralQueue);
    (scenario.hosts, scenario.host.cores) = (1, 5000);
    let fault = |at, what| Trouble { at, host: 0, what };
    scenario.troubles = vec![
        fault(Duration::ZERO, HostFault::Lost),
        fault(SECOND, HostFault::Back),
    ];
    let mut work = jobs(5000, 0, MS / 10, 20 * MS, 1);
    work.iter_mut().for_each(|job| job.then = None);
    let all = play(&scenario, &[], work);
    assert!(
        all.iter()
            .all(|ended| ended.outcome == Outcome::Ok && ended.attempts == 1)
    );
}

#[test]
fn who_gives_up_leaves_the_queue() {
    let mut scenario = by(Placement::CentralQueue);
    scenario.timeouts.deadline = SECOND;
    let fault = |at, host, what| Trouble { at, host, what };
    scenario.troubles = (0..scenario.hosts)
        .flat_map(|host| {
            let lost = fault(Duration::ZERO, host, HostFault::Lost);
            [lost, fault(5 * SECOND, host, HostFault::Back)]
        })
        .collect();
    let all = play(&scenario, &keys(12), jobs(1000, 12, 10 * MS, 20 * MS, 1));
    for ended in &all {
        // What has come in the last second still waits for cores for a while.
        if !(4 * SECOND..9 * SECOND / 2).contains(&ended.at) {
            let gave_up = ended.outcome == Outcome::Timeout;
            assert_eq!(gave_up, ended.at < 4 * SECOND, "{ended:?}");
        }
    }
}
