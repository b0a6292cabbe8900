// SPDX-License-Identifier: Apache-2.0
//! Which clusters' cache contents this VM decodes: those that are used most, as far as there is room. Choices for
//! the others go on without.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use weir_policy::{Claimant, fit};
use weir_tables::parse_cache_shard_name;

use super::Vm;
use crate::host::{Host, LogLevel};
use crate::index::Index;

impl<H: Host> Vm<H> {
    /// Leaves out what there is no room for, and takes back what there is room for again.
    pub(super) fn fit_contents(&mut self, index: &Index, now: Duration) {
        // Counted while there is room, too: else all since the VM began would be of the moment when there is none.
        let states = self.clusters.iter_mut();
        states.for_each(|(_, state)| state.count_usage(now));
        let left_out = self.clusters.iter().any(|(_, state)| state.left_out);
        // Most often there is room for everything, and nothing to weigh.
        if index.contents_bytes() <= self.cache_limit && !left_out {
            return;
        }
        let mut bytes: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in index.entries.iter().filter(|entry| entry.is_shard) {
            if let Ok((cluster, ..)) = parse_cache_shard_name(&entry.name) {
                let sum = bytes.entry(cluster).or_default();
                *sum = sum.saturating_add(entry.bytes as usize);
            }
        }
        let claimant = |(name, state): (&Rc<str>, &mut super::ClusterState)| Claimant {
            bytes: bytes.get(&**name).copied().unwrap_or(0),
            usage: state.usage.lately(now),
            kept: !state.left_out,
        };
        let mut claimants: Vec<_> = self.clusters.iter_mut().map(claimant).collect();
        fit(&mut claimants, self.cache_limit);
        for ((name, state), claimant) in self.clusters.iter_mut().zip(&claimants) {
            if state.left_out != claimant.kept {
                continue;
            }
            state.leave_out(!claimant.kept);
            let limit = self.cache_limit;
            let said = match claimant.kept {
                true => format!("cache contents of {name} are read again"),
                false => format!(
                    "cache contents of {name} are left out: {} bytes, cache_limit is {limit}",
                    claimant.bytes
                ),
            };
            self.host.log(LogLevel::Warn, &said);
        }
        let left_out = claimants.iter().filter(|claimant| !claimant.kept).count();
        self.metrics
            .contents_left_out
            .set(&self.host, left_out as u64);
    }
}
