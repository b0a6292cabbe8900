// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;

const CORES: u32 = 4;
const RUN: Duration = Duration::from_millis(200);

fn params() -> Params {
    Params {
        target: Duration::from_millis(500),
        ..Params::default()
    }
}

/// A host whose requests run so long.
fn host() -> Occupancy {
    let mut host = Occupancy::default();
    host.ran(RUN);
    host
}

#[derive(Clone, Debug)]
enum Event {
    Renewed(u64),
    Granted(u64, u32),
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let demand = prop_oneof![4 => 0u32..20, 1 => any::<u32>()];
    let event = prop_oneof![
        (0u64..200).prop_map(Event::Renewed),
        (0u64..12, demand).prop_map(|(client, demand)| Event::Granted(client, demand)),
    ];
    let pause = prop_oneof![20 => 0u64..200, 1 => 0u64..20_000];
    prop::collection::vec((pause, event), 0..300)
}

proptest! {
    #[test]
    fn what_is_issued_is_counted_and_no_grant_goes_beyond_the_pool_but_for_a_fair_share(events in events()) {
        let (host, params) = (host(), params());
        let mut pool = Pool::default();
        let mut now = Duration::ZERO;
        // The longest queue that the host takes, and its cores.
        let most = u64::from(CORES) * 6;
        for (pause, event) in events {
            now += Duration::from_millis(pause);
            match event {
                Event::Renewed(in_flight) => pool.renew(&params, &host, (in_flight, CORES), now),
                Event::Granted(client, demand) => {
                    let had = pool.clients.get(&client).map_or(0, |client| client.credits);
                    let credits = pool.grant(client, demand, now);
                    let share = pool.total() / pool.clients.len() as u64;
                    let in_pool = pool.issued <= pool.total();
                    prop_assert!(credits <= had || in_pool || u64::from(credits) <= share.max(1));
                    prop_assert!(credits >= 1);
                }
            }
            let issued: u64 = pool.clients.values().map(|client| u64::from(client.credits)).sum();
            prop_assert_eq!(issued, pool.issued());
            prop_assert!(pool.total() <= most);
            prop_assert!(pool.issued() <= 2 * most + pool.clients.len() as u64);
        }
    }

    #[test]
    fn a_pool_that_stands_is_handed_out_and_no_more_once_every_client_has_been_answered_often_enough(
        events in events(), demands in prop::collection::vec(0u32..50, 12),
    ) {
        let (host, params) = (host(), params());
        let mut pool = Pool::default();
        let mut now = Duration::ZERO;
        for (pause, event) in events {
            now += Duration::from_millis(pause);
            match event {
                Event::Renewed(in_flight) => pool.renew(&params, &host, (in_flight, CORES), now),
                Event::Granted(client, demand) => {
                    pool.grant(client, demand, now);
                }
            }
        }
        for _ in 0..100 {
            for (client, demand) in (0..).zip(&demands) {
                pool.grant(client, *demand, now);
            }
        }
        let (clients, total) = (demands.len() as u64, pool.total());
        prop_assert!(pool.issued() <= total.max(clients) + clients, "{} of {total}", pool.issued());
        let wanted: u64 = demands.iter().map(|demand| u64::from(*demand)).sum();
        prop_assert!(pool.issued() + clients >= wanted.min(total), "{} of {total}", pool.issued());
    }

    #[test]
    fn whoever_claims_much_takes_from_nobody_more_than_its_share(
        claims in prop::collection::vec(any::<u32>(), 1..60),
        demands in prop::collection::vec(1u32..10, 1..10),
        rounds in 0u64..60,
    ) {
        let (host, params) = (host(), params());
        let mut pool = Pool::default();
        for round in 0..rounds {
            pool.renew(&params, &host, (0, CORES), ROUND.1 * (round as u32 + 1));
        }
        let now = ROUND.1 * 60;
        let clients = demands.len() as u64 + 1;
        (0..clients).for_each(|client| {
            pool.grant(client, 0, now);
        });
        for (turn, claim) in claims.into_iter().enumerate() {
            pool.grant(0, claim, now);
            let honest = turn % demands.len();
            let credits = pool.grant(honest as u64 + 1, demands[honest], now);
            let share = pool.total() / clients;
            prop_assert!(u64::from(credits) >= u64::from(demands[honest]).min(share.max(1)));
        }
    }
}

#[test]
fn the_pool_grows_by_a_credit_a_round_and_falls_by_the_delay_over_the_target() {
    let (host, params) = (host(), params());
    let mut pool = Pool::default();
    let at = |rounds: u32| ROUND.1 * rounds;
    let mut totals = |in_flight, rounds: std::ops::Range<u32>| -> Vec<u64> {
        let renew = |round| {
            pool.renew(&params, &host, (in_flight, CORES), at(round));
            // Another in the same round changes nothing.
            pool.renew(&params, &host, (in_flight, CORES), at(round) + ROUND.1 / 2);
            pool.total()
        };
        rounds.map(renew).collect()
    };
    assert_eq!(totals(0, 1..5), [5, 6, 7, 8]);
    // The host would refuse at 1 s: 24 requests.
    assert_eq!(totals(0, 5..50).last(), Some(&24));
    // A queue of 5.25 s: 9.5 targets too long.
    assert_eq!(totals(108, 50..51), [(24.0 * (1.0 - 0.02 * 9.5)) as u64]);
    assert_eq!(totals(u64::from(u32::MAX), 51..53), [9, 4]);
    assert_eq!(totals(u64::from(u32::MAX), 53..60).last(), Some(&4));
}

#[test]
fn a_host_that_has_seen_no_run_hands_out_as_many_as_it_has_cores() {
    let mut pool = Pool::default();
    pool.renew(&params(), &Occupancy::default(), (900, CORES), RUN);
    assert_eq!(pool.total(), 4);
    let grants = [pool.grant(1, 2, RUN), pool.grant(2, 9, RUN)];
    assert_eq!(
        grants,
        [4, 2],
        "the first on its own gets what nobody asked for"
    );
    assert_eq!([pool.grant(1, 2, RUN), pool.grant(2, 9, RUN)], [3, 2]);
}

#[test]
fn who_is_silent_has_nothing_and_beyond_the_limit_everybody_has_one() {
    let (host, params) = (host(), params());
    let mut pool = Pool::default();
    pool.renew(&params, &host, (0, CORES), RUN);
    for client in 0..2 * MAX_CLIENTS as u64 {
        let credits = pool.grant(client, 9, RUN);
        assert!(credits == 1 || client < MAX_CLIENTS as u64);
    }
    assert_eq!(pool.clients.len(), MAX_CLIENTS);
    let later = RUN + SILENT_FOR;
    pool.grant(0, 1, later - ROUND.0);
    pool.renew(&params, &host, (0, CORES), later);
    assert_eq!(pool.clients.len(), 1);
    assert_eq!(pool.issued(), u64::from(pool.clients[&0].credits));
}

#[test]
fn a_request_is_refused_at_more_than_twice_the_target() {
    let refuses = |ms| params().refuses(Duration::from_millis(ms));
    assert_eq!(
        [refuses(0), refuses(1000), refuses(1001)],
        [false, false, true]
    );
}
