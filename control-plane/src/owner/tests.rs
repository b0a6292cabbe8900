// SPDX-License-Identifier: Apache-2.0
//! Scripts of updates, and what is pushed after them. No clock but the script's.

use std::collections::BTreeMap;

use tokio::sync::oneshot;
use weir_fleet::cluster::Cluster;
use weir_fleet::figures::{Figures, Scraped, Spell};
use weir_fleet::holdings::Changes;
use weir_fleet::poll::{Fault, PollError, Source};
use weir_fleet::types::ENDPOINTS;
use weir_policy::{HostState, KeyHash, Rank, Table};
use weir_tables::{
    CACHE_SHARD_TYPE, HOST_TABLE_TYPE, Meta, cache_shard_name, decode_cache_shard,
    decode_host_table, v1,
};

use super::*;
use crate::config;

mod admission;
#[path = "../../tests/logged/mod.rs"]
mod logged;
mod memory;
mod queries;
mod replica;
mod rollout;
mod sources;

/// A leader that is gone has lost its lock by then.
const HANDED_OVER_AFTER: Duration = Duration::from_secs(30);

struct Script {
    owner: Owner,
    config: Arc<Config>,
    start: Instant,
    now: Instant,
    _folder: tempfile::TempDir,
}

fn configured(folder: &tempfile::TempDir, text: &str) -> Arc<Config> {
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, text).unwrap();
    config::load(&path)
        .map_err(|(error, _)| error)
        .unwrap()
        .config
}

impl Script {
    /// A cluster "c" of hosts 127.0.0.1:1 to 127.0.0.1:`hosts`, with these settings. Each host has been
    /// asked for its cache once, and had nothing.
    fn new(hosts: usize, settings: &str) -> Self {
        let mut script = Self::unasked(hosts, settings);
        for host in 1..=hosts {
            script.cached(host, true, &[]);
        }
        script.publish();
        script
    }

    fn unasked(hosts: usize, settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = configured(&folder, &Self::text(hosts, settings));
        let start = Instant::now();
        let mut owner = Owner::new(&config, 7, Metrics::default(), start);
        owner.publish(start);
        Self {
            owner,
            config,
            start,
            now: start,
            _folder: folder,
        }
    }

    /// The same as a process that has just started.
    fn restarted(mut self) -> Self {
        let config = self.config.clone();
        self.owner = Owner::new(&config, 8, Metrics::default(), self.start).resuming();
        self.owner.publish(self.start);
        self
    }

    fn text(hosts: usize, settings: &str) -> String {
        let hosts: Vec<String> = (1..=hosts)
            .map(|n| format!("{{ address: \"127.0.0.1:{n}\" }}"))
            .collect();
        let cache = match settings.contains("cache: {") {
            true => "",
            false => "cache: {}, ",
        };
        format!(
            "publish: {{ table_bytes_per_second: 1GiB }}\nclusters:\n  c: {{ hosts: [ {} ], scrape: {{}}, {cache}{settings} }}\n",
            hosts.join(", ")
        )
    }

    /// From now on with this in `publish`; the text's clusters stay.
    fn publishes(&mut self, publish: &str, text: &str) -> &mut Self {
        let clusters = &text[text.find("clusters:").unwrap()..];
        let text = format!("publish: {{ {publish} }}\n{clusters}");
        let config = configured(&self._folder, &text);
        self.fold(News::Configured(config))
    }

    fn pass(&mut self, ms: u64) -> &mut Self {
        self.now += Duration::from_millis(ms);
        self.owner.advance(self.now);
        self
    }

    fn fold(&mut self, update: impl Into<News>) -> &mut Self {
        self.owner.fold(update, self.now);
        self
    }

    fn scraped(&mut self, host: usize, result: Result<Figures, Fault>) -> &mut Self {
        let result = result
            .map(|figures| Scraped {
                figures,
                ..Scraped::default()
            })
            .map_err(|fault| PollError::new(fault, "x"));
        let (cluster, host, asked) = ("c".into(), format!("127.0.0.1:{host}").into(), self.now);
        self.fold(Update::Scraped {
            cluster,
            host,
            asked,
            result,
        })
    }

    /// A page of a host that counts so many jobs a second.
    fn counted(&mut self, host: usize, figures: Figures, jobs: f64) -> &mut Self {
        let (cluster, host, asked) = ("c".into(), format!("127.0.0.1:{host}").into(), self.now);
        let result = Ok(Scraped {
            figures,
            left_queue: Some((jobs, Duration::from_secs(1))),
            ..Scraped::default()
        });
        self.fold(Update::Scraped {
            cluster,
            host,
            asked,
            result,
        })
    }

    fn node_says(&mut self, host: usize, millicores: u32) -> &mut Self {
        let (cluster, host) = ("c".into(), format!("127.0.0.1:{host}").into());
        self.fold(Update::Capacity {
            cluster,
            host,
            millicores,
        })
    }

    fn cached(&mut self, host: usize, reset: bool, keys: &[&str]) -> &mut Self {
        let added = keys.iter().map(|key| KeyHash::of(key.as_bytes())).collect();
        self.cache_says(
            host,
            Changes {
                reset,
                added,
                removed: vec![],
            },
        );
        self
    }

    /// Says whether it was refused.
    fn cache_says(&mut self, host: usize, changes: Changes) -> bool {
        let result = Ok(changes);
        let (refused, mut refusal) = oneshot::channel();
        let (cluster, host) = ("c".into(), format!("127.0.0.1:{host}").into());
        let update = Update::Cached {
            cluster,
            host,
            drops: 0,
            result,
        };
        self.fold(News::Cached { update, refused });
        refusal.try_recv().is_ok()
    }

    fn publish(&mut self) -> Option<Arc<Snapshot>> {
        self.owner.publish(self.now)
    }

    /// The table as a proxy reads it that got it when it was built, on the script's clock.
    fn table(&mut self) -> Table {
        self.publish();
        pushed(&self.owner)
    }

    fn states(&mut self) -> Vec<HostState> {
        self.table().hosts().iter().map(|host| host.state).collect()
    }
}

/// The table of "c" as a proxy reads it that got it when it was built.
fn pushed(owner: &Owner) -> Table {
    let built = owner.state.clusters()["c"].built.unwrap();
    let resource = owner.state.snapshot().get(HOST_TABLE_TYPE, "c").unwrap();
    decode_host_table("c", &resource.body, built).unwrap().1
}

fn figures(in_progress: u32, queued: u32, delay_ms: u64) -> Figures {
    Figures {
        in_progress: Some(in_progress),
        queued: Some(vec![queued]),
        queuing_delay: Some(Duration::from_millis(delay_ms)),
        ..Figures::default()
    }
}

/// The version of the table of "c" that is published now.
fn version(script: &mut Script) -> Arc<str> {
    script.publish();
    let snapshot = script.owner.state.snapshot();
    snapshot.get(HOST_TABLE_TYPE, "c").unwrap().version.clone()
}

#[test]
fn newer_figures_wait_until_the_table_has_rested_and_other_changes_do_not() {
    let mut script = Script::new(2, "");
    // A table of some hundred bytes rests for some hundred milliseconds.
    script.publishes("table_bytes_per_second: 1KiB", &Script::text(2, ""));
    script.scraped(1, Ok(figures(1, 0, 0)));
    let first = version(&mut script);
    script.pass(20).scraped(1, Ok(figures(2, 0, 0)));
    assert_eq!(version(&mut script), first);
    script.pass(1000);
    let second = version(&mut script);
    assert_ne!(second, first);
    script.pass(20).scraped(1, Ok(figures(3, 0, 0)));
    assert_eq!(version(&mut script), second);
    let refused = || Err(Fault::Refused);
    script.scraped(2, refused()).scraped(2, refused());
    assert_ne!(version(&mut script), second, "a host has gone");
}

