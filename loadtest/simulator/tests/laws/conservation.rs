// SPDX-License-Identifier: Apache-2.0
//! Nothing is lost and nothing ends twice, whatever happens to the hosts.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use weir_policy::{Hedging, Holding, Overload, Policy, Selection};
use weir_replay::record::Outcome;
use weir_sim::Scenario;
use weir_sim::scenario::{Accept, Balancer, HostFault, Placement, Preemption, Timeouts, Trouble};

use crate::{SECOND, jobs, keys, overloads, play, policy, scenario};

fn fates() -> impl Strategy<Value = Vec<Trouble>> {
    let fault = prop_oneof![
        Just(HostFault::Lost),
        Just(HostFault::Back),
        (0.2..4.0).prop_map(HostFault::Slowed),
    ];
    let trouble = (0u64..20_000, 0usize..4, fault).prop_map(|(ms, host, what)| Trouble {
        at: Duration::from_millis(ms),
        host,
        what,
    });
    prop::collection::vec(trouble, 0..8)
}

fn patience() -> impl Strategy<Value = Option<Duration>> {
    prop::option::of((50u64..2000).prop_map(Duration::from_millis))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn every_request_ends_exactly_once(
        seed in 0u64..1000, between_us in 3000u64..30_000, troubles in fates(),
        (connect, read, queue) in (patience(), patience(), patience()),
        per_job_ms in 0u64..200, attempts in 1u32..5, preempted in any::<bool>(),
        (for_eligible, for_cached, max_held) in (0u64..3000, 0u64..500, 1usize..40),
        hedge_ms in 0u64..200, gives_back in any::<bool>(),
        selection in prop::sample::select(&Selection::ALL),
        stock in prop::option::weighted(0.3, prop::sample::select(&Balancer::ALL)),
        // Most are shed by the breakers, and may wait then.
        overload in prop::sample::select(overloads().to_vec()),
    ) {
        let preemption = Preemption {
            hosts: 3,
            life: 8 * SECOND,
            notice: SECOND,
            away: (SECOND, 3 * SECOND),
        };
        let scenario = Scenario {
            policy: Policy {
                holding: Holding {
                    for_eligible: Duration::from_millis(for_eligible),
                    for_cached: Duration::from_millis(for_cached),
                    max_held,
                },
                hedging: Hedging { after: Duration::from_millis(hedge_ms), ..Hedging::default() },
                ..policy(selection, overload)
            },
            accept: Accept { free: 5, per_job: Duration::from_millis(per_job_ms), ..Accept::AT_ONCE },
            timeouts: Timeouts { deadline: 15 * SECOND, connect, read, queue },
            preemption: preempted.then_some(preemption),
            troubles,
            attempts,
            gives_back,
            placement: stock.map_or(Placement::Callers, Placement::Stock),
            ..scenario()
        };
        let between = Duration::from_micros(between_us);
        let jobs = jobs(1000, 30, between, SECOND / 20, seed);
        let expected = jobs.iter().map(|job| 1 + usize::from(job.then.is_some())).sum::<usize>();
        let all = play(&scenario, &keys(30), jobs);
        let indexes: HashSet<_> = all.iter().map(|ended| ended.index).collect();
        prop_assert_eq!(all.len(), expected, "each ends");
        prop_assert_eq!(indexes.len(), expected, "once");
        for ended in &all {
            prop_assert!(ended.duration <= scenario.timeouts.deadline);
            prop_assert!(ended.attempt <= ended.duration);
            prop_assert!(ended.attempts - ended.shed_attempts <= attempts);
            prop_assert_eq!(ended.spent.is_some(), ended.outcome == Outcome::Ok);
            if let Some(spent) = &ended.spent {
                let at_host = spent.wait + spent.fetch + spent.run;
                prop_assert!(at_host <= ended.attempt, "{:?}", ended);
                prop_assert!(ended.first_wait <= spent.wait);
            }
        }
    }
}

#[test]
fn without_trouble_time_at_the_host_and_on_the_way_are_the_whole_attempt() {
    let scenario = scenario();
    let jobs = jobs(2000, 30, SECOND / 50, SECOND / 20, 3);
    for ended in play(&scenario, &keys(30), jobs) {
        let spent = ended.spent.expect("nothing is in the way");
        let way = 2 * scenario.network;
        assert_eq!(ended.attempt, spent.wait + spent.fetch + spent.run + way);
        assert_eq!(ended.duration, ended.attempt);
    }
}

#[test]
fn requests_that_may_wait_for_a_host_are_not_shed_before_their_time() {
    let shed = |for_eligible: Duration| {
        let scenario = Scenario {
            policy: Policy {
                holding: Holding {
                    for_eligible,
                    ..Holding::default()
                },
                ..policy(Selection::Dynamic, Overload::Breaker { queued_jobs: 0 })
            },
            timeouts: Timeouts {
                deadline: 30 * SECOND,
                ..scenario().timeouts
            },
            ..scenario()
        };
        let jobs = jobs(2000, 30, SECOND / 120, SECOND / 20, 3);
        let all = play(&scenario, &keys(30), jobs);
        assert!(all.iter().all(|ended| ended.outcome == Outcome::Ok));
        all.iter().map(|ended| ended.shed_attempts).sum::<u32>()
    };
    let (at_once, after_a_minute) = (shed(Duration::ZERO), shed(60 * SECOND));
    assert!(at_once > 100, "{at_once}");
    assert_eq!(after_a_minute, 0);
}

#[test]
fn a_second_try_helps_where_one_host_is_slow() {
    let slow = Trouble {
        at: Duration::ZERO,
        host: 0,
        what: HostFault::Slowed(10.0),
    };
    let worst = |after: Duration| {
        let scenario = Scenario {
            policy: Policy {
                hedging: Hedging {
                    after,
                    ..Hedging::default()
                },
                ..policy(Selection::Random, Overload::None)
            },
            troubles: vec![slow],
            ..scenario()
        };
        let all = play(
            &scenario,
            &keys(30),
            jobs(2000, 30, SECOND / 10, SECOND / 20, 3),
        );
        assert!(all.iter().all(|ended| ended.outcome == Outcome::Ok));
        let mut durations: Vec<_> = all.iter().map(|ended| ended.duration).collect();
        durations.sort_unstable();
        durations[durations.len() * 99 / 100]
    };
    let (without, with) = (worst(Duration::ZERO), worst(SECOND / 5));
    assert!(with * 2 < without, "{with:?} {without:?}");
}
