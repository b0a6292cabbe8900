// SPDX-License-Identifier: Apache-2.0
//! One cluster in one VM: what decisions are made by, what was counted, which resources were read.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use weir_policy::{CacheShard, Cluster, Hedges, HostId, KeyHash, Salt, Usage, WaitQueue};
use weir_tables::{
    Meta, cache_shard_name, decode_cache_shard, decode_host_table, parse_cache_shard_name,
};

use super::bounces::Bounces;
use crate::contents::Contents;
use crate::heed::Heed;
use crate::held::HeldRequest;
use crate::host::{Host, LogLevel};
use crate::index::{Entry, Kind};
use crate::record::Counters;
use crate::shared;

#[derive(Default)]
pub(super) struct ClusterState {
    /// Roots whose configuration names the cluster. Without one it only keeps its counters, which must not
    /// start again within the life of the VM.
    pub(super) roots: usize,
    pub(super) cluster: Cluster,
    /// Of the table that is in force.
    pub(super) meta: Meta,
    pub(super) counters: Counters,
    pub(super) held: WaitQueue<Rc<HeldRequest>>,
    pub(super) hedges: Hedges,
    pub(super) bounces: Bounces,
    heed: Heed,
    /// Of the salt in the newest configuration.
    salt_check: Option<KeyHash>,
    /// weir-control has another one.
    salt_differs: bool,
    /// There is no room for its cache contents.
    pub(super) left_out: bool,
    /// How much it was used, as of `counted` requests.
    pub(super) usage: Usage,
    counted: u64,
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

    /// As a proxy in this zone sees it.
    pub(super) fn read_table(
        &mut self,
        host: &impl Host,
        zone: &str,
        entry: &Entry,
        now: Duration,
    ) {
        if !self.is_news(entry) {
            return;
        }
        let decode = |received, body: &[u8]| {
            let (meta, table) = decode_host_table(&entry.name, body, received).ok()?;
            Some((received, meta, table.seen_from(zone)))
        };
        // The owner has checked it; a failure here is another version's owner, and the old table stays.
        let decoded = shared::resource(host, Kind::Table, &entry.name, decode).flatten();
        let Some((received, meta, table)) = decoded else {
            return;
        };
        if self.cluster.table().map(|table| table.cache_shards()) != Some(table.cache_shards()) {
            self.seen.retain(|(kind, _), _| *kind == Kind::Table);
        }
        let panicked = self.cluster.panics();
        self.cluster.set_table(table, received, now);
        self.meta = meta;
        if self.cluster.panics() && !panicked {
            let words = "few hosts are left, so those that drain are chosen as well, of ";
            host.log(LogLevel::Warn, &[words, &entry.name].concat());
        }
        self.compare_salts(host, &entry.name);
    }

    /// Its table is read once more: the proxy is in another zone than it took itself to be.
    pub(super) fn see_table_anew(&mut self) {
        self.seen.retain(|(kind, _), _| *kind != Kind::Table);
    }

    /// By a new configuration its keys are hashed with this salt.
    pub(super) fn salted(&mut self, host: &impl Host, salt: Option<&Salt>, name: &str) {
        self.salt_check = salt.map(Salt::check);
        self.compare_salts(host, name);
    }

    /// Logs that weir-control hashes keys otherwise, once: no key of a request is found at any host then.
    fn compare_salts(&mut self, host: &impl Host, name: &str) {
        let table = self.cluster.table();
        let differs = table.is_some_and(|table| table.policy().salt_check != self.salt_check);
        if differs && !self.salt_differs {
            let words = "no host is chosen by its cache contents, as key_salt is not what weir-control has in keys.salt_file, of ";
            host.log(LogLevel::Warn, &[words, name].concat());
        }
        self.salt_differs = differs;
    }

    /// Another host than the named one has a request from the first. Says whether that is a sign.
    pub(super) fn missed(&mut self, named: HostId, other: HostId) -> bool {
        let cluster = &self.cluster;
        let answers = cluster.ended_at(named).unwrap_or(0);
        let is_known = cluster.ended_at(other).is_some();
        self.heed.missed(named, answers, is_known, cluster.ended())
    }

    /// Tells decisions whether Envoy heeds them.
    pub(super) fn judge_heed(&mut self, now: Duration) {
        let heeded = self.heed.is_heeded(self.cluster.ended());
        self.cluster.set_heeded(heeded, now);
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

    /// Counts the requests since the last time.
    pub(super) fn count_usage(&mut self, now: Duration) {
        let counted = self.counters.requests();
        self.usage.add(counted.saturating_sub(self.counted), now);
        self.counted = counted;
    }

    pub(super) fn rest(&mut self) {
        self.cluster.rest();
    }

    /// Has cache contents again, of the table with this name.
    pub(super) fn wake(&mut self, name: &str, all: &Contents) {
        let shards = self.cluster.table().map_or(0, |table| table.cache_shards());
        self.cluster
            .wake(|shard| all.get(&cache_shard_name(name, shards, shard)));
    }

    /// Has no cache contents from now on, or reads all of them again.
    pub(super) fn leave_out(&mut self, left_out: bool) {
        self.left_out = left_out;
        self.forget_shards_except(&BTreeSet::new());
    }

    pub(super) fn read_shard(&mut self, host: &impl Host, entry: &Entry, shards: u32, shard: u32) {
        if self.left_out
            || self
                .cluster
                .table()
                .is_none_or(|table| table.cache_shards() != shards)
            || !self.is_news(entry)
        {
            return;
        }
        let decode = |_, body: &[u8]| {
            let decoded = decode_cache_shard(&entry.name, body).ok();
            decoded.map(|(_, contents)| contents)
        };
        let contents = match host.contents() {
            Some(all) => all.get(&entry.name),
            None => shared::resource(host, Kind::Shard, &entry.name, decode).flatten(),
        };
        if let Some(contents) = contents {
            self.cluster.set_cache_shard(shard, contents);
        }
    }
}