#[test]
fn a_table_of_a_thousand_sidecars_rests_however_small_it_is() {
    let mut script = Script::new(1, "");
    for proxy in 0..1000 {
        let cluster = v1::ClusterRecord {
            cluster: "c".into(),
            ..Default::default()
        };
        script.fold(reported_by(&proxy.to_string(), cluster));
    }
    script.scraped(1, Ok(figures(1, 0, 0)));
    let first = version(&mut script);
    script.pass(190).scraped(1, Ok(figures(2, 0, 0)));
    assert_eq!(version(&mut script), first);
    // 5,000 tables a second are five for each.
    script.pass(20);
    assert_ne!(version(&mut script), first);
}

/// A report of a VM that has so many requests under way at host 1.
fn under_way(epoch: u64, in_flight: u32, at_ms: u64) -> Update {
    let host = v1::HostRecord {
        address: "127.0.0.1:1".into(),
        in_flight,
        whole: true,
        ..Default::default()
    };
    let cluster = v1::ClusterRecord {
        cluster: "c".into(),
        hosts: vec![host],
        ..Default::default()
    };
    let record = v1::VmRecord {
        slot: epoch as u32,
        epoch,
        deadline_ns: u64::MAX,
        clusters: vec![cluster],
        published_ns: at_ms * 1_000_000,
    };
    let report = v1::Report {
        proxy: "p".into(),
        records: vec![record],
        changes: true,
    };
    Update::Reported(report.into())
}

#[test]
fn a_host_that_is_never_asked_has_what_all_callers_have_under_way_and_no_vm_that_is_silent() {
    let mut script = Script::new(1, "");
    let jobs = |script: &mut Script| {
        let load = script.table().hosts()[0].load.clone();
        load.map(|load| load.in_progress)
    };
    assert_eq!(jobs(&mut script), None);
    script
        .pass(100)
        .fold(under_way(1, 3, 1))
        .fold(under_way(2, 4, 1));
    assert_eq!(jobs(&mut script), Some(7));
    script.pass(100).fold(under_way(1, 1, 2));
    assert_eq!(jobs(&mut script), Some(5));
    assert_eq!(
        script.owner.view(script.now).clusters["c"].hosts[0].from,
        Some("callers")
    );
    // The second is heard of no more, and comes back.
    for second in 0..6 {
        script.pass(1000).fold(under_way(1, 1, 3 + second));
    }
    assert_eq!(jobs(&mut script), Some(1));
    script.fold(under_way(2, 2, 10));
    assert_eq!(jobs(&mut script), Some(3));
}

#[test]
fn a_shard_that_was_pushed_rests_as_configured() {
    let mut script = Script::new(1, "cache_shards: 1");
    let text = Script::text(1, "cache_shards: 1");
    script.publishes("cache_bytes_per_second: 1KiB", &text);
    let keys: Vec<String> = (0..1000).map(|key| format!("key-{key}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let version = |script: &Script| {
        let resource = script
            .owner
            .state
            .snapshot()
            .get(CACHE_SHARD_TYPE, &cache_shard_name("c", 1, 0));
        resource.unwrap().version.clone()
    };
    script.cached(1, false, &keys).publish();
    let first = version(&script);
    script.cached(1, false, &["one more"]).pass(900).publish();
    assert_eq!(version(&script), first, "it rests");
    script.pass(100).publish();
    assert_ne!(version(&script), first, "for a second");
}

#[test]
fn hosts_are_pushed_before_anything_is_known_of_them() {
    let table = Script::new(2, "").table();
    assert_eq!(table.hosts().len(), 2);
    assert!(
        table
            .hosts()
            .iter()
            .all(|host| host.state == HostState::Up && host.load.is_none())
    );
}

#[test]
fn a_cluster_without_a_host_is_pushed_only_where_that_is_forced() {
    for (forced, pushed) in [("30s", false), ("0s", true)] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("h.yaml"), "").unwrap();
        let text = format!("clusters: {{ c: {{ hosts_file: h.yaml, shrink_after: {forced} }} }}\n");
        let config = configured(&folder, &text);
        let start = Instant::now();
        let mut owner = Owner::new(&config, 7, Metrics::default(), start);
        let snapshot = owner.publish(start).unwrap();
        let table = snapshot.get(HOST_TABLE_TYPE, "c");
        assert_eq!(table.is_some(), pushed, "{forced}");
        let view = owner.state.view(Duration::ZERO);
        assert_eq!(view.clusters["c"].not_pushed.is_none(), pushed);
    }
}

#[test]
fn where_few_hosts_are_up_that_is_told_and_levels_go_on_moving() {
    let settings = "policy: { overload: dagor }";
    let mut script = Script::new(3, settings);
    let drain = |script: &mut Script, draining: usize| {
        let mut text = Script::text(3, settings);
        for host in 1..=draining {
            let row = format!("\"127.0.0.1:{host}\"");
            text = text.replace(&row, &format!("{row}, draining: true"));
        }
        let config = configured(&script._folder, &text);
        script.fold(News::Configured(config)).publish();
        let cluster = &script.owner.state.clusters()["c"];
        (cluster.panics(), cluster.panicked)
    };
    assert_eq!(
        drain(&mut script, 1),
        (false, false),
        "two of three are left"
    );
    assert_eq!(drain(&mut script, 3), (true, true));
    assert_eq!(script.states(), [HostState::Draining; 3]);
    assert!(script.owner.state.view(Duration::ZERO).clusters["c"].panics);
    steady(&mut script, 3, 0..=4, |_| 3);
    let level = script.table().hosts()[0].level.ranks();
    assert!(
        level < 2048,
        "they get requests, and do not keep up: {level}"
    );
    assert_eq!(drain(&mut script, 0), (false, false));
}

#[test]
fn how_many_dead_hosts_are_too_many_to_be_true_is_configured() {
    for (threshold, taken_out) in [(0, 3), (25, 3), (26, 0), (50, 0), (100, 0)] {
        let mut script = Script::new(4, &format!("policy: {{ panic_threshold: {threshold} }}"));
        for host in [1, 2, 3, 1, 2, 3] {
            script.scraped(host, Err(Fault::Refused));
        }
        let states = script.states();
        let down = states.iter().filter(|state| **state == HostState::Down);
        assert_eq!(down.count(), taken_out, "{threshold}");
    }
}

#[test]
fn proxies_whose_envoy_ignores_choices_are_named_until_they_say_otherwise_or_nothing() {
    let mut script = Script::new(1, "");
    let says = |choices_ignored| {
        reported(v1::ClusterRecord {
            cluster: "c".into(),
            choices_ignored,
            ..Default::default()
        })
    };
    let named = |script: &Script| {
        let view = script.owner.state.view(Duration::ZERO);
        view.clusters["c"].choices_ignored_by.clone()
    };
    script.fold(says(true));
    assert_eq!(named(&script), ["p"]);
    script.fold(says(false));
    assert!(named(&script).is_empty());
    script.fold(says(true)).pass(59_000);
    assert_eq!(named(&script), ["p"]);
    script.pass(2_000);
    assert!(named(&script).is_empty());
}

