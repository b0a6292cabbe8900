// SPDX-License-Identifier: Apache-2.0
//! Admission moves on evidence of overload alone, whatever proxies report.

use proptest::prelude::*;
use prost::Message;

use super::*;

/// What one proxy has reported so far, all of it absolute.
#[derive(Clone, Debug, Default)]
struct Proxy {
    offered: BTreeMap<u32, u64>,
    admitted: BTreeMap<u32, BTreeMap<u32, u64>>,
    unconnected: BTreeMap<u32, u64>,
    load: Option<v1::Load>,
}

fn rank_counts(counts: &BTreeMap<u32, u64>) -> Vec<v1::RankCount> {
    let counts = counts.iter();
    counts
        .map(|(rank, count)| v1::RankCount {
            rank: *rank,
            count: *count,
        })
        .collect()
}

impl Proxy {
    /// So many requests of a rank were sent to a host.
    fn sends(&mut self, host: u32, rank: u32, count: u64) -> &mut Self {
        self.wants(rank, count);
        *self
            .admitted
            .entry(host)
            .or_default()
            .entry(rank)
            .or_default() += count;
        self
    }

    /// So many were asked for.
    fn wants(&mut self, rank: u32, count: u64) -> &mut Self {
        *self.offered.entry(rank).or_default() += count;
        self
    }

    fn record(&self, hosts: u32) -> v1::ClusterRecord {
        let host = |number: u32| v1::HostRecord {
            address: format!("127.0.0.1:{number}"),
            admitted: rank_counts(self.admitted.get(&number).unwrap_or(&BTreeMap::new())),
            unconnected: self.unconnected.get(&number).copied().unwrap_or(0),
            load: self.load.clone(),
            ..Default::default()
        };
        v1::ClusterRecord {
            cluster: "c".into(),
            hosts: (1..=hosts).map(host).collect(),
            offered: rank_counts(&self.offered),
            ..Default::default()
        }
    }
}

fn levels(script: &mut Script) -> Vec<u16> {
    let table = script.table();
    table
        .hosts()
        .iter()
        .map(|host| host.level.ranks())
        .collect()
}

/// The control and the selection of a cluster with admission levels.
fn settings(control: &str, selection: &str) -> String {
    format!(
        "policy: {{ overload: dagor, selection: {selection} }}, dagor: {{ control: {control} }}"
    )
}

fn controls() -> impl Strategy<Value = String> {
    let control = prop::sample::select(vec!["steady", "paper", "stalled_jobs"]);
    let selection = prop::sample::select(vec!["estimate", "dynamic", "baseline"]);
    (control, selection).prop_map(|(control, selection)| settings(control, selection))
}

/// What a proxy may add to its report: host, rank, requests offered, sent, not taken, and a load with so many queued.
type Lie = (u32, u32, u64, u64, u64, Option<u32>);

fn lie() -> impl Strategy<Value = Lie> {
    let count = || prop_oneof![0u64..50, Just(0), any::<u32>().prop_map(u64::from)];
    (
        1u32..4,
        0u32..4096,
        count(),
        count(),
        count(),
        prop::option::of(any::<u32>()),
    )
}

