// SPDX-License-Identifier: Apache-2.0
//! Tables and shards as weir-control would send them.

use prost::Message;
use weir_policy::{Holder, HostId, KeyHash, shard_of};
use weir_tables::discovery::{Any, Resource};
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE, Meta, ShardBuilder, cache_shard_name, v1};

/// An address that sorts first.
pub const A: &str = "10.0.0.1:80";
/// The second.
pub const B: &str = "10.0.0.2:80";
/// The third.
pub const C: &str = "10.0.0.3:80";

/// The table of `rules`: selection `dynamic`, no overload control, no cache contents.
pub fn table(version: u64, hosts: Vec<v1::Host>) -> v1::HostTable {
    v1::HostTable {
        cluster: "rules".into(),
        epoch: 1,
        version,
        policy: Some(v1::Policy {
            overload: v1::Overload::None.into(),
            selection: v1::Selection::Dynamic.into(),
            ..Default::default()
        }),
        hosts,
        ..Default::default()
    }
}

/// Idle hosts that are up.
pub fn up(addresses: &[&str]) -> Vec<v1::Host> {
    addresses
        .iter()
        .map(|address| host(address, v1::HostState::Up))
        .collect()
}

/// A host without load.
pub fn host(address: &str, state: v1::HostState) -> v1::Host {
    v1::Host {
        address: address.into(),
        state: state.into(),
        ..Default::default()
    }
}

/// A host that is up with jobs in progress, some of them queued.
pub fn busy(address: &str, in_progress: u32, queued: u32) -> v1::Host {
    v1::Host {
        load: Some(v1::Load {
            in_progress,
            queued: vec![queued],
            ..Default::default()
        }),
        ..host(address, v1::HostState::Up)
    }
}

/// A table as a resource.
pub fn resource(table: &v1::HostTable) -> Resource {
    let name = table.cluster.clone();
    of_type(HOST_TABLE_TYPE, name, table.encode_to_vec())
}

/// A shard of `rules` as a resource.
pub fn shard(shards: u32, shard: u32, message: &v1::CacheShard) -> Resource {
    let name = cache_shard_name("rules", shards, shard);
    of_type(CACHE_SHARD_TYPE, name, message.encode_to_vec())
}

/// A resource with these bytes.
pub fn of_type(type_url: &str, name: String, value: Vec<u8>) -> Resource {
    Resource {
        version: "1.1".into(),
        name,
        resource: Some(Any {
            type_url: type_url.into(),
            value,
        }),
    }
}

/// The shards of `rules` in which these hosts hold these keys.
pub fn cached(version: u64, shards: u32, holders: &[(&str, &str)]) -> Vec<Resource> {
    let contents = |number: u32| {
        let mut builder = ShardBuilder::default();
        for (key, address) in holders {
            let key = KeyHash::of(key.as_bytes());
            if shard_of(key, shards) == number {
                let (host, assumed) = (HostId::of(address), false);
                builder.add(key, Holder { host, assumed });
            }
        }
        let meta = Meta { epoch: 1, version };
        shard(shards, number, &builder.build(meta))
    };
    (0..shards).map(contents).collect()
}