/// The clock of the log is the real one.
#[test]
fn a_proxy_that_says_again_and_again_what_envoy_ignores_is_logged_once_a_second() {
    logged::Log::of(|log| {
        let mut script = Script::new(1, "");
        for _ in 0..100 {
            for choices_ignored in [true, false] {
                script.fold(reported(v1::ClusterRecord {
                    cluster: "c".into(),
                    choices_ignored,
                    ..Default::default()
                }));
            }
        }
        let mut lines = log.lines();
        lines.retain(|line| line.contains("the filter's choices"));
        assert!((1..10).contains(&lines.len()), "{lines:?}");
    });
}

#[test]
fn figures_keep_the_time_at_which_they_were_true() {
    let mut script = Script::new(1, "");
    script.pass(1000).scraped(1, Ok(figures(3, 2, 5))).pass(400);
    let observed = script.table().hosts()[0].load.clone().unwrap();
    assert_eq!((observed.in_progress, observed.queued), (3, 2));
    assert_eq!(observed.observed, Duration::from_millis(1000));
    script.pass(600).scraped(1, Err(Fault::TimedOut));
    let kept = script.table().hosts()[0].load.clone().unwrap();
    assert_eq!(
        (kept.in_progress, kept.observed),
        (3, Duration::from_millis(1000)),
        "kept, and ageing"
    );
}

#[test]
fn a_table_is_built_when_something_changed_or_its_ages_would_mislead() {
    let mut script = Script::new(1, "policy: { stale_after: 3s }");
    assert!(script.pass(999).publish().is_none());
    assert!(script.pass(1).publish().is_some());
    assert!(script.publish().is_none());
    assert!(script.scraped(1, Ok(figures(1, 0, 0))).publish().is_some());
    assert!(script.scraped(1, Err(Fault::TimedOut)).publish().is_none());
}

#[test]
fn a_host_that_refuses_twice_is_down_until_it_answers() {
    let mut script = Script::new(3, "");
    script.scraped(1, Err(Fault::Refused));
    assert_eq!(script.states()[0], HostState::Up);
    script.scraped(1, Err(Fault::Refused));
    assert_eq!(
        script.states(),
        [HostState::Down, HostState::Up, HostState::Up]
    );
    script.scraped(1, Ok(figures(0, 0, 0)));
    assert_eq!(script.states()[0], HostState::Up);
}

#[test]
fn if_more_than_half_of_the_hosts_seem_dead_none_is_taken_out() {
    let mut script = Script::new(4, "");
    for host in [1, 2] {
        script
            .scraped(host, Err(Fault::Refused))
            .scraped(host, Err(Fault::Refused));
    }
    assert_eq!(
        script
            .states()
            .iter()
            .filter(|state| **state == HostState::Down)
            .count(),
        2
    );
    script
        .scraped(3, Err(Fault::Refused))
        .scraped(3, Err(Fault::Refused));
    assert_eq!(script.states(), [HostState::Up; 4]);
    let view = script.owner.state.view(script.now - script.start);
    assert!(view.clusters["c"].health_ignored && view.clusters["c"].hosts[0].refuses_connections);
}

#[test]
fn nothing_is_said_of_caches_before_every_one_was_asked_or_had_the_time() {
    let said = |script: &mut Script| {
        script.publish();
        script
            .owner
            .state
            .snapshot()
            .of_type(CACHE_SHARD_TYPE)
            .is_some()
    };
    let mut script = Script::unasked(2, "cache_shards: 4");
    assert!(!said(script.cached(1, true, &["a"])));
    assert!(said(script.cached(2, true, &["b"])));
    let mut script = Script::unasked(2, "cache_shards: 4, policy: { stale_after: 5s }");
    assert!(!said(script.cached(1, true, &["a"]).pass(4_900)));
    assert!(said(script.pass(100)));
}

#[test]
fn only_shards_that_changed_get_a_new_version() {
    let mut script = Script::new(2, "cache_shards: 4");
    let versions = |snapshot: &Snapshot| -> Vec<String> {
        let shards = snapshot.of_type(CACHE_SHARD_TYPE).unwrap().values();
        shards.map(|shard| shard.version.to_string()).collect()
    };
    let before = versions(script.owner.state.snapshot());
    assert_eq!(before.len(), 4);
    let snapshot = script.cached(1, true, &["a"]).publish().unwrap();
    let shard = weir_policy::shard_of(KeyHash::of(b"a"), 4);
    for (index, (old, new)) in before.iter().zip(versions(&snapshot)).enumerate() {
        assert_eq!(*old != new, index == shard as usize);
    }
    let name = cache_shard_name("c", 4, shard);
    let (meta, contents) =
        decode_cache_shard(&name, &snapshot.get(CACHE_SHARD_TYPE, &name).unwrap().body).unwrap();
    assert_eq!((meta.epoch, contents.len()), (7, 1));
    assert!(
        script.cached(1, true, &["a"]).publish().is_none(),
        "said again"
    );
}

#[test]
fn a_new_configuration_keeps_what_is_known_of_hosts_that_stay() {
    let mut script = Script::new(3, "cache_shards: 4");
    script
        .scraped(1, Ok(figures(9, 0, 0)))
        .cached(1, true, &["a"])
        .cached(3, true, &["a", "b"]);
    let config = configured(&script._folder, &Script::text(2, "cache_shards: 2"));
    script.fold(News::Configured(config));
    let table = script.table();
    assert_eq!(table.hosts().len(), 2);
    assert_eq!(table.hosts()[0].load.as_ref().unwrap().in_progress, 9);
    let names: Vec<&String> = script
        .owner
        .state
        .snapshot()
        .of_type(CACHE_SHARD_TYPE)
        .unwrap()
        .keys()
        .collect();
    assert_eq!(names, ["c/2/0", "c/2/1"]);
    let keys: usize = (0..2)
        .map(|shard| {
            let name = cache_shard_name("c", 2, shard);
            let body = &script
                .owner
                .state
                .snapshot()
                .get(CACHE_SHARD_TYPE, &name)
                .unwrap()
                .body;
            decode_cache_shard(&name, body).unwrap().1.len()
        })
        .sum();
    assert_eq!(keys, 1, "the keys of the host that left are gone");
}

#[test]
fn a_bad_configuration_changes_nothing_but_is_shown() {
    let mut script = Script::new(1, "");
    let error = config::Error {
        file: "c.yaml".into(),
        line: 3,
        field: "x".into(),
        reason: "bad".into(),
    };
    script.fold(News::Misconfigured(error));
    assert!(script.publish().is_none());
    let view = script.owner.state.view(Duration::ZERO);
    assert_eq!(
        view.configuration_refused.as_deref(),
        Some("c.yaml:3: x: bad")
    );
    let config = configured(&script._folder, &Script::text(1, ""));
    script.fold(News::Configured(config));
    assert_eq!(
        script
            .owner
            .state
            .view(Duration::ZERO)
            .configuration_refused,
        None
    );
}

/// Ten requests of each of 32 classes, `times` times.
fn counts(times: u64) -> Vec<v1::RankCount> {
    let count = |class| v1::RankCount {
        rank: Rank::new(class, 9).number().into(),
        count: 10 * times,
    };
    (0..32).map(count).collect()
}

