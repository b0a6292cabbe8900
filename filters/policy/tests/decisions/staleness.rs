// SPDX-License-Identifier: Apache-2.0
use weir_policy::{Cluster, HostState, Level, Outcome, Overload, Reason, Selection};

use crate::fleet::{
    NOW, cluster, host, id, load, millis, named, request, rng, seconds, select, table,
};

/// Just after the default `stale_after`.
const LATER: std::time::Duration = std::time::Duration::from_millis(1_005_001);

#[test]
fn without_a_table_the_proxy_chooses() {
    let mut cluster = Cluster::default();
    let decide = |cluster: &Cluster| cluster.decide(&request(None), NOW, &mut rng(1));
    assert_eq!(decide(&cluster).outcome, Outcome::Fallback);
    assert_eq!(decide(&cluster).reason, Reason::NoTable);
    cluster.set_table(table(select(Selection::Random), vec![host(1)]), NOW, NOW);
    assert!(matches!(decide(&cluster).outcome, Outcome::Send(_)));
    cluster.remove_table();
    assert_eq!(decide(&cluster).reason, Reason::NoTable);
}

#[test]
fn without_a_host_the_proxy_chooses_whether_or_not_the_table_is_fresh() {
    let mut down = host(1);
    down.state = HostState::Down;
    for hosts in [vec![], vec![down]] {
        let cluster = cluster(select(Selection::Dynamic), hosts);
        let fresh = cluster.decide(&request(None), NOW, &mut rng(1));
        assert_eq!(
            (fresh.outcome, fresh.reason),
            (Outcome::Fallback, Reason::NoHost)
        );
        let stale = cluster.decide(&request(None), LATER, &mut rng(1));
        assert_eq!(
            (stale.outcome, stale.reason),
            (Outcome::Fallback, Reason::StaleTable)
        );
    }
}

#[test]
fn the_levels_of_a_stale_table_hold_nobody_back() {
    for overload in [Overload::Dagor, Overload::Breaker { queued_jobs: 100 }] {
        let mut policy = select(Selection::Dynamic);
        policy.overload = overload;
        let mut closed = host(1);
        closed.level = Level::NONE;
        closed.load = Some(load(NOW, 200, 150));
        let cluster = cluster(policy, vec![closed]);
        let fresh = cluster.decide(&request(None), NOW + seconds(5), &mut rng(1));
        assert!(
            matches!(fresh.outcome, Outcome::Shed { .. }),
            "{overload:?}: {fresh:?}"
        );
        let stale = cluster.decide(&request(None), LATER, &mut rng(1));
        assert!(
            matches!(stale.outcome, Outcome::Send(_)),
            "{overload:?}: {stale:?}"
        );
    }
}

#[test]
fn the_load_in_a_stale_table_counts_for_nothing_but_what_is_in_flight_does() {
    let hot_cold = Selection::HotCold { permille: 500 };
    for selection in [Selection::Dynamic, Selection::Estimate, hot_cold] {
        let mut busy = host(1);
        busy.load = Some(load(NOW, 50, 49));
        let mut cluster = cluster(select(selection), vec![busy, host(2)]);
        cluster.assigned(id(2), &request(None), NOW);
        let first = |cluster: &Cluster, now| {
            named(cluster, &cluster.decide(&request(None), now, &mut rng(1)))[0]
        };
        assert_eq!(first(&cluster, NOW), id(2), "{selection:?}");
        assert_eq!(first(&cluster, LATER), id(1), "{selection:?}");
    }
}

#[test]
fn figures_on_an_answer_count_over_an_older_row_and_not_over_a_newer_one() {
    let mut policy = select(Selection::Dynamic);
    policy.overload = Overload::Breaker { queued_jobs: 100 };
    let mut row = host(1);
    row.load = Some(load(NOW, 10, 0));
    let mut cluster = cluster(policy.clone(), vec![row]);
    let sent = |cluster: &Cluster, now| {
        let decision = cluster.decide(&request(None), now, &mut rng(1));
        matches!(decision.outcome, Outcome::Send(_))
    };
    assert!(sent(&cluster, NOW));
    let answered = NOW + millis(100);
    cluster.observed(id(1), load(answered, 120, 101), answered);
    assert!(!sent(&cluster, answered), "the answer closes the breaker");
    cluster.observed(id(1), load(NOW + millis(50), 1, 0), answered);
    assert!(!sent(&cluster, answered), "an older answer says nothing");
    let mut row = host(1);
    row.load = Some(load(NOW + millis(90), 1, 0));
    cluster.set_table(table(policy.clone(), vec![row]), answered, answered);
    assert!(
        !sent(&cluster, answered),
        "nor does an older row of a newer table"
    );
    let later = NOW + millis(200);
    cluster.observed(id(1), load(later, 90, 100), later);
    assert!(sent(&cluster, later), "the next answer opens it");
}
