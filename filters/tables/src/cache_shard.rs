// SPDX-License-Identifier: Apache-2.0
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
    holders: Vec<(KeyHash, Holder)>,
}

impl ShardBuilder {
    /// Adds a holder of a key. The caller sees to it that the key belongs to the shard and that no holder
    /// is added twice.
    pub fn add(&mut self, key: KeyHash, holder: Holder) {
        self.holders.push((key, holder));
    }

    /// The message, with what requests for its keys cost where `cost` knows of any.
    pub fn build_with(self, meta: Meta, cost: impl Fn(KeyHash) -> Option<Cost>) -> v1::CacheShard {
        let mut message = self.build(meta);
        let costs: Vec<_> = message.keys.iter().map(|key| cost(KeyHash(*key))).collect();
        if costs.iter().any(Option::is_some) {
            let costs = costs.into_iter().map(Option::unwrap_or_default);
            let costs = costs.map(|cost| (micros(cost.fetch), micros(cost.run)));
            (message.fetch_us, message.run_us) = costs.unzip();
        }
        message
    }

    /// The message. Holders of a key stay in the order in which they were added.
    pub fn build(mut self, meta: Meta) -> v1::CacheShard {
        // Nothing to do where the keys came in order.
        self.holders.sort_by_key(|(key, _)| *key);
        let mut host_ids: Vec<u64> = self.holders.iter().map(|(_, one)| one.host.0).collect();
        host_ids.sort_unstable();
        host_ids.dedup();
        let (mut keys, mut holders_end) = (Vec::new(), Vec::new());
        let mut holders = Vec::with_capacity(self.holders.len());
        for of_key in self.holders.chunk_by(|(a, _), (b, _)| a == b) {
            let entry = |(_, holder): &(KeyHash, Holder)| {
                let index = host_ids.binary_search(&holder.host.0).ok()?;
                Some(index as u32 * 2 + u32::from(holder.assumed))
            };
            holders.extend(of_key.iter().filter_map(entry));
            keys.extend(of_key.first().map(|(key, _)| key.0));
            holders_end.push(holders.len() as u32);
        }
        v1::CacheShard {
            epoch: meta.epoch,
            version: meta.version,
            host_ids,
            keys,
            holders_end,
            holders,
            ..Default::default()
        }
    }
}

/// Microseconds, at most what fits: more than an hour.
pub(crate) fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