/// A report in which so many have been offered and admitted, at host 1.
fn report(times: u64, assignment: Option<&str>, load: Option<v1::Load>) -> Update {
    let counts = counts(times);
    let host = v1::HostRecord {
        address: "127.0.0.1:1".into(),
        admitted: counts.clone(),
        load,
        ..Default::default()
    };
    let assignments = assignment
        .map(|key| v1::Assignment {
            key: KeyHash::of(key.as_bytes()).0,
            host_id: weir_policy::HostId::of("127.0.0.1:1").0,
            age_ms: 0,
        })
        .into_iter()
        .collect();
    reported(v1::ClusterRecord {
        cluster: "c".into(),
        hosts: vec![host],
        offered: counts,
        assignments,
        ..Default::default()
    })
}

fn reported(cluster: v1::ClusterRecord) -> Update {
    reported_by("p", cluster)
}

fn reported_by(proxy: &str, cluster: v1::ClusterRecord) -> Update {
    let record = v1::VmRecord {
        slot: 0,
        epoch: 1,
        deadline_ns: u64::MAX,
        clusters: vec![cluster],
        published_ns: 0,
    };
    Update::Reported(
        v1::Report {
            proxy: proxy.into(),
            records: vec![record],
            ..Default::default()
        }
        .into(),
    )
}

#[test]
fn the_level_of_a_host_that_is_not_keeping_up_falls_and_comes_back() {
    let mut script = Script::new(
        2,
        "policy: { overload: dagor, selection: baseline }, dagor: { control: paper }",
    );
    let level = |script: &mut Script| script.table().hosts()[0].level.ranks();
    script.fold(report(0, None, None));
    let mut last = 4096;
    for window in 1..=10 {
        script
            .scraped(1, Ok(figures(9, 9, 50)))
            .scraped(2, Ok(figures(0, 0, 0)));
        script.fold(report(window, None, None)).pass(1000);
        let now = level(&mut script);
        // Two windows may be chance.
        assert_eq!(now < last, window > 2, "window {window}: {now}");
        last = now;
    }
    assert_eq!(script.table().hosts()[1].level.ranks(), 4096);
    script
        .scraped(1, Ok(figures(9, 9, 1)))
        .fold(report(11, None, None))
        .pass(1000);
    assert!(level(&mut script) > last);
    // Figures are lost: not to know is not to be overloaded.
    script.pass(6000);
    assert_eq!(level(&mut script), 4096);
}

/// What a steady level is shown: each second every host got `got` and did ten, in all classes alike.
fn steady(
    script: &mut Script,
    hosts: u64,
    seconds: std::ops::RangeInclusive<u64>,
    got: impl Fn(u64) -> u64,
) {
    for second in seconds {
        let host = |number: u64| v1::HostRecord {
            address: format!("127.0.0.1:{number}"),
            admitted: counts(second * got(number)),
            ..Default::default()
        };
        script.fold(reported(v1::ClusterRecord {
            cluster: "c".into(),
            hosts: (1..=hosts).map(host).collect(),
            offered: counts((1..=hosts).map(|number| second * got(number)).sum()),
            ..Default::default()
        }));
        for number in 1..=hosts {
            // Each time is ten requests of each of 32 classes.
            let waiting = (second * 320 * (got(number) - 1)) as u32;
            script.scraped(number as usize, Ok(figures(waiting, waiting, 0)));
        }
        script.pass(1000);
    }
}

#[test]
fn one_host_behind_the_others_passes_on_and_nobody_is_shed() {
    let mut script = Script::new(3, "policy: { overload: dagor }");
    let levels = |script: &mut Script| {
        let table = script.table();
        let levels = table.hosts().iter().map(|host| host.level.ranks());
        levels.collect::<Vec<_>>()
    };
    steady(&mut script, 3, 0..=5, |host| if host == 2 { 3 } else { 1 });
    let behind = levels(&mut script);
    assert_eq!((behind[0], behind[2]), (4096, 4096));
    assert!((512..4096).contains(&behind[1]), "{behind:?}");
}

#[test]
fn when_all_hosts_are_behind_the_cluster_sheds_and_lost_figures_open_it() {
    let mut script = Script::new(3, "policy: { overload: dagor }");
    steady(&mut script, 3, 0..=4, |_| 3);
    let table = script.table();
    let levels: Vec<_> = table
        .hosts()
        .iter()
        .map(|host| host.level.ranks())
        .collect();
    assert!(levels[0] < 2048, "{levels:?}");
    assert!(
        levels.iter().all(|level| *level == levels[0]),
        "one level for all"
    );
    script.pass(6000);
    assert_eq!(script.table().hosts()[0].level.ranks(), 4096);
}

#[test]
fn a_level_that_fell_on_one_core_rises_at_once_with_the_second_and_falls_where_two_are_too_few() {
    let levels = |millicores: u32| {
        let mut script = Script::new(1, "policy: { overload: dagor }");
        let level = |script: &mut Script| script.table().hosts()[0].level.ranks();
        script.node_says(1, 1000);
        steady(&mut script, 1, 0..=4, |_| 3);
        let fallen = level(&mut script);
        script.node_says(1, millicores);
        steady(&mut script, 1, 5..=5, |_| 3);
        let then = level(&mut script);
        steady(&mut script, 1, 6..=20, |_| 3);
        (fallen, then, level(&mut script))
    };
    let (fallen, without, _) = levels(1000);
    assert!(
        without <= fallen && fallen < 4096,
        "{without} after {fallen}"
    );
    let (fallen, then, at_last) = levels(2000);
    assert!(then > fallen, "{then} after {fallen}");
    assert!(at_last < then, "{at_last} after {then}");
}

#[test]
fn a_core_that_goes_and_comes_back_is_gained_once() {
    let mut script = Script::new(1, "policy: { overload: dagor }");
    let level = |script: &mut Script| script.table().hosts()[0].level.ranks();
    script.node_says(1, 1000);
    steady(&mut script, 1, 0..=4, |_| 3);
    let fallen = level(&mut script);
    let mut seen = Vec::new();
    for (second, millicores) in (13..).zip([2000, 1000, 2000, 1000, 2000]) {
        script.node_says(1, millicores);
        script.fold(reported(v1::ClusterRecord {
            cluster: "c".into(),
            hosts: vec![v1::HostRecord {
                address: "127.0.0.1:1".into(),
                admitted: counts(second),
                ..Default::default()
            }],
            offered: counts(second),
            ..Default::default()
        }));
        // Three seconds' work, which moves no level.
        script.scraped(1, Ok(figures(960, 960, 0))).pass(1000);
        seen.push(level(&mut script));
    }
    assert!(fallen < seen[0], "{seen:?} after {fallen}");
    assert!(seen.iter().all(|level| *level == seen[0]), "{seen:?}");
}

#[test]
fn what_a_host_passed_on_it_keeps_once_nobody_passes_anything_on() {
    let mut script = Script::new(3, "policy: { overload: dagor }");
    steady(&mut script, 3, 0..=5, |host| if host == 2 { 3 } else { 1 });
    assert!(script.table().hosts()[1].level.ranks() < 4096);
    let folder = tempfile::tempdir().unwrap();
    let baseline = Script::text(3, "policy: { overload: dagor, selection: baseline }");
    let baseline = configured(&folder, &baseline);
    script.fold(News::Configured(baseline));
    steady(&mut script, 3, 6..=6, |host| if host == 2 { 3 } else { 1 });
    let table = script.table();
    assert_eq!(table.hosts()[1].level, table.hosts()[0].level);
}

