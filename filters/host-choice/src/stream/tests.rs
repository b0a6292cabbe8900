// SPDX-License-Identifier: Apache-2.0
use super::*;

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn only_the_first_request_says_what_is_known_and_later_ones_only_what_changed() {
    let mut index = Index::default();
    index.insert(
        Kind::Table,
        "a",
        Meta {
            epoch: 255,
            version: 7,
        },
        Says::default(),
        Duration::ZERO,
    );
    let mut subscriptions = Subscriptions::default();
    let first = subscriptions
        .request(Kind::Table, names(&["a", "b"]), "me", &index)
        .unwrap();
    assert_eq!(first.resource_names_subscribe, ["a", "b"]);
    assert_eq!(
        first.initial_resource_versions,
        BTreeMap::from([("a".into(), "ff.7".into())])
    );
    let node = first.node.unwrap();
    assert_eq!(
        (&*node.id, &*node.user_agent_version),
        ("me", env!("CARGO_PKG_VERSION"))
    );
    assert!(
        subscriptions
            .request(Kind::Table, names(&["a", "b"]), "me", &index)
            .is_none()
    );
    let second = subscriptions
        .request(Kind::Table, names(&["b", "c"]), "me", &index)
        .unwrap();
    assert_eq!(second.node.unwrap().user_agent_version, "");
    assert_eq!(second.resource_names_subscribe, ["c"]);
    assert_eq!(second.resource_names_unsubscribe, ["a"]);
    assert!(second.initial_resource_versions.is_empty());
    assert!(
        subscriptions
            .request(Kind::Shard, names(&[]), "me", &index)
            .is_none()
    );
}

fn offered(kind: Kind, name: &str, meta: Meta) -> DeltaDiscoveryResponse {
    use prost::Message;
    let Meta { epoch, version } = meta;
    let value = match kind {
        Kind::Table => weir_tables::v1::HostTable {
            cluster: name.into(),
            epoch,
            version,
            policy: Some(weir_tables::encode_policy(&weir_policy::Policy::default())),
            ..Default::default()
        }
        .encode_to_vec(),
        Kind::Shard => weir_tables::v1::CacheShard {
            epoch,
            version,
            ..Default::default()
        }
        .encode_to_vec(),
    };
    DeltaDiscoveryResponse {
        resources: vec![weir_tables::discovery::Resource {
            name: name.into(),
            resource: Some(weir_tables::discovery::Any {
                value,
                ..Default::default()
            }),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// What a leader builds who took the lock as so many did before.
fn drawn(index: u64) -> Meta {
    Meta {
        epoch: Meta::draw_epoch(index, 7),
        version: 3,
    }
}

/// Of a table that is stale after five seconds.
fn table() -> Says {
    Says {
        stale_after: Duration::from_secs(5),
        ..Says::default()
    }
}

#[test]
fn a_leader_that_has_been_followed_is_refused_while_the_later_ones_table_is_fresh() {
    let written = Duration::from_secs(100);
    let mut index = Index::default();
    index.insert(Kind::Table, "a", drawn(4), table(), written);
    // Cache contents rest for as long as they do not change.
    let old = Duration::from_secs(1);
    index.insert(Kind::Shard, "a/1/0", drawn(4), Says::default(), old);
    for (kind, name) in [(Kind::Table, "a"), (Kind::Shard, "a/1/0")] {
        let taken = |lock, second| {
            let now = Duration::from_secs(second);
            let offered = offered(kind, name, drawn(lock));
            let update = check(&offered, kind, &index, usize::MAX, false, now);
            if let Some((_, refusal)) = update.refusals.first() {
                let said = refusal.to_string();
                assert!(said.contains("is of an older leader than"), "{said}");
            }
            update.accepted.len() == 1
        };
        assert!(!taken(3, 100) && !taken(3, 105), "{name}");
        assert!(taken(3, 106), "{name}: better than what is stale");
        // The same one, a later one, and one that has no lock.
        assert!(taken(4, 100) && taken(5, 100) && taken(0, 100), "{name}");
    }
}

#[test]
fn cache_contents_of_the_leader_whose_table_is_in_use_replace_those_of_a_lock_that_was_forgotten() {
    let now = Duration::from_secs(100);
    let mut index = Index::default();
    index.insert(Kind::Shard, "a/1/0", drawn(40), Says::default(), now);
    index.insert(Kind::Table, "a", drawn(2), table(), now);
    let taken = |lock| {
        let offered = offered(Kind::Shard, "a/1/0", drawn(lock));
        let update = check(&offered, Kind::Shard, &index, usize::MAX, false, now);
        update.accepted.len() == 1
    };
    assert!(taken(2));
    assert!(!taken(1), "of one before it");
}

#[test]
fn while_there_is_nothing_to_choose_by_pauses_stay_short() {
    let mut backoff = Backoff::default();
    for expected in [100, 200, 400, 400, 400] {
        backoff.not_yet(Duration::ZERO, u64::MAX);
        assert!(!backoff.is_over(Duration::from_millis(expected - 1)));
        assert!(backoff.is_over(Duration::from_millis(expected)));
    }
    // The first failure of a server waits no longer, and the next ones double from there.
    for expected in [400, 800] {
        backoff.failed(Duration::ZERO, Duration::ZERO, u64::MAX);
        assert!(!backoff.is_over(Duration::from_millis(expected - 1)));
        assert!(backoff.is_over(Duration::from_millis(expected)));
    }
}

#[test]
fn pauses_double_up_to_the_longest_and_a_success_ends_them() {
    let mut backoff = Backoff::default();
    assert!(backoff.is_over(Duration::ZERO));
    for expected in [100, 200, 400, 800, 1600, 3200, 3200] {
        backoff.failed(Duration::ZERO, Duration::ZERO, u64::MAX);
        assert!(!backoff.is_over(Duration::from_millis(expected - 1)));
        assert!(backoff.is_over(Duration::from_millis(expected)));
    }
    backoff.failed(Duration::ZERO, Duration::from_secs(10), 0);
    assert!(!backoff.is_over(Duration::from_secs(9)));
    backoff.succeeded();
    assert!(backoff.is_over(Duration::ZERO));
}

#[test]
fn a_stream_of_reports_that_is_denied_is_refused_and_one_that_breaks_is_lost() {
    const PERMISSION_DENIED: u32 = 7;
    const UNAVAILABLE: u32 = 14;
    assert_eq!(ReportsEnd::of(PERMISSION_DENIED).as_str(), "refused");
    assert_eq!(ReportsEnd::of(UNAVAILABLE).as_str(), "lost");
}
