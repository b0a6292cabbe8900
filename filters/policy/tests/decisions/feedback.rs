// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_policy::{Answer, Assignment, Cluster, HostId, Keys, Selection};

use crate::fleet::{
    NOW, chosen, cluster, host, id, key, millis, request, rng, seconds, select, table,
};

/// Hosts 0..4 stay; 4..8 come and go.
fn fleet(present: u8) -> weir_policy::Table {
    let hosts = (0..8)
        .filter(|host| *host < 4 || present >> (host - 4) & 1 == 1)
        .map(host);
    table(select(Selection::Random), hosts.collect())
}

#[derive(Clone, Debug)]
enum Step {
    Send,
    /// One of the requests in flight ends.
    End(prop::sample::Index),
    Fleet(u8),
    NoTable,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Send),
        4 => any::<prop::sample::Index>().prop_map(Step::End),
        2 => (0u8..16).prop_map(Step::Fleet),
        1 => Just(Step::NoTable),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn requests_in_flight_are_counted_through_hosts_leaving_and_returning(steps in steps(), seed in any::<u64>()) {
        let mut cluster = Cluster::default();
        let mut rng = rng(seed);
        let mut in_flight: Vec<HostId> = Vec::new();
        for step in steps {
            match step {
                Step::Send if cluster.table().is_some() => {
                    let host = chosen(&cluster, None, &mut rng);
                    cluster.assigned(host, &request(None), NOW);
                    in_flight.push(host);
                }
                Step::End(which) if !in_flight.is_empty() => {
                    let host = in_flight.swap_remove(which.index(in_flight.len()));
                    cluster.finished(host, NOW, NOW);
                }
                Step::Fleet(present) => cluster.set_table(fleet(present), NOW, NOW),
                Step::NoTable => cluster.remove_table(),
                Step::Send | Step::End(_) => {}
            }
            let mut expected: BTreeMap<HostId, u32> = BTreeMap::new();
            for host in &in_flight {
                *expected.entry(*host).or_default() += 1;
            }
            for host in (0..8).map(id) {
                prop_assert_eq!(cluster.in_flight(host), expected.get(&host).copied().unwrap_or(0));
            }
        }
        for host in in_flight {
            cluster.finished(host, NOW, NOW);
        }
        for host in (0..8).map(id) {
            prop_assert_eq!(cluster.in_flight(host), 0);
            cluster.finished(host, NOW, NOW);
            prop_assert_eq!(cluster.in_flight(host), 0, "one end too many does no harm");
        }
    }
}

#[test]
fn a_host_that_failed_comes_after_the_others_until_it_answers_or_a_second_is_over() {
    for selection in Selection::ALL {
        let mut cluster = cluster(select(selection), (0..3).map(host).collect());
        let first = |cluster: &Cluster, now| {
            let decision = cluster.decide(&request(Some(key(1))), now, &mut rng(1));
            crate::fleet::named(cluster, &decision)[0]
        };
        let usual = first(&cluster, NOW);
        cluster.failed(usual, &Keys::default(), NOW, NOW);
        assert_ne!(first(&cluster, NOW), usual, "{selection:?}");
        assert_eq!(first(&cluster, NOW + seconds(1)), usual, "{selection:?}");
        cluster.answered(usual, &Keys::default(), NOW, Answer::Well, NOW);
        assert_eq!(first(&cluster, NOW), usual, "{selection:?}");
    }
}

#[test]
fn what_a_peer_tells_late_or_twice_does_not_shorten_what_is_assumed() {
    let mut cluster = cluster(select(Selection::Dynamic), (0..3).map(host).collect());
    let told = Assignment {
        key: key(1),
        host: id(2),
        at: NOW,
    };
    cluster.assigned(id(2), &request(Some(key(1))), NOW + millis(500));
    for _ in 0..3 {
        cluster.assigned_by_peer(told);
    }
    let newest = Assignment {
        at: NOW + millis(500),
        ..told
    };
    assert_eq!(cluster.recent_assignments().collect::<Vec<_>>(), [newest]);
}
