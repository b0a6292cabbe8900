// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;
use std::time::Duration;

use prost::Message;
use weir_policy::{CacheShard, Cost, Holder, HostId, KeyHash};

use crate::name::parse_cache_shard_name;
use crate::{Meta, Refusal, v1};

/// Decodes and checks the resource `name`.
pub fn decode_cache_shard(name: &str, bytes: &[u8]) -> Result<(Meta, CacheShard), Refusal> {
    let (_, shards, shard) = parse_cache_shard_name(name)?;
    let message = v1::CacheShard::decode(bytes).map_err(|source| Refusal::NotProtobuf {
        message: "weir.v1.CacheShard",
        source,
    })?;
    let hosts = message.host_ids.into_iter().map(HostId).collect();
    let meta = Meta {
        epoch: message.epoch,
        version: message.version,
    };
    let (keys, ends) = (message.keys, message.holders_end);
    let contents = CacheShard::new(shard, shards, hosts, keys, ends, message.holders)?;
    let contents = contents.with_costs(&message.fetch_us, &message.run_us)?;
    Ok((meta, contents))
}

/// Collects the holders of a shard's keys and lays them out in columns.
#[derive(Clone, Debug, Default)]
pub struct ShardBuilder {
    keys: BTreeMap<KeyHash, Vec<Holder>>,
}

impl ShardBuilder {
    /// Adds a holder of a key. The caller sees to it that the key belongs to the shard and that no holder
    /// is added twice.
    pub fn add(&mut self, key: KeyHash, holder: Holder) {
        self.keys.entry(key).or_default().push(holder);
    }

    /// The message, with what requests for its keys cost where `cost` knows of any.
    pub fn build_with(self, meta: Meta, cost: impl Fn(KeyHash) -> Option<Cost>) -> v1::CacheShard {
        let costs: Vec<_> = self.keys.keys().map(|key| cost(*key)).collect();
        let mut message = self.build(meta);
        if costs.iter().any(Option::is_some) {
            let costs = costs.into_iter().map(Option::unwrap_or_default);
            let costs = costs.map(|cost| (micros(cost.fetch), micros(cost.run)));
            (message.fetch_us, message.run_us) = costs.unzip();
        }
        message
    }

    /// The message.
    pub fn build(self, meta: Meta) -> v1::CacheShard {
        let holders = self.keys.values().flatten();
        let indexes: BTreeMap<HostId, u32> = holders.map(|holder| (holder.host, 0)).collect();
        let host_ids = indexes.keys().map(|host| host.0).collect();
        let indexes: BTreeMap<HostId, u32> = indexes.into_keys().zip(0..).collect();
        let mut message = v1::CacheShard {
            epoch: meta.epoch,
            version: meta.version,
            host_ids,
            ..Default::default()
        };
        for (key, holders) in self.keys {
            let entry =
                |holder: Holder| Some(indexes.get(&holder.host)? * 2 + u32::from(holder.assumed));
            message
                .holders
                .extend(holders.into_iter().filter_map(entry));
            message.keys.push(key.0);
            message.holders_end.push(message.holders.len() as u32);
        }
        message
    }
}

/// Microseconds, at most what fits: more than an hour.
pub(crate) fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
