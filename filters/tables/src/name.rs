// SPDX-License-Identifier: Apache-2.0
use weir_policy::MAX_CACHE_SHARDS;

use crate::{Refusal, clipped};

/// Type URL of [`crate::v1::HostTable`].
pub const HOST_TABLE_TYPE: &str = "type.googleapis.com/weir.v1.HostTable";
/// Type URL of [`crate::v1::CacheShard`].
pub const CACHE_SHARD_TYPE: &str = "type.googleapis.com/weir.v1.CacheShard";

/// The name of a shard's resource: `<cluster>/<shards>/<shard>`.
pub fn cache_shard_name(cluster: &str, shards: u32, shard: u32) -> String {
    format!("{cluster}/{shards}/{shard}")
}

/// Cluster, number of shards and shard of a resource name. The cluster's own name may have slashes.
pub fn parse_cache_shard_name(name: &str) -> Result<(&str, u32, u32), Refusal> {
    let bad = || Refusal::BadName {
        name: clipped(name),
    };
    let mut parts = name.rsplitn(3, '/');
    let mut number = || {
        let part = parts.next().ok_or_else(bad)?;
        // Only one spelling of a number, so that one shard has one name.
        part.parse::<u32>()
            .ok()
            .filter(|n| n.to_string() == part)
            .ok_or_else(bad)
    };
    let (shard, shards) = (number()?, number()?);
    let cluster = parts.next().ok_or_else(bad)?;
    let sound = shards.is_power_of_two() && shards <= MAX_CACHE_SHARDS && shard < shards;
    if sound && !cluster.is_empty() {
        Ok((cluster, shards, shard))
    } else {
        Err(bad())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_name_is_read_as_it_was_written() {
        let name = cache_shard_name("a/b", 16, 3);
        assert_eq!(name, "a/b/16/3");
        assert_eq!(parse_cache_shard_name(&name), Ok(("a/b", 16, 3)));
    }

    #[test]
    fn other_names_are_refused() {
        for name in [
            "", "a", "a/16", "/16/3", "a/16/16", "a/15/3", "a/16/03", "a/16/+3", "a/2048/0",
            "a/0/0",
        ] {
            assert!(parse_cache_shard_name(name).is_err(), "{name}");
        }
    }
}