#[test]
fn a_host_that_closed_opens_again_though_others_have_served_everything_since() {
    let mut script = Script::new(2, "policy: { overload: dagor }, dagor: { control: paper }");
    // So many at the first host, then so many at the second.
    let served = |first: u64, second: u64| {
        let host = |number: u32, times| v1::HostRecord {
            address: format!("127.0.0.1:{number}"),
            admitted: counts(times),
            ..Default::default()
        };
        reported(v1::ClusterRecord {
            cluster: "c".into(),
            hosts: vec![host(1, first), host(2, second)],
            offered: counts(first + second),
            ..Default::default()
        })
    };
    let level = |script: &mut Script| script.table().hosts()[0].level.ranks();
    script.fold(served(0, 0));
    for window in 1..=40 {
        script.scraped(1, Ok(figures(9, 9, 50)));
        script.fold(served(window, 0)).pass(1000);
    }
    assert_eq!(
        level(&mut script) / 128,
        0,
        "only the most important class, or none"
    );
    let closed = level(&mut script);
    for window in 1..=3 {
        script.scraped(1, Ok(figures(0, 0, 0)));
        script.fold(served(40, window)).pass(1000);
    }
    assert!(level(&mut script) > closed);
}

#[test]
fn an_answer_that_a_proxy_reports_counts_if_it_is_newer_than_the_last_poll() {
    let mut script = Script::new(1, "");
    let load = |age_ms| {
        Some(v1::Load {
            age_ms,
            in_progress: 8,
            queued: vec![4],
            ..Default::default()
        })
    };
    script
        .pass(5000)
        .scraped(1, Ok(figures(1, 0, 7)))
        .pass(100)
        .fold(report(0, None, load(200)));
    assert_eq!(
        script.table().hosts()[0].load.as_ref().unwrap().in_progress,
        1,
        "older than the poll"
    );
    script.fold(report(0, None, load(50)));
    let observed = script.table().hosts()[0].load.clone().unwrap();
    assert_eq!((observed.in_progress, observed.queued), (8, 4));
    assert_eq!(
        observed.queuing_delay,
        Some(Duration::from_millis(7)),
        "kept, since the answer has none"
    );
    let classes = Some(v1::Load {
        age_ms: 0,
        in_progress: 5,
        queued: vec![1; 33],
        ..Default::default()
    });
    script.pass(10).fold(report(0, None, classes));
    assert_eq!(
        script.table().hosts()[0].load.as_ref().unwrap().in_progress,
        8,
        "33 classes are nonsense"
    );
}

#[test]
fn a_key_that_was_sent_to_a_host_is_assumed_there_for_a_while() {
    let mut script = Script::new(1, "cache_shards: 1, policy: { assumed_cached: 2s }");
    let len = |script: &mut Script| {
        script.publish();
        let shard = script
            .owner
            .state
            .snapshot()
            .get(CACHE_SHARD_TYPE, "c/1/0")
            .unwrap();
        decode_cache_shard("c/1/0", &shard.body).unwrap().1.len()
    };
    script.fold(report(0, Some("a"), None));
    assert_eq!(len(&mut script), 1);
    script.pass(1999);
    assert_eq!(len(&mut script), 1);
    script.pass(1);
    assert_eq!(len(&mut script), 0);
}

#[test]
fn a_caching_plan_is_pushed_as_cache_contents_and_what_was_sent_does_not_change_it() {
    let folder = tempfile::tempdir().unwrap();
    let text = |hosts: &str| {
        format!(
            "clusters:\n  c: {{ hosts: [ {hosts} ], cache_shards: 1, policy: {{ selection: caching_plan }}, caching_plan: plan.csv }}\n"
        )
    };
    let write = |plan: &str| std::fs::write(folder.path().join("plan.csv"), plan).unwrap();
    write("key,address\na,127.0.0.1:1\na,127.0.0.1:2\n");
    let both = text("{ address: \"127.0.0.1:1\" }, { address: \"127.0.0.1:2\" }");
    let start = Instant::now();
    let config = configured(&folder, &both);
    let owner = Owner::new(&config, 7, Metrics::default(), start);
    let mut script = Script {
        owner,
        config,
        start,
        now: start,
        _folder: folder,
    };
    let keys = |script: &mut Script| {
        script.pass(1000).publish();
        let pushed = script.owner.state.snapshot().get(CACHE_SHARD_TYPE, "c/1/0");
        decode_cache_shard("c/1/0", &pushed.unwrap().body)
            .unwrap()
            .1
            .len()
    };
    assert_eq!(keys(&mut script), 1);
    script.fold(report(0, Some("b"), None));
    assert_eq!(keys(&mut script), 1, "b was sent, but is not planned");
    let plan = script._folder.path().join("plan.csv");
    std::fs::write(&plan, "key,address\na,127.0.0.1:1\nb,127.0.0.1:1\n").unwrap();
    let one = configured(&script._folder, &text("{ address: \"127.0.0.1:1\" }"));
    script.fold(News::Configured(one));
    assert_eq!(keys(&mut script), 2);
    let config = configured(
        &script._folder,
        "clusters:\n  c: { cache_shards: 1, hosts: [ { address: 127.0.0.1:1 } ] }\n",
    );
    script.fold(News::Configured(config));
    assert_eq!(keys(&mut script), 0, "a plan that is gone is not believed");
}

#[test]
fn what_a_node_has_is_pushed_at_once_where_it_is_worth_a_table_else_with_the_next() {
    let mut script = Script::new(1, "");
    let says = |script: &mut Script, millicores| {
        script.node_says(1, millicores);
    };
    let capacity = |script: &mut Script| script.table().hosts()[0].capacity_millicores;
    says(&mut script, 2000);
    assert_eq!(capacity(&mut script), 2000);
    script.pass(1000);
    says(&mut script, 1950);
    assert_eq!(capacity(&mut script), 2000);
    script.scraped(1, Ok(figures(1, 0, 0)));
    assert_eq!(capacity(&mut script), 1950, "with the next");
    script.pass(60_000);
    assert_eq!(capacity(&mut script), 1950);
    script.pass(1);
    assert_eq!(capacity(&mut script), 0, "as configured");
    says(&mut script, 1000);
    assert_eq!(capacity(&mut script), 1000);
    says(&mut script, 3000);
    script.pass(999);
    assert_eq!(capacity(&mut script), 1000, "it has changed just now");
    script.pass(1);
    assert_eq!(capacity(&mut script), 3000);
}

#[test]
fn a_delay_that_is_older_than_the_other_figures_is_told_no_longer_than_they_count() {
    let mut script = Script::new(1, "");
    script.pass(1000).scraped(1, Ok(figures(3, 2, 5)));
    let (rows, mut watch) = oneshot::channel();
    let (cluster, host) = ("c".to_owned(), "127.0.0.1:1".to_owned());
    script.fold(News::Watched {
        cluster,
        host,
        rows,
    });
    let mut rows = watch.try_recv().unwrap().unwrap();
    let delay = Some(Duration::from_millis(5));
    assert_eq!(rows.borrow_and_update().delay, delay);
    // An answer that says nothing of the delay.
    let reported = |script: &mut Script| {
        let load = v1::Load {
            in_progress: 1,
            ..Default::default()
        };
        script.fold(report(0, None, Some(load))).publish();
    };
    script.pass(5000);
    reported(&mut script);
    let row = *rows.borrow_and_update();
    assert_eq!((row.delay, row.observed), (delay, Some(script.now)));
    script.pass(1);
    reported(&mut script);
    assert_eq!(rows.borrow_and_update().delay, None);
}

