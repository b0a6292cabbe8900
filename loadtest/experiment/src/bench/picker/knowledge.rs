// SPDX-License-Identifier: Apache-2.0
//! What decisions are made by.

use std::time::{Duration, Instant};

use anyhow::Result;
use rand::SeedableRng;
use rand::rngs::StdRng;
use weir_policy::{Cluster, HostId, Outcome, Request};
use weir_tables::{decode_cache_shard, decode_host_table, parse_cache_shard_name};

pub(crate) struct Knowledge {
    cluster: Cluster,
    rng: StdRng,
    origin: Instant,
}

pub(crate) struct Choice {
    pub(crate) first: HostId,
    /// As the header has it.
    pub(crate) destination: String,
}

impl Knowledge {
    pub(crate) fn new() -> Self {
        Self {
            cluster: Cluster::default(),
            rng: StdRng::from_rng(&mut rand::rng()),
            origin: Instant::now(),
        }
    }

    /// Takes a table. Returns how many shards of cache contents go with it.
    pub(crate) fn set_table(&mut self, name: &str, bytes: &[u8]) -> Result<u32> {
        let now = self.now();
        let (_, table) = decode_host_table(name, bytes, now)?;
        let shards = table.cache_shards();
        self.cluster.set_table(table, now, now);
        Ok(shards)
    }

    pub(crate) fn set_shard(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let (_, _, shard) = parse_cache_shard_name(name)?;
        let (_, contents) = decode_cache_shard(name, bytes)?;
        self.cluster.set_cache_shard(shard, contents);
        Ok(())
    }

    /// The host of a request, which is in flight there from now on; none where nothing is known, or
    /// nobody takes it.
    pub(crate) fn choose(&mut self, request: &Request) -> Option<Choice> {
        let now = self.now();
        let decision = self.cluster.decide(request, now, &mut self.rng);
        let Outcome::Send(hosts) = decision.outcome else {
            return None;
        };
        let table = self.cluster.table()?;
        let rows = || hosts.as_slice().iter().filter_map(|host| table.host(*host));
        let first = rows().next()?.id();
        let addresses: Vec<&str> = rows().map(|host| host.address.as_str()).collect();
        let destination = addresses.join(",");
        self.cluster.assigned(first, request, now);
        Some(Choice { first, destination })
    }

    pub(crate) fn finished(&mut self, host: HostId) {
        // When it was sent matters to `estimate` alone, which is not compared.
        let now = self.now();
        self.cluster.finished(host, now, now);
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }
}
