// SPDX-License-Identifier: Apache-2.0
//! weir-control's own state, polled and published in modelled time.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use weir_fleet::cluster::Cluster;
use weir_fleet::figures::Figures;
use weir_fleet::holdings::Changes;
use weir_fleet::ledger::News;
use weir_fleet::observed::{From, Observed};
use weir_fleet::poll::{Fault, PollError, Source};
use weir_fleet::settings;
use weir_fleet::tables;
use weir_policy::{CacheShard, HostId, HostState, Table};
use weir_tables::{Meta, cache_shard_name, decode_cache_shard, decode_host_table, encode_work};

use crate::ended::Sample;
use crate::host::Host;
use crate::scenario::Signal;
use crate::{Levels, Scenario};

/// The cluster's name; no one else has to know it.
const NAME: &str = "simulated";
/// Callers who cannot read tables would be simulated as if they had none, and nobody would notice.
const READ: &str = "a table of a scenario that was checked can be read";

#[derive(Debug)]
pub(crate) struct Control {
    cluster: Cluster,
    addresses: Vec<String>,
    version: u64,
    signal: Signal,
    pub(crate) levels: Levels,
    /// Names of who reports.
    callers: Vec<String>,
}

/// What a host answers to a poll.
#[derive(Debug)]
pub(crate) struct PollAnswer {
    observed: Observed,
    /// Where cache contents are asked for.
    changes: Option<Changes>,
}

/// What goes to every caller.
#[derive(Debug)]
pub(crate) struct Push {
    pub(crate) table: Option<Table>,
    pub(crate) shards: Vec<(u32, CacheShard)>,
}

/// `ip:port` of a host, in the order of its number.
pub(crate) fn address(host: usize) -> String {
    let [high, middle, low] = [host / 10_000, host / 100 % 100, host % 100].map(|part| 100 + part);
    format!("10.{high}.{middle}.{low}:9000")
}