/// The configuration with hosts that discovery found.
fn with_found(config: &Config, ports: &[u16]) -> Arc<Config> {
    let mut members = crate::sources::membership::Membership::new(Arc::new(config.clone()));
    let entries = ports.iter().map(|port| {
        serde_json::json!({
            "Node": { "Node": "n", "Address": "127.0.0.1" },
            "Service": { "ID": port.to_string(), "Service": "c", "Port": port, "Meta": { "zone": "a" } },
        })
    });
    let body = serde_json::Value::from_iter(entries).to_string();
    let Some(crate::config::Registry::Consul(consul)) = &config.clusters["c"].registry else {
        panic!("no consul");
    };
    let found = crate::sources::consul::read(body.as_bytes(), &consul.question).unwrap();
    members.find("c", found);
    members.effective()
}

#[test]
fn nothing_is_said_of_a_cluster_before_its_hosts_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let text = "clusters: { c: { consul: { connect: false }, cache: {} }, d: { hosts: [ { address: 127.0.0.1:9 } ] } }\n";
    let config = configured(&folder, text);
    let start = Instant::now();
    let mut owner = Owner::new(&config, 7, Metrics::default(), start);
    let snapshot = owner.publish(start).unwrap();
    let tables = snapshot.of_type(HOST_TABLE_TYPE).unwrap();
    assert!(tables["c"].is_unknown() && !tables["d"].is_unknown());
    assert!(snapshot.get(HOST_TABLE_TYPE, "c").is_none());
    let shards = snapshot.of_type(CACHE_SHARD_TYPE).unwrap();
    let is_known = |cluster: &str| {
        let mut ours = shards.iter().filter(|(name, _)| name.starts_with(cluster));
        ours.any(|(_, shard)| !shard.is_unknown())
    };
    assert!(!is_known("c/") && is_known("d/"), "nor of its caches");
    let view = owner.state.view(Duration::ZERO);
    assert!(view.clusters["c"].not_pushed.is_some() && view.clusters["d"].not_pushed.is_none());
    owner.fold(News::Discovered(with_found(&config, &[1, 2])), start);
    let snapshot = owner.publish(start).unwrap();
    let table = snapshot.get(HOST_TABLE_TYPE, "c").unwrap();
    let (_, table) = decode_host_table("c", &table.body, Duration::ZERO).unwrap();
    assert_eq!(table.hosts().len(), 2);
    assert_eq!(
        (table.zones(), table.hosts()[1].zone),
        (&["a".to_owned()][..], 1)
    );
    let host = &owner.state.view(Duration::ZERO).clusters["c"].hosts[0];
    assert_eq!((host.named_by, host.zone.as_deref()), ("consul", Some("a")));
}

#[test]
fn a_host_drains_no_longer_than_somebody_can_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let with = |sources: &str| {
        let hosts = "hosts: [ { address: \"127.0.0.1:1\" } ]";
        configured(
            &folder,
            &format!("clusters: {{ c: {{ {hosts}, {sources} }} }}\n"),
        )
    };
    let drains_after = |sources: &str| {
        let start = Instant::now();
        let mut owner = Owner::new(&with("scrape: {}"), 7, Metrics::default(), start);
        let (cluster, host) = ("c".into(), "127.0.0.1:1".into());
        let (draining, asked) = (true, start);
        let result = Ok(Scraped {
            draining,
            ..Scraped::default()
        });
        owner.fold(
            Update::Scraped {
                cluster,
                host,
                asked,
                result,
            },
            start,
        );
        owner.fold(News::Configured(with(sources)), start);
        owner.state.clusters()["c"].hosts["127.0.0.1:1"].draining
    };
    assert!(drains_after("scrape: {}, cache_shards: 4"));
    assert!(drains_after("prometheus: {}"), "it is asked soon");
    assert!(!drains_after("prometheus: { queries: { draining: \"\" } }"));
    assert!(!drains_after("cache_shards: 4"));
}

#[test]
fn what_prompts_take_to_be_read_and_answered_is_in_the_table_of_hosts_that_serve_them() {
    let spell = |seconds: f64| {
        let prompts = 4.0;
        Some(Spell { prompts, seconds })
    };
    let told = |policy: &str| {
        let mut script = Script::new(1, policy);
        let (cluster, host, asked) = ("c".into(), "127.0.0.1:1".into(), script.now);
        let result = Ok(Scraped {
            read: spell(2.0),
            wrote: spell(80.0),
            ..Scraped::default()
        });
        script.fold(Update::Scraped {
            cluster,
            host,
            asked,
            result,
        });
        script.pass(5000).publish();
        let cost = script.table().mean_cost();
        (cost.fetch.as_millis(), cost.run.as_millis())
    };
    assert_eq!(told("policy: { serves: prompts }"), (500, 20_000));
    assert_eq!(told("policy: { serves: jobs }"), (0, 0));
}

#[test]
fn gauges_of_tables_outlive_a_change_and_go_with_their_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let one = "c: { consul: { connect: false } }";
    let config = configured(
        &folder,
        &format!("clusters: {{ {one}, d: {{ hosts: [ {{ address: 127.0.0.1:9 }} ] }} }}\n"),
    );
    let start = Instant::now();
    let (metrics, registry) = registered();
    let mut owner = Owner::new(&config, 7, metrics, start);
    let value = |name: &str, cluster: &str| {
        let series = format!("{name}{{cluster=\"{cluster}\"}} ");
        let page = page_of(&registry);
        let value = page.lines().find_map(|line| line.strip_prefix(&series));
        value.map(|value| value.parse::<f64>().unwrap())
    };
    let (built, missing) = ("table_built_timestamp_seconds", "table_missing");
    owner.publish(start);
    let of_both = |name| [value(name, "c"), value(name, "d")];
    assert_eq!(of_both(missing), [Some(1.0), Some(0.0)]);
    let [none, first] = of_both(built);
    assert!(none.is_none() && first.is_some());
    owner.fold(News::Discovered(with_found(&config, &[1])), start);
    assert_eq!(value(built, "d"), first, "before the next table as well");
    owner.publish(start);
    assert_eq!(of_both(missing), [Some(0.0), Some(0.0)]);
    let alone = configured(&folder, &format!("clusters: {{ {one} }}\n"));
    owner.fold(News::Configured(alone), start);
    owner.publish(start);
    assert!(value(built, "c").is_some());
    assert_eq!([value(built, "d"), value(missing, "d")], [None, None]);
}

fn registered() -> (Metrics, prometheus_client::registry::Registry) {
    let metrics = Metrics::default();
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    (metrics, registry)
}

/// What `/metrics` says.
fn page_of(registry: &prometheus_client::registry::Registry) -> String {
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, registry).unwrap();
    page
}

