// SPDX-License-Identifier: Apache-2.0
//! A weir-control of two hosts with every source, without any I/O: whatever it is told, what it then pushes is
//! what filters accept, and what it shows can be shown.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_control::config::{self, Cluster, Config};
use weir_fleet::snapshot::Snapshot;
use weir_fleet::view::View;
use weir_fleet::{State, Update};
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE, Meta, decode_cache_shard, decode_host_table};

/// The name of its cluster.
pub(crate) const CLUSTER: &str = "rules";
/// One of its hosts.
pub(crate) const HOST: &str = "127.0.0.1:9001";

const TEXT: &str = "clusters:
  rules:
    policy: { selection: estimate, overload: dagor }
    cache_shards: 4
    hosts: [ { address: \"127.0.0.1:9001\", capacity_millicores: 4000 }, { address: \"127.0.0.1:9002\" } ]
    scrape: {}
    cache: { max_keys: 100 }
    prometheus: { address: \"http://127.0.0.1:9090\" }
";

thread_local! {
    static CONFIG: OnceCell<Arc<Config>> = const { OnceCell::new() };
}

pub(crate) fn config() -> Arc<Config> {
    CONFIG.with(|config| {
        let read = || {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("c.yaml");
            std::fs::write(&path, TEXT).expect("a file");
            let loaded = config::load(&path).map_err(|(error, _)| error);
            loaded.expect("a configuration").config
        };
        config.get_or_init(read).clone()
    })
}

pub(crate) fn cluster() -> Arc<Cluster> {
    config().clusters[CLUSTER].clone()
}

/// What is shown and pushed a second after these updates have come.
pub(crate) fn told(updates: impl FnOnce(Instant) -> Vec<Update>) -> View {
    let start = Instant::now();
    let epoch = Meta {
        epoch: 7,
        version: 0,
    };
    let mut state = State::new(Arc::new(config().fleet()), epoch.epoch, start);
    state.publish(start, 0);
    let news = start + Duration::from_secs(1);
    let first = Update::Cached {
        cluster: CLUSTER.into(),
        host: HOST.into(),
        drops: 0,
        result: Ok(Default::default()),
    };
    for update in std::iter::once(first).chain(updates(news)) {
        state.fold(update, news);
    }
    state.advance(news);
    state.publish(news, 1000);
    let view = state.view(state.clock(news));
    assert_eq!(view.clusters.len(), 1, "no cluster is made up");
    assert_eq!(view.clusters[CLUSTER].hosts.len(), 2, "nor is a host");
    is_accepted(&view.snapshot);
    serde_json::to_string(&view).expect("a page");
    view
}

fn is_accepted(snapshot: &Snapshot) {
    for (kind, resources) in &snapshot.resources {
        for (name, resource) in resources.iter().filter(|(_, known)| !known.is_unknown()) {
            let refusal = match *kind {
                HOST_TABLE_TYPE => {
                    decode_host_table(name, &resource.body, Duration::from_secs(1000)).err()
                }
                CACHE_SHARD_TYPE => decode_cache_shard(name, &resource.body).err(),
                _ => None,
            };
            assert_eq!(refusal, None, "{kind} {name}");
        }
    }
}
