// SPDX-License-Identifier: Apache-2.0
//! Which requests get a second try.

use std::time::Duration;

use proptest::prelude::*;
use weir_policy::{Hedges, Hedging, Host, Keys, Outcome, Policy, Rank, Request};

use crate::fleet::{NOW, cluster, host, id, load, millis, rng, seconds};

const AFTER: Duration = Duration::from_millis(30);

fn policy(idle_percent: u32, classes: u32) -> Policy {
    Policy {
        hedging: Hedging {
            after: AFTER,
            idle_percent,
            classes,
        },
        ranked_hosts: 2,
        ..Policy::default()
    }
}

fn with(number: usize, cores: u32, in_progress: Option<u32>) -> Host {
    Host {
        load: in_progress.map(|jobs| load(NOW, jobs, 0)),
        capacity_millicores: cores * 1000,
        ..host(number)
    }
}

/// What a request of this class gets of two hosts, of which the second has these cores and jobs.
fn hedge(policy: Policy, class: u8, cores: u32, in_progress: Option<u32>) -> Option<Duration> {
    // The first is the idlest.
    let hosts = vec![with(0, 64, Some(0)), with(1, cores, in_progress)];
    let mut cluster = cluster(policy, hosts);
    if in_progress.is_none_or(|jobs| jobs == 0) {
        cluster.set_peers_in_flight([(id(1), 1)].into_iter(), NOW);
    }
    let request = Request {
        keys: Keys::default(),
        rank: Rank::new(class, 0),
    };
    let decision = cluster.decide(&request, NOW, &mut rng(0));
    let Outcome::Send(ranked) = decision.outcome else {
        panic!("{decision:?}");
    };
    assert_eq!(ranked.as_slice(), [0, 1]);
    cluster.hedge(&ranked, &request, NOW)
}

#[test]
fn only_classes_that_are_to_be_hedged_are() {
    assert_eq!(hedge(policy(25, 1), 0, 8, Some(1)), Some(AFTER));
    assert_eq!(hedge(policy(25, 1), 1, 8, Some(1)), None);
    let off = Policy {
        hedging: Hedging::default(),
        ..policy(25, 32)
    };
    assert_eq!(hedge(off, 0, 8, Some(1)), None);
}

#[test]
fn where_no_core_has_to_be_idle_every_slow_request_gets_a_second_try() {
    let busy = Some(80);
    assert_eq!(hedge(policy(1, 32), 0, 8, busy), None);
    assert_eq!(hedge(policy(0, 32), 0, 8, busy), Some(AFTER));
    assert_eq!(
        hedge(policy(0, 32), 0, 0, None),
        Some(AFTER),
        "nothing is known"
    );
    assert_eq!(hedge(policy(0, 1), 1, 8, busy), None, "another class");
}

#[test]
fn a_host_of_which_too_little_is_known_is_busy() {
    assert_eq!(hedge(policy(25, 32), 0, 0, Some(1)), None, "no capacity");
    assert_eq!(hedge(policy(25, 32), 0, 8, None), None, "no load");
}

#[test]
fn a_load_that_is_stale_and_a_host_that_failed_are_no_idle_capacity() {
    let hosts = vec![with(0, 8, Some(0)), with(1, 8, Some(1))];
    let mut cluster = cluster(policy(25, 32), hosts);
    let request = Request {
        keys: Keys::default(),
        rank: Rank::new(0, 0),
    };
    let Outcome::Send(ranked) = cluster.decide(&request, NOW, &mut rng(0)).outcome else {
        panic!("not sent");
    };
    let second = cluster.id(ranked.as_slice()[1]).unwrap();
    assert_eq!(cluster.hedge(&ranked, &request, NOW), Some(AFTER));
    assert_eq!(cluster.hedge(&ranked, &request, NOW + seconds(6)), None);
    cluster.failed(second, &Keys::default(), NOW, NOW);
    assert_eq!(cluster.hedge(&ranked, &request, NOW + millis(1)), None);
}

#[test]
fn second_tries_that_are_not_over_count_as_jobs_of_the_second_host() {
    // Four of eight cores must stay idle.
    let hosts = vec![with(0, 64, Some(0)), with(1, 8, Some(2))];
    let cluster = cluster(policy(50, 32), hosts);
    let request = Request {
        keys: Keys::default(),
        rank: Rank::new(0, 0),
    };
    let Outcome::Send(ranked) = cluster.decide(&request, NOW, &mut rng(0)).outcome else {
        panic!("not sent");
    };
    assert_eq!(ranked.as_slice(), [0, 1]);
    let mut hedges = Hedges::default();
    let permit = |hedges: &mut Hedges| hedges.permit(&cluster, &ranked, &request, NOW);
    let permitted = Some((id(1), AFTER));
    for expected in [permitted, permitted, permitted, None, None] {
        assert_eq!(permit(&mut hedges), expected);
    }
    hedges.ended(id(1));
    assert_eq!(permit(&mut hedges), permitted);
    assert_eq!(permit(&mut hedges), None);
    for _ in 0..3 {
        hedges.ended(id(1));
    }
    // One too many and one of a host without any are nothing.
    hedges.ended(id(1));
    hedges.ended(id(0));
    assert_eq!(permit(&mut hedges), permitted);
}

proptest! {
    #[test]
    fn the_second_host_has_a_core_and_the_wanted_share_to_spare(
        cores in 1u32..64,
        jobs in 1u32..80,
        percent in 1u32..=100,
    ) {
        let idle = cores.saturating_sub(jobs);
        let wanted = idle >= 1 && idle * 100 >= cores * percent;
        prop_assert_eq!(hedge(policy(percent, 32), 0, cores, Some(jobs)).is_some(), wanted);
    }
}
