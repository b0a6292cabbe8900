// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeSet;

use proptest::prelude::*;
use weir_policy::{Level, Load, Outcome, Overload, Policy, Reason, Selection};

use crate::fleet::{
    NOW, chosen, cluster, host, id, key, load, millis, named, request, rng, select,
};

const HALF: Selection = Selection::HotCold { permille: 500 };

/// Whether it is open, jobs in progress, mean queuing delay.
type Row = (bool, u32, Option<u64>);

fn told(in_progress: u32, delay_ms: Option<u64>) -> Load {
    Load {
        queuing_delay: delay_ms.map(millis),
        ..load(NOW, in_progress, 0)
    }
}

proptest! {
    /// Wydrowski et al., NSDI 2024: hot above the quantile; the cold by delay, then the hot by jobs in progress.
    #[test]
    fn cold_hosts_come_by_delay_and_then_hot_ones_by_jobs_in_progress(
        rows in prop::collection::vec(
            (prop::bool::weighted(0.7), 0u32..8, prop::option::of(0u64..5)), 1..=16),
        permille in 0u16..=1000,
        seed in any::<u64>(),
    ) {
        let open = |(number, (open, in_progress, delay)): (usize, &Row)| {
            let mut host = host(number);
            host.level = if *open { Level::ALL } else { Level::NONE };
            host.load = Some(told(*in_progress, *delay));
            host
        };
        let policy = Policy {
            overload: Overload::Dagor,
            ranked_hosts: 8,
            ..select(Selection::HotCold { permille })
        };
        let cluster = cluster(policy, rows.iter().enumerate().map(open).collect());
        let decision = cluster.decide(&request(Some(key(1))), NOW, &mut rng(seed));

        let mut jobs: Vec<u32> = rows.iter().map(|row| row.1).collect();
        jobs.sort_unstable();
        let rank = (jobs.len() as f64 * f64::from(permille) / 1000.0).ceil() as usize;
        let most = jobs[rank.max(1) - 1];
        let score = |row: &Row| match row.1 > most {
            false => (false, row.2.unwrap_or(0), row.1),
            true => (true, 0, row.1),
        };
        let open = rows.iter().filter(|row| row.0);
        let mut expected: Vec<_> = open.map(score).collect();
        expected.sort_unstable();
        expected.truncate(8);
        if expected.is_empty() {
            prop_assert_eq!(decision.reason, Reason::Overloaded);
            return Ok(());
        }
        let row = |found| (0..rows.len()).find(|number| id(*number) == found).unwrap();
        let found: Vec<_> = named(&cluster, &decision).into_iter().map(|host| score(&rows[row(host)])).collect();
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(decision.reason, if found[0].0 { Reason::Hot } else { Reason::Cold });
    }
}

#[test]
fn a_delay_grows_with_what_was_sent_since_it_was_told() {
    let hosts = [(8, 30), (9, 40)].into_iter().enumerate();
    let hosts = hosts.map(|(number, (in_progress, delay))| {
        let mut host = host(number);
        host.load = Some(told(in_progress, Some(delay)));
        host
    });
    let policy = select(Selection::HotCold { permille: 1000 });
    let mut cluster = cluster(policy, hosts.collect());
    assert_eq!(chosen(&cluster, None, &mut rng(1)), id(0));
    for _ in 0..3 {
        cluster.assigned(id(0), &request(None), NOW + millis(1));
    }
    // 30 ms × 12 / 9 is 40 ms, with more in progress than at the other.
    let decision = cluster.decide(&request(None), NOW + millis(1), &mut rng(1));
    assert_eq!(named(&cluster, &decision)[0], id(1));
}

#[test]
fn hosts_that_are_alike_take_turns_by_chance() {
    let cluster = cluster(select(HALF), (0..14).map(host).collect());
    let mut rng = rng(3);
    let taken: BTreeSet<_> = (0..300)
        .map(|_| chosen(&cluster, Some(key(1)), &mut rng))
        .collect();
    assert_eq!(taken.len(), 14);
}

#[test]
fn the_hot_tenth_of_a_large_fleet_is_rarely_taken_however_short_its_delay() {
    let hosts = (0..1000).map(|number| {
        let hot = number % 10 == 0;
        let mut host = host(number);
        host.load = Some(told(if hot { 90 } else { 5 }, Some(u64::from(!hot))));
        host
    });
    let cluster = cluster(select(HALF), hosts.collect());
    let hot: BTreeSet<_> = (0..1000).step_by(10).map(id).collect();
    let mut rng = rng(5);
    // More than half of a sample is hot once in about 20,000.
    let taken = (0..2000)
        .filter(|_| hot.contains(&chosen(&cluster, None, &mut rng)))
        .count();
    assert!(taken < 4, "{taken} of 2,000");
    let decision = cluster.decide(&request(None), NOW, &mut rng);
    assert!(matches!(decision.outcome, Outcome::Send(_)));
}
