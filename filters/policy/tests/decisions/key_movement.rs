// SPDX-License-Identifier: Apache-2.0
use std::collections::HashSet;

use weir_policy::{Cluster, HostId, Level, Selection};

use crate::fleet::{chosen, cluster, host, id, key, rng, select};

const KEYS: u64 = 10_000;

fn homes(cluster: &Cluster) -> Vec<HostId> {
    (0..KEYS)
        .map(|number| chosen(cluster, Some(key(number)), &mut rng(number)))
        .collect()
}

fn fleet(selection: Selection, hosts: impl Iterator<Item = usize>) -> Cluster {
    cluster(select(selection), hosts.map(host).collect())
}

/// The shares of the keys that get another host when one joins or leaves a fleet of `n`: averages over
/// hosts spread over the order of the table.
fn moved(selection: Selection, n: usize) -> (f64, f64) {
    let share = |before: &[HostId], after: &[HostId]| {
        let moved = before.iter().zip(after).filter(|(a, b)| a != b);
        moved.count() as f64 / KEYS as f64
    };
    let samples = 3;
    let (mut joined, mut left) = (0.0, 0.0);
    for sample in 0..samples {
        let changing = sample * n / samples;
        let all = homes(&fleet(selection, 0..=n));
        let without = homes(&fleet(selection, (0..=n).filter(|host| *host != changing)));
        joined += share(&without, &all);
        let all = homes(&fleet(selection, 0..n));
        let without = homes(&fleet(selection, (0..n).filter(|host| *host != changing)));
        left += share(&all, &without);
    }
    (joined / samples as f64, left / samples as f64)
}

#[test]
fn a_host_that_joins_or_leaves_moves_its_share_of_the_keys_by_rendezvous_and_most_by_baseline() {
    for n in [14, 200] {
        let rendezvous = moved(Selection::Rendezvous, n);
        let baseline = moved(Selection::Baseline, n);
        let own = 1.0 / n as f64;
        let message = format!(
            "of {n} hosts' keys (joining, leaving): rendezvous {rendezvous:.4?}, baseline {baseline:.4?}, a host's own share {own:.4}"
        );
        println!("{message}");
        for share in [rendezvous.0, rendezvous.1] {
            assert!((0.7 * own..1.3 * own).contains(&share), "{message}");
        }
        for share in [baseline.0, baseline.1] {
            // Nothing but chance keeps a key at its host.
            assert!(share > 1.0 - 2.0 * own, "{message}");
        }
    }
}

#[test]
fn rendezvous_moves_keys_only_to_a_host_that_joins_and_only_from_one_that_leaves() {
    for n in [1, 2, 3, 4, 5, 7, 8, 9, 14, 31, 32, 33, 200] {
        let before = homes(&fleet(Selection::Rendezvous, 0..n));
        let after = homes(&fleet(Selection::Rendezvous, 0..=n));
        for (before, after) in before.iter().zip(&after) {
            // Read backwards it is the host leaving again.
            assert!(before == after || *after == id(n), "{n} hosts");
        }
    }
}

#[test]
fn rendezvous_moves_only_the_keys_of_hosts_that_close() {
    let n = 40;
    let open = homes(&fleet(Selection::Rendezvous, 0..n));
    for closed in [1, 2, 7, 20] {
        let mut policy = select(Selection::Rendezvous);
        policy.overload = weir_policy::Overload::Dagor;
        let hosts = (0..n).map(|number| {
            let mut host = host(number);
            if number < closed {
                host.level = Level::NONE;
            }
            host
        });
        let partly = cluster(policy, hosts.collect());
        let closed: HashSet<_> = (0..closed).map(id).collect();
        for (before, after) in open.iter().zip(homes(&partly)) {
            assert!(!closed.contains(&after));
            assert!(*before == after || closed.contains(before));
        }
    }
}

#[test]
fn baseline_depends_on_who_is_eligible_and_not_on_the_order_of_their_levels() {
    let with_levels = |levels: fn(usize) -> u16| {
        let mut policy = select(Selection::Baseline);
        policy.overload = weir_policy::Overload::Dagor;
        let hosts = (0..14).map(|number| {
            let mut host = host(number);
            host.level = Level::admitting(levels(number));
            host
        });
        homes(&cluster(policy, hosts.collect()))
    };
    // Requests have rank 2,112; host 3 never admits them.
    let rising = with_levels(|host| if host == 3 { 2000 } else { 3000 + host as u16 });
    let falling = with_levels(|host| if host == 3 { 100 } else { 4000 - host as u16 });
    assert!(rising == falling);
}
