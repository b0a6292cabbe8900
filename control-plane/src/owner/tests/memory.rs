// SPDX-License-Identifier: Apache-2.0
//! What is given up where memory is limited, and what never is.

use proptest::prelude::*;
use weir_policy::Rank;

use super::*;

const LIMIT: usize = 1 << 20;
const CLUSTERS: [&str; 3] = ["a", "b", "c"];
const HOSTS: usize = 3;

/// A state with a limit and one without, which hear the same.
struct Pair {
    limited: Owner,
    free: Owner,
    now: Instant,
    epoch: u64,
    _folder: tempfile::TempDir,
}

impl Pair {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hosts: Vec<String> = (1..=HOSTS)
            .map(|n| format!("{{ address: \"127.0.0.1:{n}\" }}"))
            .collect();
        let settings = "cache: {}, scrape: {}, cache_shards: 1, policy: { overload: dagor }";
        let cluster = format!("{{ hosts: [ {} ], {settings} }}", hosts.join(", "));
        let clusters = CLUSTERS.map(|name| format!("{name}: {cluster}"));
        let text = format!("clusters: {{ {} }}\n", clusters.join(", "));
        let limit = format!("memory: {{ limit: {LIMIT}B }}\n{text}");
        let now = Instant::now();
        let owner = |text: &str| Owner::new(&configured(&folder, text), 7, Metrics::default(), now);
        let (limited, free) = (owner(&limit), owner(&text));
        let mut pair = Self {
            limited,
            free,
            now,
            epoch: 0,
            _folder: folder,
        };
        for cluster in CLUSTERS {
            for host in 1..=HOSTS {
                pair.cached(cluster, host, true, 0..0);
            }
        }
        pair
    }

    fn both(&mut self, update: impl Fn(&Owner) -> Update) {
        for owner in [&mut self.limited, &mut self.free] {
            owner.fold(update(owner), self.now);
        }
    }

    fn cached(&mut self, cluster: &str, host: usize, reset: bool, keys: std::ops::Range<u64>) {
        let added: Vec<KeyHash> = keys.map(|key| KeyHash::of(&key.to_le_bytes())).collect();
        self.both(|owner| Update::Cached {
            cluster: cluster.into(),
            host: format!("127.0.0.1:{host}").into(),
            // As one who asks again when its cluster was dropped.
            drops: owner.state.budget().contents(cluster).drops,
            result: Ok(Changes {
                reset,
                added: added.clone(),
                removed: vec![],
            }),
        });
    }

    fn scraped(&mut self, cluster: &str, host: usize, queued: u32) {
        let now = self.now;
        self.both(|_| Update::Scraped {
            cluster: cluster.into(),
            host: format!("127.0.0.1:{host}").into(),
            asked: now,
            result: Ok(Scraped {
                figures: figures(1, queued, u64::from(queued)),
                ..Scraped::default()
            }),
        });
    }

    /// A report of an only proxy; its first one is where counting begins.
    fn offered(&mut self, cluster: &str, requests: u64) {
        self.epoch += 1;
        let epoch = self.epoch;
        self.both(|_| {
            Update::Reported(
                v1::Report {
                    proxy: "p".to_owned(),
                    records: vec![v1::VmRecord {
                        epoch,
                        deadline_ns: u64::MAX,
                        clusters: vec![v1::ClusterRecord {
                            cluster: cluster.to_owned(),
                            offered: vec![v1::RankCount {
                                rank: Rank::new(0, 0).number().into(),
                                count: requests,
                            }],
                            ..Default::default()
                        }],
                        ..Default::default()
                    }],
                    ..Default::default()
                }
                .into(),
            )
        });
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        for owner in [&mut self.limited, &mut self.free] {
            owner.advance(self.now);
            owner.publish(self.now);
        }
    }

    /// Contents are what is counted, whoever asks, and within the limit.
    fn check(&self) {
        let contents = self
            .limited
            .state
            .clusters()
            .values()
            .map(Cluster::contents_bytes);
        let held: usize = contents.sum();
        assert!(held <= LIMIT, "{held} bytes");
        assert_eq!(self.limited.state.budget().counted(), held);
        let now = self.limited.state.clock(self.now);
        for (name, free) in self.free.state.clusters() {
            let limited = &self.limited.state.clusters()[name];
            assert!(limited.hosts.keys().eq(free.hosts.keys()));
            for (ours, theirs) in limited.hosts.values().zip(free.hosts.values()) {
                assert_eq!(ours.observed, theirs.observed, "load");
                assert_eq!(limited.level_of(ours, now), free.level_of(theirs, now));
            }
        }
    }

    fn dropped(&self) -> Vec<&str> {
        let is_dropped = |name: &&str| self.limited.state.budget().contents(name).dropped;
        CLUSTERS.into_iter().filter(is_dropped).collect()
    }

    fn shard_keys(&self, cluster: &str) -> usize {
        let name = cache_shard_name(cluster, 1, 0);
        let shard = self
            .limited
            .state
            .snapshot()
            .get(CACHE_SHARD_TYPE, &name)
            .unwrap();
        let (_, contents) = weir_tables::decode_cache_shard(&name, &shard.body).unwrap();
        contents.len()
    }
}

