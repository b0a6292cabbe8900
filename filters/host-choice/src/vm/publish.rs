// SPDX-License-Identifier: Apache-2.0
//! The VM's own record, as the others of the proxy and weir-control see it.

use std::time::Duration;

use prost::Message;
use weir_policy::HostId;
use weir_tables::v1;

use super::Vm;
use crate::host::{Host, LogLevel};
use crate::shared;
use crate::stored::Earlier;

/// A record that was not renewed for this long is a dead VM's; thirty missed writes.
const RECORD_LIFETIME: Duration = Duration::from_secs(3);

impl<H: Host> Vm<H> {
    pub(super) fn publish(&mut self, slots: &[u64], now: Duration) {
        // A VM that was silent for longer than a record lives may have lost its slot to a new one.
        let held = |slot: &u32| slots.get(*slot as usize) == Some(&self.id);
        let slot = self.slot.filter(held);
        self.slot = slot.or_else(|| shared::claim_slot(&self.host, self.id, now));
        if self.slot.is_none() && !self.slotless {
            self.slotless = true;
            self.host.log(
                LogLevel::Warn,
                "no slot in shared data: this VM's requests are not reported",
            );
        }
        self.judge_heed(now);
        let stale = self
            .named_clusters()
            .filter(|(_, state)| state.cluster.is_stale(now))
            .count();
        self.metrics.stale_tables.set(&self.host, stale as u64);
        if let Some(slot) = self.slot {
            let mut record = self.record(slot, Duration::ZERO, now);
            self.earlier = Earlier::take(&mut record).encode_to_vec();
            shared::set_record(&self.host, slot, &record, &self.earlier);
        }
    }

    /// Writes the own record once more, so soon after it was published that the keys told then are told as they were.
    pub(super) fn publish_again(&mut self, now: Duration) {
        self.judge_heed(now);
        if let Some(slot) = self.slot {
            let record = self.record(slot, self.published, now);
            shared::set_record(&self.host, slot, &record, &self.earlier);
        }
    }

    fn judge_heed(&mut self, now: Duration) {
        let clusters = self.clusters.iter_mut();
        clusters.for_each(|(_, state)| state.judge_heed(now));
    }

    /// Keeps the record of a VM that sleeps from expiring. It has not heard of what has changed since: its clusters are
    /// those that are also this VM's, with the levels that are in force here.
    pub(crate) fn renew(&self, record: &str) {
        shared::renew_record(&self.host, record, |told| {
            let state = self.clusters.get(&told.cluster);
            let Some(state) = state.filter(|state| state.roots > 0) else {
                return false;
            };
            for host in &mut told.hosts {
                let level = state.cluster.level_told(HostId::of(&host.address));
                host.admission_level = level.map(|level| level.ranks().into());
            }
            true
        });
    }

    /// With the keys that were sent since.
    fn record(&mut self, slot: u32, since: Duration, now: Duration) -> v1::VmRecord {
        let named = self
            .clusters
            .iter_mut()
            .filter(|(_, state)| state.roots > 0);
        let clusters = named.map(|(name, state)| {
            let times = (since, now);
            state.counters.record(name, &state.cluster, times)
        });
        let clusters = clusters.collect();
        v1::VmRecord {
            clusters,
            ..self.head(slot, now)
        }
    }

    /// Its record of a time, but for what it counted.
    pub(super) fn head(&self, slot: u32, published: Duration) -> v1::VmRecord {
        v1::VmRecord {
            slot,
            epoch: self.id,
            published_ns: published.as_nanos() as u64,
            deadline_ns: (published + RECORD_LIFETIME).as_nanos() as u64,
            clusters: Vec::new(),
        }
    }
}
