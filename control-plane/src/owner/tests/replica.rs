// SPDX-License-Identifier: Apache-2.0
//! What one of several pushes.

use prost::Message;
use weir_fleet::role::Leader;
use weir_fleet::snapshot::Resource;

use super::*;

pub(super) fn following(index: u64) -> Role {
    Role::Following(Arc::new(Leader {
        name: "n".to_owned(),
        address: "10.0.0.1:1".to_owned(),
        index,
        session: "s".into(),
    }))
}

pub(super) fn mirrored(index: u64, name: &str, levels: &[u32]) -> Update {
    let host = |(n, level): (usize, &u32)| v1::Host {
        address: format!("127.0.0.1:{}", n + 1),
        admission_level: Some(*level),
        ..Default::default()
    };
    told(
        index,
        v1::HostTable {
            cluster: name.to_owned(),
            hosts: levels.iter().enumerate().map(host).collect(),
            ..Default::default()
        },
    )
}

/// A table that this leader pushes.
fn told(index: u64, table: v1::HostTable) -> Update {
    let (epoch, version) = (Meta::draw_epoch(index, 9), 5);
    let name = table.cluster.clone();
    let table = v1::HostTable {
        epoch,
        version,
        ..table
    };
    let table = Resource {
        version: Meta { epoch, version }.to_string().into(),
        body: table.encode_to_vec().into(),
    };
    let tables = Arc::new(BTreeMap::from([(name, table)]));
    let snapshot = Arc::new(Snapshot {
        resources: [(HOST_TABLE_TYPE, tables)].into(),
        ..Default::default()
    });
    Update::Mirrored { index, snapshot }
}

impl Script {
    fn of_several(settings: &str) -> Self {
        let mut script = Self::unasked(2, settings);
        let config = script.config.clone();
        let owner = Owner::new(&config, 7, Metrics::default(), script.start);
        script.owner = owner.of_several(HANDED_OVER_AFTER);
        script
    }

    fn is(&mut self, role: Role) -> &mut Self {
        self.owner.take_role(role, self.now);
        self
    }

    /// The lock index and the levels of the table that is pushed.
    fn pushed(&mut self) -> (Option<u64>, Vec<u32>) {
        self.publish();
        let table = self
            .owner
            .state
            .snapshot()
            .get(HOST_TABLE_TYPE, "c")
            .unwrap();
        let table = v1::HostTable::decode(table.body.clone()).unwrap();
        let (epoch, version) = (table.epoch, table.version);
        let levels = table.hosts.iter();
        let levels = levels.map(|host| host.admission_level.unwrap_or(4096));
        (Meta { epoch, version }.fence(), levels.collect())
    }
}

#[test]
fn nothing_is_pushed_before_a_leader_is_known_and_then_only_what_that_one_pushes() {
    let mut script = Script::of_several("");
    assert!(script.publish().is_none() && script.pass(9000).publish().is_none());
    script.is(following(3));
    assert!(script.publish().is_none());
    script.fold(mirrored(2, "c", &[]));
    assert!(script.publish().is_none(), "of one that is not followed");
    script.fold(mirrored(3, "other", &[]));
    let snapshot = script.publish().unwrap();
    let tables = snapshot.of_type(HOST_TABLE_TYPE).unwrap();
    assert!(!tables["other"].is_unknown());
    assert!(tables["c"].is_unknown(), "not known is not removed");
    assert!(snapshot.of_type(CACHE_SHARD_TYPE).is_none());
    assert!(
        script.pass(9000).publish().is_none(),
        "it builds nothing itself"
    );
}