#[test]
fn a_cluster_that_is_gone_leaves_no_series() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = |name| format!("{name}: {{ hosts: [ {{ address: 127.0.0.1:9 }} ] }}");
    let (both, one) = ([cluster("c"), cluster("d")].join(", "), cluster("d"));
    let config = configured(&folder, &format!("clusters: {{ {both} }}\n"));
    let start = Instant::now();
    let (metrics, registry) = registered();
    let mut owner = Owner::new(&config, 7, metrics.clone(), start);
    owner.publish(start);
    owner.fold(report(1, None, None), start);
    owner.fold(report(9, None, None), start);
    let mut engine = metrics.kv_events().of("c", "127.0.0.1:9");
    engine.received(10);
    engine.counted(Default::default(), Default::default(), 1);
    drop(engine);
    assert!(page_of(&registry).contains("requests_total{cluster=\"c\""));
    let config = configured(&folder, &format!("clusters: {{ {one} }}\n"));
    owner.fold(News::Configured(config), start);
    owner.publish(start);
    let page = page_of(&registry);
    let left: Vec<_> = page.lines().filter(|line| line.contains("\"c\"")).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn hosts_of_which_nobody_is_asked_for_figures_are_not_stale() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = "hosts: [ { address: 127.0.0.1:9 } ]";
    let text = format!("clusters: {{ c: {{ {hosts} }}, d: {{ {hosts}, scrape: {{}} }} }}\n");
    let config = configured(&folder, &text);
    let start = Instant::now();
    let (metrics, registry) = registered();
    let mut owner = Owner::new(&config, 7, metrics, start);
    owner.publish(start + Duration::from_secs(60));
    let page = page_of(&registry);
    let stale = page.lines().filter(|line| line.starts_with("hosts_stale{"));
    assert_eq!(stale.collect::<Vec<_>>(), ["hosts_stale{cluster=\"d\"} 1"]);
}

#[test]
fn who_leads_no_longer_shows_no_gauges_of_then() {
    let folder = tempfile::tempdir().unwrap();
    let text = "clusters: { c: { hosts: [ { address: 127.0.0.1:9 } ] } }\n";
    let config = configured(&folder, text);
    let start = Instant::now();
    let (metrics, registry) = registered();
    let mut owner = Owner::new(&config, 7, metrics, start).of_several(HANDED_OVER_AFTER);
    owner.take_role(Role::Leading { index: 4 }, start);
    owner.publish(start + Duration::from_secs(5));
    let hosts = |registry| page_of(registry).matches("hosts{cluster=\"c\"").count();
    assert!(hosts(&registry) > 0);
    owner.take_role(replica::following(5), start);
    owner.fold(News::Discovered(config), start);
    assert_eq!(hosts(&registry), 0);
}

#[test]
fn no_shard_is_pushed_of_a_cluster_before_its_hosts_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let text = "clusters: { c: { consul: { connect: false }, cache: {}, cache_shards: 1 }, d: { cache_shards: 1, hosts: [ { address: 127.0.0.1:9 } ] } }\n";
    let config = configured(&folder, text);
    let start = Instant::now();
    let mut owner = Owner::new(&config, 7, Metrics::default(), start);
    owner.publish(start);
    // The caches of nobody have had their time.
    let later = start + Duration::from_secs(60);
    let snapshot = owner.publish(later).unwrap();
    let shards = snapshot.of_type(CACHE_SHARD_TYPE).unwrap();
    assert!(shards["c/1/0"].is_unknown(), "a proxy keeps what it has");
    assert!(!shards["d/1/0"].is_unknown());
    assert!(owner.publish(later).is_none(), "nothing is due");
    owner.fold(News::Discovered(with_found(&config, &[1])), later);
    let snapshot = owner.publish(later).unwrap();
    assert!(snapshot.get(CACHE_SHARD_TYPE, "c/1/0").is_some());
}

#[test]
fn of_a_new_question_the_complaint_is_shown_until_it_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let config = configured(&folder, "clusters: { c: { consul: {} } }\n");
    let start = Instant::now();
    let mut owner = Owner::new(&config, 7, Metrics::default(), start);
    let (cluster, complaint) = ("c".into(), "of before".to_owned());
    owner.fold(Update::Waiting { cluster, complaint }, start);
    let shown = |owner: &mut Owner| {
        owner.state.view(Duration::ZERO).clusters["c"].sources["consul"].clone()
    };
    let before = shown(&mut owner);
    assert_eq!(before.complaints, ["of before"]);
    assert_eq!(before.last_success_ms_ago, None, "nobody has answered");
    let (cluster, source, result) = ("c".into(), Source::Consul, Ok(vec![]));
    let answered = Update::Asked {
        cluster,
        source,
        result,
    };
    owner.fold(answered, start);
    assert!(shown(&mut owner).complaints.is_empty());
}

#[test]
fn hosts_that_are_written_are_told_alone_only_when_discovery_has_had_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let text = "clusters: { c: { consul: { connect: false }, hosts: [ { address: \"127.0.0.1:9\" } ], policy: { stale_after: 4s } } }\n";
    let config = configured(&folder, text);
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let fresh = || Owner::new(&config, 7, Metrics::default(), start);
    let hosts = |snapshot: &Snapshot| {
        let table = snapshot.get(HOST_TABLE_TYPE, "c")?;
        let (_, table) = decode_host_table("c", &table.body, Duration::ZERO).unwrap();
        Some(table.hosts().len())
    };
    let mut owner = fresh();
    assert_eq!(hosts(&owner.publish(start).unwrap()), None);
    assert!(owner.publish(at(3999)).is_none());
    assert_eq!(hosts(&owner.publish(at(4000)).unwrap()), Some(1));
    let mut owner = fresh();
    owner.publish(start);
    owner.fold(News::Discovered(with_found(&config, &[1, 2])), at(10));
    assert_eq!(hosts(&owner.publish(at(10)).unwrap()), Some(3));
}

#[test]
fn in_standalone_mode_nothing_is_said_of_endpoints_either() {
    let folder = tempfile::tempdir().unwrap();
    let standalone = |service: &str| {
        format!(
            "clusters: {{ c: {{ consul: {{ connect: false, service: {service} }} }} }}\n\
             standalone:\n  filter: {{ wasm: /f.wasm, delivery: path }}\n  \
             listeners: [ {{ name: l, address: \"127.0.0.1:1\", cluster: c }} ]\n"
        )
    };
    let config = configured(&folder, &standalone("c"));
    let start = Instant::now();
    let mut owner = Owner::new(&config, 7, Metrics::default(), start);
    let snapshot = owner.publish(start).unwrap();
    assert!(snapshot.of_type(ENDPOINTS).unwrap()["c"].is_unknown());
    owner.fold(News::Discovered(with_found(&config, &[1])), start);
    let snapshot = owner.publish(start).unwrap();
    let known = snapshot.get(ENDPOINTS, "c").unwrap().version.clone();
    let other = configured(&folder, &standalone("x"));
    owner.fold(News::Configured(other), start);
    let snapshot = owner.publish(start).unwrap();
    assert_eq!(
        snapshot.get(ENDPOINTS, "c").unwrap().version,
        known,
        "the last ones stay"
    );
}

#[test]
fn a_table_stays_while_the_hosts_are_asked_for_in_another_way_until_it_is_stale() {
    let folder = tempfile::tempdir().unwrap();
    let config = configured(&folder, "clusters: { c: { consul: { connect: false } } }\n");
    let start = Instant::now();
    let mut owner = Owner::new(&with_found(&config, &[1]), 7, Metrics::default(), start);
    let version = |snapshot: &Snapshot| snapshot.get(HOST_TABLE_TYPE, "c").unwrap().version.clone();
    let first = version(&owner.publish(start).unwrap());
    let other = configured(&folder, "clusters: { c: { consul: { service: x } } }\n");
    owner.fold(News::Configured(other), start);
    let kept = owner.publish(start + Duration::from_secs(5)).unwrap();
    assert_eq!(version(&kept), first);
    // Who has it knows its age; who comes now would take it for new.
    let later = start + Duration::from_secs(6);
    let snapshot = owner.publish(later).unwrap();
    let tables = snapshot.of_type(HOST_TABLE_TYPE).unwrap();
    assert!(tables["c"].is_unknown());
    assert!(owner.publish(later).is_none(), "once");
    owner.fold(News::Configured(with_found(&config, &[1])), later);
    assert_ne!(version(&owner.publish(later).unwrap()), first);
}

