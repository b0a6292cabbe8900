// SPDX-License-Identifier: Apache-2.0
//! What the stream owner has received, in one small value: the other VMs read it to see what to read.

use std::collections::BTreeSet;
use std::time::Duration;

use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE, Meta, cache_shard_name};

/// The two kinds of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A host table.
    Table,
    /// A shard of the cache contents.
    Shard,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Table, Self::Shard];

    /// The xDS type URL.
    pub fn type_url(self) -> &'static str {
        match self {
            Self::Table => HOST_TABLE_TYPE,
            Self::Shard => CACHE_SHARD_TYPE,
        }
    }

    /// Which build of a resource of this kind these bytes are; none where they are none.
    pub fn meta(self, body: &[u8]) -> Option<Meta> {
        match self {
            Self::Table => Meta::of_host_table(body),
            Self::Shard => Meta::of_cache_shard(body),
        }
    }

    /// The kind with this type URL.
    pub fn of(type_url: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.type_url() == type_url)
    }
}

/// Every resource that was received, in no order.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Index {
    /// One for each.
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<Entry>,
}

/// A resource that was received.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Entry {
    /// Whether it is a shard, else a table.
    #[prost(bool, tag = "1")]
    pub is_shard: bool,
    /// Its xDS name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// See [`Meta`].
    #[prost(fixed64, tag = "3")]
    pub epoch: u64,
    /// See [`Meta`].
    #[prost(uint64, tag = "4")]
    pub version: u64,
    /// When it was written, on the proxy's monotonic clock: a reader who has seen this has seen the resource.
    #[prost(fixed64, tag = "5")]
    pub written_ns: u64,
    /// Of a table: how many shards its cluster's cache contents have.
    #[prost(uint32, tag = "6")]
    pub cache_shards: u32,
    /// Of a table: for how long it counts, after it was written.
    #[prost(fixed64, tag = "7")]
    pub stale_after_ns: u64,
    /// Of a shard: bytes that it takes when it is decoded.
    #[prost(uint64, tag = "8")]
    pub bytes: u64,
}

/// What a resource says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Says {
    /// Of a table: how many shards its cluster's cache contents have.
    pub cache_shards: u32,
    /// Of a table: for how long it counts.
    pub stale_after: Duration,
    /// Of a shard: bytes that it takes when it is decoded.
    pub bytes: usize,
}

impl Entry {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        if self.is_shard {
            Kind::Shard
        } else {
            Kind::Table
        }
    }

    /// Which build of the resource it is.
    pub fn meta(&self) -> Meta {
        Meta {
            epoch: self.epoch,
            version: self.version,
        }
    }

    /// What the resource said of itself.
    pub fn says(&self) -> Says {
        Says {
            cache_shards: self.cache_shards,
            stale_after: Duration::from_nanos(self.stale_after_ns),
            bytes: self.bytes as usize,
        }
    }
}

impl Index {
    /// The entry of a resource.
    pub fn get(&self, kind: Kind, name: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.kind() == kind && entry.name == name)
    }

    /// The cluster's table, if it is here and counts, so that weir-control is there.
    pub fn fresh_table(&self, cluster: &str, now: Duration) -> Option<&Entry> {
        self.get(Kind::Table, cluster).filter(|table| {
            let age = (now.as_nanos() as u64).saturating_sub(table.written_ns);
            age <= table.stale_after_ns
        })
    }

    /// Bytes that all cache contents take when they are decoded.
    pub fn contents_bytes(&self) -> usize {
        let bytes = self.entries.iter().map(|entry| entry.bytes);
        usize::try_from(bytes.fold(0, u64::saturating_add)).unwrap_or(usize::MAX)
    }

    /// Enters a resource that was written `now`.
    pub fn insert(&mut self, kind: Kind, name: &str, meta: Meta, says: Says, now: Duration) {
        self.remove(kind, name);
        self.entries.push(Entry {
            is_shard: kind == Kind::Shard,
            name: name.into(),
            epoch: meta.epoch,
            version: meta.version,
            written_ns: now.as_nanos() as u64,
            cache_shards: says.cache_shards,
            stale_after_ns: says.stale_after.as_nanos() as u64,
            bytes: says.bytes as u64,
        });
    }

    /// The names of the shards of these tables, as far as the tables are here.
    pub fn shards_of(&self, tables: &BTreeSet<String>) -> BTreeSet<String> {
        let entries = self.entries.iter();
        let tables = entries.filter(|entry| !entry.is_shard && tables.contains(&entry.name));
        let names = tables.flat_map(|table| {
            let shards = 0..table.cache_shards;
            shards.map(|shard| cache_shard_name(&table.name, table.cache_shards, shard))
        });
        set(names)
    }

    /// Strikes a resource; says whether it was there.
    pub fn remove(&mut self, kind: Kind, name: &str) -> bool {
        let before = self.entries.len();
        self.entries
            .retain(|entry| entry.kind() != kind || entry.name != name);
        self.entries.len() < before
    }
}

/// A set, filled name by name: to collect one sorts first, in 5 kB of machine code for each kind of names.
pub(crate) fn set<T: Ord>(names: impl Iterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    set.extend(names);
    set
}