#[test]
fn the_least_used_cluster_gives_up_its_contents_is_pushed_empty_and_comes_back() {
    let mut pair = Pair::new();
    for (cluster, requests) in [("a", 5), ("a", 900), ("b", 10), ("c", 500)] {
        pair.offered(cluster, requests);
    }
    for (cluster, host) in [("a", 1), ("b", 1), ("c", 1)] {
        pair.scraped(cluster, host, 3);
        pair.cached(cluster, host, false, 0..1000);
    }
    pair.pass(Duration::from_secs(2));
    pair.check();
    assert_eq!(pair.dropped(), Vec::<&str>::new());
    assert_eq!(pair.shard_keys("b"), 1000);
    pair.cached("a", 2, false, 1000..2000);
    assert_eq!(pair.dropped(), ["b"], "at once");
    pair.pass(Duration::from_secs(2));
    pair.check();
    assert_eq!((pair.shard_keys("b"), pair.shard_keys("a")), (0, 2000));
    // What it claims meanwhile is not kept.
    pair.cached("b", 1, false, 0..4000);
    assert_eq!(pair.limited.state.clusters()["b"].contents_bytes(), 0);
    pair.cached("a", 2, true, 0..0);
    pair.cached("c", 1, true, 0..100);
    pair.pass(Duration::from_secs(2));
    assert_eq!(pair.dropped(), Vec::<&str>::new());
    pair.cached("b", 1, true, 0..1000);
    pair.pass(Duration::from_secs(2));
    pair.check();
    assert_eq!(pair.shard_keys("b"), 1000);
}

#[test]
fn an_answer_to_a_question_from_before_the_drop_changes_nothing() {
    let mut pair = Pair::new();
    pair.cached("a", 1, false, 0..100_000);
    assert_eq!(pair.dropped(), ["a"]);
    // Two needs' halvings and more: it is tried again.
    pair.pass(Duration::from_secs(36_000));
    assert_eq!(pair.dropped(), Vec::<&str>::new());
    let late = Update::Cached {
        cluster: "a".into(),
        host: "127.0.0.1:1".into(),
        drops: 0,
        result: Ok(Changes {
            reset: false,
            added: vec![KeyHash(1)],
            removed: vec![],
        }),
    };
    pair.limited.fold(late, pair.now);
    assert_eq!(pair.limited.state.clusters()["a"].contents_bytes(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Cached(usize, usize, bool, u64, u64),
    Scraped(usize, usize, u32),
    Offered(usize, u64),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let (cluster, host) = (0..CLUSTERS.len(), 1..=HOSTS);
    prop_oneof![
        4 => (cluster.clone(), host.clone(), any::<bool>(), 0u64..4000, 0u64..3000)
            .prop_map(|(cluster, host, reset, from, count)| Step::Cached(cluster, host, reset, from, count)),
        2 => (cluster.clone(), host, 0u32..2000)
            .prop_map(|(cluster, host, queued)| Step::Scraped(cluster, host, queued)),
        2 => (cluster, 0u64..1000).prop_map(|(cluster, requests)| Step::Offered(cluster, requests)),
        1 => (100u64..1_000_000).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn whatever_is_claimed_fits_into_the_limit_and_no_level_load_or_host_is_given_up(
        steps in prop::collection::vec(step(), 1..25),
    ) {
        let mut pair = Pair::new();
        for step in steps {
            match step {
                Step::Cached(cluster, host, reset, from, count) => {
                    pair.cached(CLUSTERS[cluster], host, reset, from..from + count);
                }
                Step::Scraped(cluster, host, queued) => pair.scraped(CLUSTERS[cluster], host, queued),
                Step::Offered(cluster, requests) => pair.offered(CLUSTERS[cluster], requests),
                Step::Pass(ms) => pair.pass(Duration::from_millis(ms)),
            }
            pair.check();
        }
    }
}