#[test]
fn a_change_by_discovery_is_no_change_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let config = configured(&folder, "clusters: { c: { consul: { connect: false } } }\n");
    let start = Instant::now();
    let mut owner = Owner::new(&config, 7, Metrics::default(), start);
    let refused = crate::config::Error {
        file: "c.yaml".into(),
        line: 1,
        field: "x".into(),
        reason: "y".into(),
    };
    owner.fold(News::Misconfigured(refused), start);
    owner.fold(News::Discovered(with_found(&config, &[1])), start);
    assert!(
        owner
            .state
            .view(Duration::ZERO)
            .configuration_refused
            .is_some()
    );
    owner.fold(News::Configured(config), start);
    assert!(
        owner
            .state
            .view(Duration::ZERO)
            .configuration_refused
            .is_none()
    );
}

#[test]
fn what_discovery_complains_of_is_shown_and_stays_until_it_has_no_reason() {
    let folder = tempfile::tempdir().unwrap();
    let config = configured(&folder, "clusters: { c: { consul: {} } }\n");
    let start = Instant::now();
    let mut owner = Owner::new(&config, 7, Metrics::default(), start);
    let mut asked = |result| {
        let (cluster, source) = ("c".into(), Source::Consul);
        owner.fold(
            Update::Asked {
                cluster,
                source,
                result,
            },
            start,
        );
        owner.state.view(Duration::ZERO).clusters["c"].sources["consul"].clone()
    };
    let shown = asked(Ok(vec!["nobody".into()]));
    assert_eq!(
        (shown.error, shown.complaints),
        (None, vec!["nobody".to_owned()])
    );
    let shown = asked(Err(PollError::new(Fault::Denied, "403")));
    assert_eq!(shown.error.as_deref(), Some("denied: 403"));
    let shown = asked(Ok(vec![]));
    assert_eq!(
        (shown.error, shown.complaints, shown.last_success_ms_ago),
        (None, vec![], Some(0))
    );
}

#[test]
fn a_plan_outlives_hosts_that_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.csv"), "key,address\na,127.0.0.1:2\n").unwrap();
    let config = configured(
        &folder,
        "clusters: { c: { consul: { connect: false }, policy: { selection: caching_plan }, caching_plan: p.csv } }\n",
    );
    let start = Instant::now();
    let mut owner = Owner::new(&config, 7, Metrics::default(), start);
    let known = |owner: &Owner| {
        owner.state.clusters()["c"]
            .holdings
            .known_keys(weir_policy::HostId::of("127.0.0.1:2"))
    };
    for ports in [&[1, 2][..], &[1], &[1, 2]] {
        owner.fold(News::Discovered(with_found(&config, ports)), start);
        assert_eq!(known(&owner), 1);
    }
}

#[test]
fn a_plan_that_is_learned_has_nothing_of_one_that_is_written() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.csv"), "key,address\na,127.0.0.1:1\n").unwrap();
    let config = |rest: &str| {
        let text = format!(
            "clusters: {{ c: {{ hosts: [ {{ address: \"127.0.0.1:1\" }}, {{ address: \"127.0.0.1:2\" }} ], policy: {{ \
             selection: caching_plan }}, {rest} }} }}\n"
        );
        configured(&folder, &text)
    };
    let (written, learned) = (config("caching_plan: p.csv"), config("planner: {}"));
    let start = Instant::now();
    let mut owner = Owner::new(&learned, 7, Metrics::default(), start);
    let known = |owner: &Owner| {
        let holdings = &owner.state.clusters()["c"].holdings;
        ["127.0.0.1:1", "127.0.0.1:2"]
            .map(|host| holdings.known_keys(weir_policy::HostId::of(host)))
    };
    let spent = |proxy: &str, key: u64| {
        let record = v1::ClusterRecord {
            cluster: "c".into(),
            spent: vec![v1::Spent {
                key,
                host_id: weir_policy::HostId::of("127.0.0.1:2").0,
                run_us: 7_000,
                ..Default::default()
            }],
            ..Default::default()
        };
        reported_by(proxy, record)
    };
    for (proxy, key) in [("p", 8), ("q", 9)] {
        owner.fold(News::Configured(learned.clone()), start);
        assert_eq!(known(&owner), [0, 0]);
        owner.fold(spent(proxy, key), start);
        assert_eq!(known(&owner), [0, 1]);
        owner.fold(News::Configured(written.clone()), start);
        assert_eq!(known(&owner), [1, 0]);
    }
}

#[test]
fn a_host_that_removes_keys_it_never_had_holds_no_more_than_it_may() {
    let mut script = Script::new(2, "cache: { max_keys: 1000 }");
    let host = weir_policy::HostId::of("127.0.0.1:1");
    let hashes = |names: std::ops::Range<u64>| names.map(KeyHash).collect::<Vec<_>>();
    let mut refusals = 0;
    let mut is_asked_for_all = true;
    for poll in 0..16 {
        let changes = Changes {
            reset: is_asked_for_all,
            added: hashes(poll * 500..(poll + 1) * 500),
            removed: match is_asked_for_all {
                true => Vec::new(),
                false => hashes(1_000_000 + poll * 500..1_000_500 + poll * 500),
            },
        };
        let is_refused = script.cache_says(1, changes);
        let held = script.owner.state.clusters()["c"].holdings.known_keys(host);
        assert!(held <= 1000, "{held} keys after {poll} polls");
        let polls = &script.owner.state.clusters()["c"].hosts["127.0.0.1:1"].polls[&Source::Cache];
        let shown = polls.failing.as_ref().map(|(error, _)| error.to_string());
        let said = "too_many_keys: 127.0.0.1:1 holds 1500 keys, the limit is 1000: none is kept";
        assert_eq!(shown.as_deref(), is_refused.then_some(said));
        assert_eq!(is_refused, held == 0);
        is_asked_for_all = is_refused;
        refusals += u32::from(is_refused);
    }
    assert!(refusals > 0);
    // Others keep theirs, and all is well once it says what it may.
    script.cached(2, true, &["a"]).cached(1, true, &["a", "b"]);
    let holdings = &script.owner.state.clusters()["c"].holdings;
    assert_eq!(holdings.known_keys(host), 2);
    let keys = (0..holdings.shards()).map(|shard| holdings.contents(shard).count());
    assert_eq!(keys.sum::<usize>(), 2);
}

#[test]
fn a_host_that_left_and_came_back_between_two_looks_is_asked_for_all_that_it_holds() {
    let mut script = Script::new(2, "");
    script.cached(1, true, &["a"]);
    let changed = |key: &str| Changes {
        added: vec![KeyHash::of(key.as_bytes())],
        ..Changes::default()
    };
    assert!(!script.cache_says(1, changed("b")));
    let both = script.config.clone();
    let other = configured(
        &script._folder,
        &Script::text(1, "").replace(":1\"", ":2\""),
    );
    script
        .fold(News::Configured(other))
        .fold(News::Configured(both));
    // Who asks has not noticed, and asks for what is new.
    assert!(script.cache_says(1, changed("c")));
    let host = weir_policy::HostId::of("127.0.0.1:1");
    let held = |script: &Script| script.owner.state.clusters()["c"].holdings.known_keys(host);
    assert_eq!(held(&script), 0);
    script.cached(1, true, &["a", "b", "c"]);
    assert!(!script.cache_says(1, changed("d")));
    assert_eq!(held(&script), 4);
}
