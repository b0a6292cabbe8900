// SPDX-License-Identifier: Apache-2.0
use std::collections::HashMap;

use weir_policy::{Cluster, HostId, Level, Overload, Selection};

use crate::fleet::{chosen, cluster, host, key, rng, select};

const KEYS: u64 = 50_000;

fn counts(cluster: &Cluster, keys: u64) -> HashMap<HostId, u64> {
    let mut rng = rng(7);
    let mut counts = HashMap::new();
    for number in 0..keys {
        let host = chosen(cluster, Some(key(number)), &mut rng);
        *counts.entry(host).or_default() += 1;
    }
    counts
}

/// A fleet of which every `nth` host refuses everybody.
fn fleet(selection: Selection, n: usize, nth: usize) -> Cluster {
    let mut policy = select(selection);
    policy.overload = Overload::Dagor;
    let hosts = (0..n).map(|number| {
        let mut host = host(number);
        if number % nth == 0 {
            host.level = Level::NONE;
        }
        host
    });
    cluster(policy, hosts.collect())
}

#[test]
fn baseline_and_random_give_every_eligible_host_the_same_share() {
    for selection in [Selection::Baseline, Selection::Random, Selection::Dynamic] {
        for (n, nth, open) in [(14, 99, 13), (14, 3, 9), (200, 2, 100)] {
            let counts = counts(&fleet(selection, n, nth), KEYS);
            let mean = KEYS as f64 / open as f64;
            let squares = counts
                .values()
                .map(|count| (*count as f64 - mean).powi(2) / mean);
            let chi_square: f64 = squares.sum();
            // Mean open - 1, variance 2 (open - 1): five deviations off is one run in a million.
            let freedom = f64::from(open - 1);
            let limit = freedom + 5.0 * (2.0 * freedom).sqrt();
            assert_eq!(counts.len(), open as usize, "{selection:?} of {n}");
            assert!(
                chi_square < limit,
                "{selection:?} of {n}: {chi_square:.1} against {limit:.1}"
            );
        }
    }
}

#[test]
fn the_busiest_host_of_a_rendezvous_has_little_more_than_the_mean() {
    // All 14 open; 2 of 14 closed; half of 14 closed; a larger fleet, open and with a third closed.
    for (n, nth) in [(15, 99), (14, 7), (14, 2), (60, 99), (60, 3)] {
        let cluster = fleet(Selection::Rendezvous, n, nth);
        // Chance alone adds a few per cent at 1,700 keys a host and more.
        let counts = counts(&cluster, 2 * KEYS);
        let busiest = *counts.values().max().unwrap() as f64;
        let ratio = busiest * counts.len() as f64 / (2 * KEYS) as f64;
        println!("{n} hosts, every {nth}th closed: {ratio:.3}");
        assert!(
            ratio < 1.15,
            "{n} hosts, every {nth}th closed: {ratio:.3} times the mean"
        );
    }
}