#[test]
fn a_replica_that_does_not_reach_a_leader_that_keeps_its_lock_sends_proxies_to_others() {
    for had_tables in [false, true] {
        let mut script = Script::of_several("");
        script.is(following(3));
        if had_tables {
            script.fold(mirrored(3, "c", &[]));
            assert!(!script.publish().unwrap().withheld);
        }
        script.fold(Update::Severed { index: 2 });
        script.pass(31_000).publish();
        let unready = |script: &Script| script.owner.state.unready().unwrap_or_default();
        assert!(!unready(&script).contains("not reached"), "of another one");
        script.fold(Update::Severed { index: 3 });
        script.pass(20_000).publish();
        // It tries again and again.
        script.fold(Update::Severed { index: 3 });
        script.pass(9_000).publish();
        assert!(!unready(&script).contains("not reached"), "it may be gone");
        assert!(script.pass(2_000).publish().unwrap().withheld);
        assert!(unready(&script).contains("not reached"));
        // It is there again, and has nothing new to say.
        script.fold(Update::Reached { index: 2 });
        assert!(script.pass(1_000).publish().is_none(), "of another one");
        script.fold(Update::Reached { index: 3 });
        assert!(!script.pass(1_000).publish().unwrap().withheld);
        assert!(!unready(&script).contains("not reached"));
        script.fold(mirrored(3, "c", &[]));
        script.publish();
        assert_eq!(unready(&script), "");
    }
}

#[test]
fn who_was_cut_off_from_a_leader_serves_once_there_is_another_one() {
    for role in [following(4), Role::Leading { index: 4 }] {
        let mut script = Script::of_several("");
        script.is(following(3)).fold(mirrored(3, "c", &[]));
        script.publish();
        script.fold(Update::Severed { index: 3 });
        assert!(script.pass(31_000).publish().unwrap().withheld);
        script.is(role).fold(mirrored(4, "c", &[]));
        assert!(!script.pass(3_000).publish().unwrap().withheld);
    }
}

#[test]
fn what_the_leader_has_not_said_yet_of_envoys_own_types_is_not_removed() {
    use crate::xds::types::{CLUSTER, LISTENER};

    let mut script = Script::of_several("");
    let standalone = "standalone:\n  filter: { wasm: /f.wasm, delivery: path }\n  \
         listeners: [ { name: outbound, address: \"127.0.0.1:1\", cluster: c } ]\n";
    let text = Script::text(2, "") + standalone;
    let folder = tempfile::tempdir().unwrap();
    script.fold(News::Configured(configured(&folder, &text)));
    let part = |names: &[&str]| {
        let one = |name: &&str| {
            let (version, body) = ("1".into(), Default::default());
            ((*name).to_owned(), Resource { version, body })
        };
        Arc::new(names.iter().map(one).collect::<BTreeMap<_, _>>())
    };
    let mirrored = |resources| Update::Mirrored {
        index: 3,
        snapshot: Arc::new(Snapshot {
            resources,
            ..Default::default()
        }),
    };
    script.is(following(3));
    script.fold(mirrored([(CLUSTER, part(&["a"]))].into()));
    let snapshot = script.publish().unwrap();
    let clusters = snapshot.of_type(CLUSTER).unwrap();
    assert!(!clusters["a"].is_unknown() && clusters["c"].is_unknown());
    assert!(snapshot.of_type(LISTENER).is_none(), "silence");
    script.fold(mirrored(
        [(CLUSTER, part(&["a", "c"])), (LISTENER, part(&[]))].into(),
    ));
    let snapshot = script.publish().unwrap();
    assert!(!snapshot.of_type(CLUSTER).unwrap()["c"].is_unknown());
    assert!(snapshot.of_type(LISTENER).unwrap()["outbound"].is_unknown());
}

#[test]
fn a_new_leader_goes_on_from_the_mirrored_levels_when_it_knows_its_hosts() {
    let mut script = Script::of_several("policy: { overload: dagor, stale_after: 5s }");
    script.is(following(3)).fold(mirrored(3, "c", &[1000, 500]));
    assert_eq!(script.pushed(), (Some(3), vec![1000, 500]));
    script.pass(60_000).is(Role::Leading { index: 4 });
    assert_eq!(script.pushed(), (Some(3), vec![1000, 500]));
    // More than the target, less than what is too much: nothing moves.
    script.pass(300).scraped(1, Ok(figures(1, 1, 3000)));
    assert_eq!(script.pushed().0, Some(3), "the other one was not asked");
    script.pass(300).scraped(2, Ok(figures(1, 1, 3000)));
    assert_eq!(script.pushed(), (Some(4), vec![1000, 500]));
}

