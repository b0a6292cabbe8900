// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;
use weir_policy::{CLASSES, RANKS};

use super::*;

fn rule(identity: &str, clusters: &[&str], what: &[What]) -> Rule {
    let clusters = match clusters {
        ["*"] => Clusters::All,
        names => Clusters::Named(names.iter().map(|name| (*name).to_owned()).collect()),
    };
    Rule {
        identity: Pattern::parse(identity).unwrap(),
        clusters,
        what: what.iter().copied().collect(),
        hosts: None,
        max_priority: 0,
    }
}

#[test]
fn a_pattern_is_everybody_or_one_identity_or_all_under_a_slash() {
    for (pattern, fits, fails) in [
        ("*", &["a", "spiffe://m/a", ""][..], &[][..]),
        ("sidecar-1", &["sidecar-1"], &["sidecar-10", "sidecar-", ""]),
        (
            "spiffe://m/ns/a/*",
            &["spiffe://m/ns/a/x", "spiffe://m/ns/a/x/y"],
            &["spiffe://m/ns/a", "spiffe://m/ns/a/", "spiffe://m/ns/ab/x"],
        ),
    ] {
        let parsed = Pattern::parse(pattern).unwrap();
        for identity in fits {
            assert!(parsed.fits(identity), "{pattern} {identity}");
        }
        for identity in fails {
            assert!(!parsed.fits(identity), "{pattern} {identity}");
        }
    }
    for bad in [
        "",
        "/*",
        "**",
        "spiffe://*",
        "spiffe:/*",
        "a*",
        "*/a",
        "a/*/b",
        "a b",
        "a/\n",
    ] {
        assert!(Pattern::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn what_no_rule_allows_is_denied_and_rules_add_up() {
    use What::*;
    let rules = Authorization(vec![
        rule("a", &["feeds"], &[Tables, Report]),
        rule("a", &["rules"], &[Tables, Keys]),
        rule("*", &["shared"], &[Tables]),
        rule("control", &["*"], &[Replica]),
    ]);
    let of = |identity, what| serde_json::to_value(rules.clusters(identity, what)).unwrap();
    assert_eq!(
        of("a", Tables),
        serde_json::json!(["feeds", "rules", "shared"])
    );
    assert_eq!(of("a", Keys), serde_json::json!(["rules"]));
    assert_eq!(of("a", Report), serde_json::json!(["feeds"]));
    assert_eq!(of("b", Tables), serde_json::json!(["shared"]));
    for what in [Keys, Report, Capacity, Replica] {
        assert!(rules.clusters("b", what).are_none());
    }
    assert_eq!(rules.max_priority("a", "rules"), None);
    let everything = Sight {
        tables: Clusters::All,
        keys: Clusters::All,
    };
    assert_eq!(rules.sight("control"), everything);
    assert!(rules.clusters("control", Report).are_none());
}

#[test]
fn a_governor_speaks_for_the_hosts_of_its_rule_alone() {
    let mut own = rule("node-1", &["feeds"], &[What::Capacity]);
    own.hosts = Some(vec![
        Place::parse("10.0.0.1").unwrap(),
        Place::parse("[::1]:80").unwrap(),
    ]);
    let any = rule("node-2", &["feeds"], &[What::Capacity]);
    let rules = Authorization(vec![own, any]);
    for (identity, cluster, host, may) in [
        ("node-1", "feeds", "10.0.0.1:1", true),
        ("node-1", "feeds", "10.0.0.1:2", true),
        ("node-1", "feeds", "[::1]:80", true),
        ("node-1", "feeds", "[::1]:81", false),
        ("node-1", "feeds", "10.0.0.2:1", false),
        ("node-1", "feeds", "nonsense", false),
        ("node-1", "rules", "10.0.0.1:1", false),
        ("node-2", "feeds", "10.0.0.2:1", true),
        ("node-3", "feeds", "10.0.0.1:1", false),
    ] {
        let said = rules.may_set(identity, cluster, host);
        assert_eq!(said, may, "{identity} {cluster} {host}");
    }
    assert_eq!(Place::parse("localhost:1"), None);
}

#[test]
fn of_a_report_what_is_denied_is_taken_away_and_the_rest_stays() {
    let rules = Authorization(vec![rule("a", &["feeds"], &[What::Report])]);
    let cluster = |name: &str| v1::ClusterRecord {
        cluster: name.to_owned(),
        held: 7,
        ..Default::default()
    };
    let mut report = v1::Report {
        proxy: "p".to_owned(),
        records: vec![v1::VmRecord {
            clusters: vec![cluster("rules"), cluster("feeds")],
            ..Default::default()
        }],
        ..Default::default()
    };
    let whole = report.clone();
    let (denied, caps) = rules.sift("a", &mut report);
    assert_eq!(denied, BTreeSet::from(["rules".to_owned()]));
    assert_eq!(caps, Caps::new());
    assert_eq!(report.records[0].clusters, [cluster("feeds")]);
    assert_eq!(rules.sift("a", &mut report).0, BTreeSet::new());
    let mut capped = rules;
    capped.0[0].max_priority = 8;
    assert_eq!(
        capped.sift("a", &mut report).1,
        Caps::from([("feeds".to_owned(), 8)])
    );
    let mut nothing = whole;
    assert_eq!(capped.sift("b", &mut nothing).0.len(), 2);
    assert!(nothing.records[0].clusters.is_empty());
}

proptest! {
    /// Whatever is reported: nothing counts as more important than the cap, no request is lost, and what was less
    /// important stays where it was.
    #[test]
    fn a_cap_moves_counts_to_its_class_and_loses_none(
        counts in prop::collection::btree_map(0..u32::from(RANKS), 0..1u64 << 40, 0..200),
        class in 0..CLASSES as u8,
    ) {
        let rank = |rank: &u32| Rank::from_number(*rank).unwrap();
        let counts: BTreeMap<Rank, u64> =
            counts.iter().map(|(number, count)| (rank(number), *count)).collect();
        let mut capped = counts.clone();
        cap(&mut capped, class);
        prop_assert!(capped.keys().all(|rank| rank.class() >= class));
        prop_assert_eq!(capped.values().sum::<u64>(), counts.values().sum::<u64>());
        for (rank, count) in counts.iter().filter(|(rank, _)| rank.class() > class) {
            prop_assert_eq!(capped.get(rank), Some(count));
        }
    }
}