fn tell(script: &mut Script, name: &str, proxy: &mut Proxy, lies: &[Lie]) {
    for (host, rank, offered, sent, unconnected, queued) in lies {
        proxy.wants(*rank, *offered).sends(*host, *rank, *sent);
        *proxy.unconnected.entry(*host).or_default() += unconnected;
        proxy.load = queued.map(|queued| v1::Load {
            in_progress: queued,
            queued: vec![queued],
            queuing_delay_us: Some(u64::from(queued)),
            ..Default::default()
        });
    }
    script.fold(reported_by(name, proxy.record(3)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn hosts_with_empty_queues_and_idle_cores_shed_nothing_whatever_is_reported(
        settings in controls(),
        windows in prop::collection::vec(prop::collection::vec((0usize..3, lie()), 0..6), 1..12),
    ) {
        let mut script = Script::new(3, &settings);
        let mut proxies = vec![Proxy::default(); 3];
        for (name, proxy) in proxies.iter().enumerate() {
            script.fold(reported_by(&name.to_string(), proxy.record(3)));
        }
        for window in windows {
            for (who, lie) in window {
                tell(&mut script, &who.to_string(), &mut proxies[who], &[lie]);
            }
            for host in 1..=3 {
                script.scraped(host, Ok(figures(1, 0, 0)));
            }
            script.pass(1000);
            prop_assert_eq!(levels(&mut script), vec![4096; 3]);
        }
    }

    #[test]
    fn a_fleet_whose_queues_are_empty_admits_everything_within_two_windows(
        settings in controls(),
        overload in prop::collection::vec((1u32..100_000, 1u64..60_000), 1..12),
        lies in prop::collection::vec(lie(), 0..6),
    ) {
        let mut script = Script::new(3, &settings);
        let mut proxy = Proxy::default();
        script.fold(reported_by("p", proxy.record(3)));
        for (queued, delay_ms) in overload {
            for host in 1..=3 {
                for class in 0..32 {
                    proxy.sends(host, class * 128, 10);
                }
                script.scraped(host as usize, Ok(figures(queued, queued, delay_ms)));
            }
            script.fold(reported_by("p", proxy.record(3))).pass(1000);
        }
        for _ in 0..2 {
            for host in 1..=3 {
                script.scraped(host, Ok(figures(1, 0, 0)));
            }
            tell(&mut script, "p", &mut proxy, &lies);
            script.pass(1000);
        }
        prop_assert_eq!(levels(&mut script), vec![4096; 3]);
    }

    #[test]
    fn one_liar_of_n_moves_no_level_by_more_than_a_tenth_of_the_requests_and_its_share(
        honest in 3usize..10, lies in prop::collection::vec(lie(), 1..6), waits_s in 3u32..30,
    ) {
        // Each honest proxy sends as much of every class. Hosts do half of what comes, and count what they start.
        let run = |lies: Option<&[Lie]>| {
            let mut script = Script::new(3, &settings("steady", "estimate"));
            let mut proxies = vec![Proxy::default(); honest];
            let mut liar = Proxy::default();
            let mut got = Vec::new();
            for window in 0..8u32 {
                for (name, proxy) in proxies.iter_mut().enumerate() {
                    for host in 1..=3 {
                        for class in 0..32 {
                            proxy.sends(host, class * 128, u64::from(window > 0));
                        }
                    }
                    script.fold(reported_by(&name.to_string(), proxy.record(3)));
                }
                match lies {
                    Some(lies) if window > 0 => tell(&mut script, "liar", &mut liar, lies),
                    _ => tell(&mut script, "liar", &mut liar, &[]),
                }
                let started = honest as f64 * 32.0;
                let queue = (started * f64::from(waits_s)) as u32;
                for host in 1..=3 {
                    let figures = figures(queue + 8, queue, 1000 * u64::from(waits_s));
                    script.counted(host, figures, started);
                }
                script.pass(1000);
                got.push(levels(&mut script)[0]);
            }
            got
        };
        let (honestly, lied) = (run(None), run(Some(&lies)));
        // All classes weigh the same, so ranks are shares of the requests.
        let mut most = 0.0;
        for (without, with) in honestly.iter().zip(&lied) {
            most += 0.1 + 1.0 / (honest + 1) as f64;
            let moved = f64::from(without.abs_diff(*with)) / 4096.0;
            prop_assert!(moved <= most, "{honestly:?} {lied:?}");
        }
    }
}

/// 204 requests a second at each of three hosts, of which so many are reset, for so many windows of a second; every
/// host does the rest within milliseconds.
fn resets(control: &str, resets: u64, windows: u64, delay_ms: u64) -> Vec<u16> {
    let mut script = Script::new(3, &settings(control, "estimate"));
    let mut proxy = Proxy::default();
    script.fold(reported_by("p", proxy.record(3)));
    for _ in 0..windows {
        for host in 1..=3 {
            for class in 0..4 {
                proxy.sends(host, class * 1024, 51);
            }
            *proxy.unconnected.entry(host).or_default() += resets;
            script.scraped(host as usize, Ok(figures(1, 0, delay_ms)));
        }
        script.fold(reported_by("p", proxy.record(3))).pass(1000);
    }
    levels(&mut script)
}

#[test]
fn resets_on_healthy_hosts_shed_nothing() {
    for control in ["steady", "paper", "stalled_jobs"] {
        for share in [1, 4, 20, 100] {
            let levels = resets(control, share, 62, 0);
            assert_eq!(levels, [4096; 3], "{control}: {share} resets a second");
        }
    }
}

#[test]
fn a_proxy_that_says_everything_was_wanted_at_the_first_rank_and_not_taken_shuts_no_door() {
    for control in ["steady", "paper", "stalled_jobs"] {
        let mut script = Script::new(3, &settings(control, "estimate"));
        let mut liar = Proxy::default();
        script.fold(reported_by("liar", liar.record(3)));
        for _ in 0..10 {
            liar.wants(0, 1_000_000);
            for host in 1..=3 {
                *liar.unconnected.entry(host).or_default() += 1;
                script.scraped(host as usize, Ok(figures(0, 0, 0)));
            }
            script.fold(reported_by("liar", liar.record(3))).pass(1000);
        }
        assert_eq!(levels(&mut script), [4096; 3], "{control}");
    }
}

/// One host of three has a queue of two seconds and does not take a tenth of its requests, then takes all of them.
fn refusing(settings: &str) -> [Vec<u16>; 2] {
    let mut script = Script::new(3, settings);
    let mut proxy = Proxy::default();
    script.fold(reported_by("p", proxy.record(3)));
    let mut round = |refused: u64, queued: u32| {
        for host in 1..=3 {
            for class in 0..32 {
                proxy.sends(host, class * 128, 10);
            }
            let slow = host == 2;
            *proxy.unconnected.entry(host).or_default() += if slow { refused } else { 0 };
            let queued = if slow { queued } else { 0 };
            script.counted(host as usize, figures(queued, queued, 0), 320.0);
        }
        script.fold(reported_by("p", proxy.record(3))).pass(1000);
        let owner = &script.owner.state.clusters()["c"];
        assert!(
            owner
                .hosts
                .values()
                .all(|host| host.level.requests() == 0.0),
            "a new window"
        );
        levels(&mut script)
    };
    for _ in 0..3 {
        round(0, 0);
    }
    let queue = |round: &mut dyn FnMut(u64, u32) -> Vec<u16>| {
        round(32, 640);
        round(32, 640)
    };
    let lowered = queue(&mut round);
    for _ in 0..6 {
        round(0, 0);
    }
    [lowered, round(0, 0)]
}

#[test]
fn a_full_host_that_takes_no_connections_is_passed_by_until_it_does() {
    let [lowered, after] = refusing(&settings("steady", "estimate"));
    assert_eq!((lowered[0], lowered[2]), (4096, 4096), "{lowered:?}");
    assert!((3000..4096).contains(&lowered[1]), "{lowered:?}");
    assert_eq!(after, [4096; 3]);
}

#[test]
fn one_full_host_sheds_nobody_where_nobody_passes_anything_on() {
    let [lowered, after] = refusing(&settings("steady", "baseline"));
    assert_eq!((lowered, after), (vec![4096; 3], vec![4096; 3]));
}

#[test]
fn a_restart_in_overload_goes_on_from_the_levels_that_sidecars_say_are_in_force() {
    for control in ["steady", "paper"] {
        let mut script = Script::unasked(3, &settings(control, "estimate")).restarted();
        let say = |script: &mut Script, proxy: &str, level| {
            let host = |number: u32| v1::HostRecord {
                address: format!("127.0.0.1:{number}"),
                admission_level: level,
                ..Default::default()
            };
            let hosts = (1..=3).map(host).collect();
            let cluster = "c".into();
            script.fold(reported_by(
                proxy,
                v1::ClusterRecord {
                    cluster,
                    hosts,
                    ..Default::default()
                },
            ));
        };
        for host in 1..=3 {
            script.scraped(host, Ok(figures(90, 80, 3000)));
        }
        for (proxy, level) in [
            ("a", Some(1000)),
            ("b", Some(1000)),
            ("liar", Some(0)),
            ("c", None),
        ] {
            say(&mut script, proxy, level);
        }
        script.pass(900).publish();
        assert!(
            script.owner.state.clusters()["c"].built.is_none(),
            "others may still come back"
        );
        script.pass(200);
        assert_eq!(levels(&mut script), [1000; 3], "{control}");
    }
}

#[test]
fn a_host_that_says_that_it_is_idle_and_nothing_else_is_opened() {
    for control in ["steady", "paper", "stalled_jobs"] {
        let mut script = Script::unasked(2, &settings(control, "estimate")).restarted();
        let host = |number: u32| v1::HostRecord {
            address: format!("127.0.0.1:{number}"),
            admission_level: Some(0),
            ..Default::default()
        };
        let cluster = v1::ClusterRecord {
            cluster: "c".into(),
            hosts: (1..=2).map(host).collect(),
            ..Default::default()
        };
        for host in 1..=2 {
            script.scraped(host, Ok(figures(90, 80, 3000)));
        }
        script.fold(reported_by("p", cluster)).pass(1100);
        assert_eq!(levels(&mut script), [0; 2], "{control}");
        // As of a program that has just started: its series of waiting jobs begin with the first.
        let idle = Figures {
            in_progress: Some(0),
            ..Figures::default()
        };
        for _ in 0..4 {
            for host in 1..=2 {
                script.scraped(host, Ok(idle.clone()));
            }
            script.pass(1000).publish();
        }
        assert_eq!(levels(&mut script), [4096; 2], "{control}");
    }
}

#[test]
fn after_a_restart_hosts_that_are_found_late_begin_at_the_levels_that_are_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let text = "clusters: { c: { consul: { connect: false }, policy: { overload: dagor } } }\n";
    let config = configured(&folder, text);
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let mut owner = Owner::new(&config, 8, Metrics::default(), start).resuming();
    let say = |owner: &mut Owner, ms| {
        let host = v1::HostRecord {
            address: "127.0.0.1:1".into(),
            admission_level: Some(1000),
            load: Some(v1::Load {
                in_progress: 90,
                queued: vec![80],
                queuing_delay_us: Some(3_000_000),
                ..Default::default()
            }),
            ..Default::default()
        };
        let cluster = v1::ClusterRecord {
            cluster: "c".into(),
            hosts: vec![host],
            ..Default::default()
        };
        owner.fold(reported_by("p", cluster), at(ms));
        owner.advance(at(ms));
        owner.publish(at(ms))
    };
    for ms in (0..4000).step_by(200) {
        say(&mut owner, ms);
    }
    owner.fold(News::Discovered(with_found(&config, &[1])), at(4000));
    let first = (4000..6000).step_by(200).find_map(|ms| {
        let snapshot = say(&mut owner, ms)?;
        let table = snapshot.get(HOST_TABLE_TYPE, "c")?;
        Some(v1::HostTable::decode(table.body.clone()).unwrap())
    });
    assert_eq!(first.unwrap().hosts[0].admission_level, Some(1000));
}

#[test]
fn a_start_without_sidecars_waits_for_nobody_for_long() {
    let mut script = Script::unasked(2, &settings("steady", "estimate")).restarted();
    script.pass(2900).publish();
    assert!(script.owner.state.clusters()["c"].built.is_none());
    script.pass(200);
    assert_eq!(levels(&mut script), [4096; 2]);
    // Where there are no levels nobody waits.
    let mut script = Script::unasked(2, "").restarted();
    assert_eq!(levels(&mut script), [4096; 2]);
}
