// SPDX-License-Identifier: Apache-2.0
//! What requests of this VM tell it of hosts.

use std::time::Duration;

use weir_policy::{Answer, HostId, KeyHash, Keys, Load, Rank};

use super::Vm;
use crate::credits::Demand;
use crate::host::{Host, LogLevel};
use crate::orca::Spent;

impl<H: Host> Vm<H> {
    /// A request was refused by the filter.
    pub(crate) fn shed(&mut self, table: &str, rank: Rank) {
        if let Some(state) = self.clusters.get_mut(table) {
            state.counters.shed(rank);
        }
    }

    /// The same, where hosts give credits.
    #[inline(never)]
    pub(crate) fn is_refused(&mut self, table: &str, now: Duration) {
        if let Some(state) = self.clusters.get_mut(table) {
            state.cluster.refused(now);
        }
    }

    /// How many requests this VM wants to have at the host, where hosts give credits.
    pub(crate) fn demand(&self, table: &str, host: HostId, now: Duration) -> Option<Demand> {
        let state = self.clusters.get(table)?;
        let requests = state.cluster.demand(host, state.held.len(), now)?;
        Some(Demand {
            vm: self.id,
            requests,
        })
    }

    /// The host gave so many credits with an answer that has come now.
    pub(crate) fn credited(&mut self, table: &str, host: HostId, credits: u32) {
        let now = self.host.now();
        if let Some(state) = self.clusters.get_mut(table) {
            state.cluster.credited(host, credits, now);
        }
    }

    /// At its first attempt a request went to another host than the one that was named.
    pub(crate) fn missed(&mut self, table: &str, named: HostId, other: HostId, now: Duration) {
        let Some(state) = self.clusters.get_mut(table) else {
            return;
        };
        let (counts, was_heeded) = (state.missed(named, other), state.cluster.is_heeded());
        if counts {
            self.metrics.choices_ignored.increment(&self.host);
        }
        state.judge_heed(now);
        if was_heeded && !state.cluster.is_heeded() {
            let words = "Envoy does not send requests where the filter says, so nothing is shed: see that the \
                 cluster has the override_host policy, and the addresses of the table, of ";
            self.host.log(LogLevel::Warn, &[words, table].concat());
        }
    }

    /// A host did not take a request for the keys that was sent then. Where Envoy goes its own way nobody knows which.
    pub(crate) fn failed(
        &mut self,
        table: &str,
        keys: &Keys,
        (host, sent): (HostId, Duration),
        now: Duration,
    ) {
        if let Some(state) = self.clusters.get_mut(table)
            && state.cluster.is_heeded()
        {
            let is_out = state.cluster.failed(host, keys, sent, now);
            state.counters.failed(host);
            self.avoids(is_out, table, host);
        }
    }

    /// A host did not answer in time what was sent for the keys then.
    pub(crate) fn timed_out(
        &mut self,
        table: &str,
        keys: &Keys,
        (host, sent): (HostId, Duration),
        now: Duration,
    ) {
        if let Some(state) = self.clusters.get_mut(table)
            && state.cluster.is_heeded()
        {
            let is_out = state.cluster.timed_out(host, keys, sent, now);
            self.avoids(is_out, table, host);
        }
    }

    /// One request failed at both hosts.
    pub(crate) fn failed_at_both(
        &mut self,
        table: &str,
        keys: &Keys,
        hosts: [HostId; 2],
        now: Duration,
    ) {
        if let Some(state) = self.clusters.get_mut(table) {
            state.cluster.failed_at_both(hosts, keys, now);
        }
    }

    /// Tells operators of a host that gets no requests for a while. That is at most once in its doubling time.
    fn avoids(&self, is_out: bool, table: &str, host: HostId) {
        if !is_out {
            return;
        }
        self.metrics.failing_hosts.increment(&self.host);
        let address = self.address(table, host).unwrap_or_default();
        self.host.log(
            LogLevel::Warn,
            &[
                address,
                " of ",
                table,
                " fails what other hosts do: they come first",
            ]
            .concat(),
        );
    }

    /// A host answers what was sent for the keys then, perhaps with its load. The time counts if it answers that it
    /// failed.
    pub(crate) fn answered(
        &mut self,
        table: &str,
        keys: &Keys,
        (host, sent): (HostId, Duration),
        (answer, now): (Answer, Duration),
        load: Option<Load>,
    ) {
        let Some(state) = self.clusters.get_mut(table) else {
            return;
        };
        let is_out = state.cluster.answered(host, keys, sent, answer, now);
        if let Some(load) = load {
            let now = load.observed;
            state.counters.observed(host, load.clone());
            state.cluster.observed(host, load, now);
        }
        self.avoids(is_out, table, host);
    }

    /// A host says what a request for the key has cost it. Not every way of choosing wants to know.
    pub(crate) fn spent(
        &mut self,
        table: &str,
        host: HostId,
        key: KeyHash,
        spent: Spent,
        now: Duration,
    ) {
        if let Some(state) = self.clusters.get_mut(table)
            && state.cluster.learns_costs()
        {
            state.counters.spent(host, key, spent, now);
        }
    }
}
