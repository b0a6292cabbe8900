// SPDX-License-Identifier: Apache-2.0
//! The cost of taking tables, and the memory that they fill.

use std::collections::BTreeMap;

use weir_policy::{Holder, HostId, KeyHash, shard_of};
use weir_tables::discovery::Resource;
use weir_tables::{Meta, ShardBuilder};
use weir_testkit::Vm;

use super::scenario;
use crate::{Proxy, RULES, TICKS, shard, table};

/// A fleet whose hosts have different keys each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fleet {
    /// How many.
    pub hosts: usize,
    /// Of each host.
    pub keys: usize,
    /// How many resources the cache contents are split into.
    pub shards: u32,
}

/// What it took until every VM of a proxy knew a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Fuel of a VM that finds the cache contents in shared data.
    pub fuel: u64,
    /// Memory of that VM with all of it, in bytes.
    pub memory: u64,
    /// Fuel of the VM that keeps the streams: it also checks and answers.
    pub owner_fuel: u64,
    /// Memory of the VM that keeps the streams.
    pub owner_memory: u64,
}

impl Fleet {
    /// How many times ten thousand keys there are.
    #[must_use]
    pub fn ten_thousands(self) -> f64 {
        (self.hosts * self.keys) as f64 / 1e4
    }

    fn contents(self) -> Vec<Resource> {
        let mut builders: BTreeMap<u32, ShardBuilder> = BTreeMap::new();
        for (number, row) in (0..).zip(scenario::hosts(self.hosts)) {
            let host = HostId::of(&row.address);
            for key in number * self.keys..(number + 1) * self.keys {
                let key = KeyHash::of(&key.to_le_bytes());
                let builder = builders.entry(shard_of(key, self.shards)).or_default();
                builder.add(
                    key,
                    Holder {
                        host,
                        assumed: false,
                    },
                );
            }
        }
        let meta = Meta {
            epoch: 1,
            version: 1,
        };
        let shards = builders.into_iter();
        shards
            .map(|(number, builder)| shard(self.shards, number, &builder.build(meta)))
            .collect()
    }
}

/// Lets a proxy take a fleet's cache contents. `around` is given the work of the VM that finds them in shared
/// data, so that it can be timed.
///
/// # Panics
/// The filter refuses them.
pub fn take(fleet: Fleet, around: impl FnOnce(&mut dyn FnMut())) -> Taken {
    let mut hosts = table(1, scenario::hosts(fleet.hosts));
    hosts.cache_shards = fleet.shards;
    let proxy = Proxy::with(RULES, &[hosts]);
    let [owner, .., other] = proxy.vms.as_slice() else {
        unreachable!("a proxy has three VMs");
    };
    proxy.run(TICKS);
    let contents = fleet.contents();
    let owner_fuel = spent(owner, || proxy.ads().accepts(&contents));
    let mut work = || other.tick().expect("no trap");
    let fuel = spent(other, || around(&mut work));
    Taken {
        fuel,
        memory: other.memory_bytes(),
        owner_fuel,
        owner_memory: owner.memory_bytes(),
    }
}

fn spent(vm: &Vm, work: impl FnOnce()) -> u64 {
    let before = vm.fuel_used();
    work();
    vm.fuel_used() - before
}