#[test]
fn the_level_of_a_host_that_is_silent_for_stale_after_is_open_and_others_stay() {
    let mut script = Script::of_several("policy: { overload: dagor, stale_after: 5s }");
    script.is(following(3)).fold(mirrored(3, "c", &[1000, 500]));
    script.pass(60_000).is(Role::Leading { index: 4 });
    script.scraped(1, Ok(figures(1, 1, 3000)));
    script.scraped(2, Ok(figures(1, 1, 3000)));
    assert_eq!(script.pushed(), (Some(4), vec![1000, 500]));
    script.pass(4_900).scraped(1, Ok(figures(1, 1, 3000)));
    let (_, levels) = script.pushed();
    assert!(levels[1] < 4096, "{levels:?}");
    // The table is built again for its ages.
    let (_, levels) = script.pass(1_700).pushed();
    assert!(levels[0] < 4096 && levels[1] == 4096, "{levels:?}");
}

#[test]
fn of_a_leader_that_is_silent_for_stale_after_nobody_new_gets_a_table() {
    let mut script = Script::of_several("policy: { overload: dagor, stale_after: 5s }");
    let is_told = |snapshot: Option<Arc<Snapshot>>| {
        let snapshot = snapshot.unwrap();
        snapshot.get(HOST_TABLE_TYPE, "c").is_some()
    };
    script.is(following(3)).fold(mirrored(3, "c", &[1000, 500]));
    assert!(is_told(script.publish()));
    assert!(script.pass(5000).publish().is_none());
    assert!(!is_told(script.pass(100).publish()));
    assert!(script.pass(9000).publish().is_none(), "once");
    script.fold(mirrored(3, "c", &[1000, 500]));
    assert!(is_told(script.publish()), "it speaks again");
    assert!(!is_told(script.pass(6000).publish()));
    // What it said is where this one begins all the same.
    script.is(Role::Leading { index: 4 }).pass(300);
    script.scraped(1, Ok(figures(1, 1, 3000)));
    script.scraped(2, Ok(figures(1, 1, 3000)));
    assert_eq!(script.pushed(), (Some(4), vec![1000, 500]));
}

#[test]
fn a_policy_that_was_withdrawn_stays_so_under_a_new_leader_until_it_changes() {
    let mut script = Script::of_several("policy: { mode: 10% }");
    // Withdrawn, of a leader that steers nobody of itself, withdrawn before it was changed, steered.
    let befores = [
        (0, Some(10), 0),
        (0, None, 10),
        (0, Some(5), 10),
        (10, None, 10),
        (0, Some(10), 0),
    ];
    for (percent, withdrawn_percent, then) in befores {
        let cluster = &script.owner.state.clusters()["c"];
        let table = v1::HostTable {
            cluster: "c".to_owned(),
            policy: Some(weir_fleet::tables::policy(cluster, percent)),
            withdrawn_percent,
            ..Default::default()
        };
        script.is(following(3)).fold(told(3, table)).publish();
        script.pass(2000).is(Role::Leading { index: 4 }).pass(2000);
        assert_eq!(script.table().policy().steer_percent, then);
        let cluster = &script.owner.state.clusters()["c"];
        assert_eq!(cluster.withdrawn_percent(), (then == 0).then_some(10));
    }
    let other = configured(&script._folder, &Script::text(2, "policy: { mode: 20% }"));
    script.fold(News::Configured(other));
    assert_eq!(script.table().policy().steer_percent, 20);
}

#[test]
fn a_new_leader_waits_a_second_for_hosts_that_say_nothing() {
    let mut script = Script::of_several("policy: { overload: dagor }");
    script.is(following(3)).fold(mirrored(3, "c", &[1000, 500]));
    script.publish();
    script.pass(60_000).is(Role::Leading { index: 4 });
    assert_eq!(script.pass(900).pushed().0, Some(3));
    assert_eq!(script.pass(200).pushed(), (Some(4), vec![4096, 4096]));
}

#[test]
fn each_term_has_its_epoch_and_the_end_of_one_leaves_what_is_pushed() {
    let mut script = Script::of_several("");
    script.is(Role::Leading { index: 0 });
    assert_eq!(script.pushed().0, None);
    assert_eq!(script.is(Role::Leading { index: 7 }).pushed().0, Some(7));
    assert_eq!(script.is(Role::Leading { index: 8 }).pushed().0, Some(8));
    assert_eq!(
        script.is(following(9)).pushed().0,
        Some(8),
        "until the next one's come"
    );
    assert_eq!(script.fold(mirrored(9, "c", &[])).pushed().0, Some(9));
}
