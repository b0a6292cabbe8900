// SPDX-License-Identifier: Apache-2.0
//! One cluster in one VM: what decisions are made by, what was counted, which resources were read.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use weir_policy::{CacheShard, Cluster, Hedges, Held};
use weir_tables::{decode_cache_shard, decode_host_table, parse_cache_shard_name};

use crate::held::Waiting;
use crate::index::{Entry, Kind};
use crate::record::Counters;
use crate::shared;

#[derive(Default)]
pub(super) struct ClusterState {
    /// Roots whose configuration names the cluster. Without one it only keeps its counters, which must not
    /// start again within the life of the VM.
    pub(super) roots: usize,
    pub(super) cluster: Cluster,
    pub(super) counters: Counters,
    pub(super) held: Held<Rc<Waiting>>,
    pub(super) hedges: Hedges,
    /// By kind and name, when the resource that was taken was written.
    seen: BTreeMap<(Kind, String), u64>,
}

impl ClusterState {
    fn is_news(&mut self, entry: &Entry) -> bool {
        let seen = self
            .seen
            .insert((entry.kind(), entry.name.clone()), entry.written_ns);
        seen != Some(entry.written_ns)
    }

    pub(super) fn read_table(&mut self, entry: &Entry, now: Duration) {
        if !self.is_news(entry) {
            return;
        }
        let Some((received, body)) = shared::resource(Kind::Table, &entry.name) else {
            return;
        };
        // The owner has checked it; a failure here is another version's owner, and the old table stays.
        let Ok((_, table)) = decode_host_table(&entry.name, &body, received) else {
            return;
        };
        if self.cluster.table().map(|table| table.cache_shards()) != Some(table.cache_shards()) {
            self.seen.retain(|(kind, _), _| *kind == Kind::Table);
        }
        self.cluster.set_table(table, received, now);
    }

    pub(super) fn remove_table(&mut self) {
        self.cluster.remove_table();
        self.seen.clear();
    }

    /// Empties the shards that are gone.
    pub(super) fn forget_shards_except(&mut self, present: &BTreeSet<&str>) {
        self.seen.retain(|(kind, name), _| {
            let keep = *kind == Kind::Table || present.contains(name.as_str());
            if let (false, Ok((_, _, shard))) = (keep, parse_cache_shard_name(name)) {
                self.cluster.set_cache_shard(shard, CacheShard::default());
            }
            keep
        });
    }

    pub(super) fn read_shard(&mut self, entry: &Entry, shards: u32, shard: u32) {
        if self
            .cluster
            .table()
            .is_none_or(|table| table.cache_shards() != shards)
            || !self.is_news(entry)
        {
            return;
        }
        let Some((_, body)) = shared::resource(Kind::Shard, &entry.name) else {
            return;
        };
        if let Ok((_, contents)) = decode_cache_shard(&entry.name, &body) {
            self.cluster.set_cache_shard(shard, contents);
        }
    }
}