impl Control {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let addresses: Vec<String> = (0..scenario.hosts).map(address).collect();
        let zones = scenario.zones;
        let host = |(number, address): (usize, &String)| settings::Host {
            address: address.clone(),
            metrics_address: address.clone(),
            cache_address: address.clone(),
            capacity_millicores: (scenario.host.cores as u32).saturating_mul(1000),
            preempt_at_unix_ms: 0,
            zone: (zones.count > 1).then(|| zones.name(number)),
            draining: false,
            written: None,
            instance: None,
        };
        let mut cluster = Cluster::new(Arc::new(settings::Cluster {
            policy: scenario.policy.clone(),
            withdraws: false,
            dagor: scenario.dagor,
            salt: None,
            cache_shards: scenario.cache_shards,
            hosts: addresses.iter().enumerate().map(host).collect(),
            shrink_after: Duration::ZERO,
            kept: None,
            scrape: None,
            cache: None,
            kv_events: None,
            registry: None,
            prometheus: None,
            plan: scenario.plan.clone(),
            planner: scenario.planner.clone(),
        }));
        cluster.proxies = u32::try_from(scenario.callers).unwrap_or(u32::MAX);
        let callers = (0..scenario.callers).map(|caller| caller.to_string());
        Self {
            cluster,
            callers: callers.collect(),
            addresses,
            version: 0,
            signal: scenario.signal,
            levels: Levels::new(scenario.hosts),
        }
    }

    pub(crate) fn names(&self) -> Rc<[(HostId, String)]> {
        let name = |address: &String| (HostId::of(address), address.clone());
        self.addresses.iter().map(name).collect()
    }

    /// The host wants no new requests, or wants them again.
    pub(crate) fn drain(&mut self, host: usize, draining: bool) {
        if let Some(known) = self.cluster.hosts.get_mut(&self.addresses[host]) {
            known.draining = draining;
            self.cluster.changed = true;
        }
    }

    /// Says when the host will be taken away; Unix time is modelled time.
    pub(crate) fn will_be_taken(&mut self, host: usize, at: Duration) {
        if let Some(known) = self.cluster.hosts.get_mut(&self.addresses[host]) {
            known.config.preempt_at_unix_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
            self.cluster.changed = true;
        }
    }

    /// What a host answers to a poll that was sent at `asked` and reaches it now: its metrics and cache contents.
    /// None: nobody answers.
    pub(crate) fn poll(
        &self,
        host: &mut Host,
        asked: Duration,
        now: Duration,
    ) -> Option<PollAnswer> {
        if !host.up || !host.is_healthy(now) {
            return None;
        }
        let load = host.load(now);
        let (queued, queuing_delay) = match self.signal {
            Signal::Jobs => (host.queued_by_class(now), load.queuing_delay),
            Signal::Joblets => (vec![host.stalled(now)], None),
        };
        let figures = Figures {
            in_progress: Some(load.in_progress),
            queued: Some(queued),
            queuing_delay,
            delay_is_late: false,
            busy_cores: load.busy_cores,
            work: load.work.as_ref().map(encode_work),
        };
        let tells_cache = self.cluster.holdings.shards() > 0 && !self.cluster.config.is_planned();
        Some(PollAnswer {
            // weir-control dates what it is told by its asking.
            observed: Observed {
                figures,
                at: asked,
                delay_at: asked,
                from: From::Scrape,
            },
            changes: tells_cache.then(|| host.cache_changes()),
        })
    }

    /// Takes what a poll of a host has brought.
    pub(crate) fn polled(&mut self, number: usize, answer: Option<PollAnswer>, now: Duration) {
        let Some(known) = self.cluster.hosts.get_mut(&self.addresses[number]) else {
            return;
        };
        let Some(PollAnswer { observed, changes }) = answer else {
            let refused = PollError::new(Fault::Refused, "nobody listens");
            self.cluster.changed |= known.failed(Source::Scrape, now, refused) || known.is_dead();
            return;
        };
        self.cluster.changed |= known.succeeded(Source::Scrape, now, Vec::new());
        let keep = self.cluster.config.policy.stale_after;
        self.cluster.has_newer_figures |= known.observe(observed, keep);
        if let Some(changes) = changes {
            let _ = self.cluster.holdings.apply(known.id, &changes, usize::MAX);
        }
    }

    /// What callers will be told of a host that was just polled, beside how `busy` its cores were.
    pub(crate) fn sample(
        &self,
        number: usize,
        busy: Option<Duration>,
        now: Duration,
    ) -> Option<Sample> {
        let host = self.cluster.hosts.get(&self.addresses[number])?;
        let state = self.cluster.state_of(host, self.cluster.health_ignored());
        let observed = host.observed.as_ref();
        let queued = observed.and_then(|observed| observed.figures.queued.as_ref());
        Some(Sample {
            queued: queued.map_or(0, |queued| queued.iter().sum()),
            at: now,
            host: number,
            up: state == HostState::Up,
            level: self.cluster.level_of(host, now).ranks(),
            busy,
        })
    }

    pub(crate) fn report(&mut self, caller: usize, news: News, now: Duration) {
        self.cluster.report(&self.callers[caller], &news, true, now);
    }

    /// What changed, as callers read it. Panics where they could not: that is a defect of the simulator.
    pub(crate) fn publish(&mut self, now: Duration) -> Option<Push> {
        self.cluster.step_levels(now);
        self.cluster.holdings.expire(now);
        self.cluster.plan(now);
        let mut shards = Vec::new();
        for shard in self.cluster.holdings.take_changed(now) {
            let meta = self.meta();
            let message =
                tables::cache_shard(&self.cluster.holdings, &self.cluster.costs, shard, meta);
            let name = cache_shard_name(NAME, self.cluster.holdings.shards(), shard);
            let bytes = message.encode_to_vec();
            let holdings = &mut self.cluster.holdings;
            holdings.rest(shard, now, bytes.len(), settings::CACHE_BYTES_PER_SECOND);
            let read = decode_cache_shard(&name, &bytes);
            let (_, contents) = read.expect(READ);
            shards.push((shard, contents));
        }
        let table = self.cluster.is_due(now).then(|| {
            let meta = self.meta();
            let unix_ms = now.as_millis() as u64;
            let message = tables::host_table(NAME, &self.cluster, meta, now, unix_ms);
            let bytes = message.encode_to_vec();
            let rate = settings::TABLE_BYTES_PER_SECOND;
            self.cluster.was_built(now, bytes.len(), rate);
            let read = decode_host_table(NAME, &bytes, now);
            read.expect(READ).1
        });
        if let Some(table) = &table {
            self.levels.see(table);
        }
        (table.is_some() || !shards.is_empty()).then_some(Push { table, shards })
    }

    fn meta(&mut self) -> Meta {
        self.version += 1;
        Meta {
            epoch: 1,
            version: self.version,
        }
    }
}
