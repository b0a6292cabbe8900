// SPDX-License-Identifier: Apache-2.0
//! The stream owner's two streams to weir-control: tables in, reports out.

mod link;

use std::collections::BTreeSet;
use std::time::Duration;

use prost::Message;
use weir_tables::discovery::DeltaDiscoveryResponse;
use weir_tables::v1::{CacheShard, ReportAnswer};
use weir_tables::{Meta, Pace};

use link::Link;

use crate::config::Config;
use crate::host::{Host, LogLevel};
use crate::index::{Entry, Index, Kind};
use crate::report::{Next, ReportStream};
use crate::shared;
use crate::stream::{self, Accepted, Backoff, ReportsEnd, Subscriptions, Update};
use crate::vm::Vm;

const DISCOVERY: (&str, &str) = (
    "envoy.service.discovery.v3.AggregatedDiscoveryService",
    "DeltaAggregatedResources",
);
const REPORTS: (&str, &str) = ("weir.v1.Reports", "Stream");
/// gRPC's ABORTED: weir-control has a newer stream of this process.
const ABORTED: u32 = 10;

/// A proxy that has nothing new says as often that it lives: five times in the time that weir-control waits for it.
const QUIET: Duration = Duration::from_secs(1);

/// Shared data takes so many times what a VM decodes: VMs that serve different clusters keep different contents.
const SHARED_LIMITS: usize = 4;

#[derive(Default)]
pub(crate) struct Control {
    tables: Link,
    reports: Link,
    subscriptions: Subscriptions,
    /// The tables that were wanted, and the index, when the subscriptions were brought up to date.
    subscribed: Option<(BTreeSet<String>, Option<u32>)>,
    reporting: Reporting,
}

/// What a stream of reports has come to.
#[derive(Default)]
struct Reporting {
    stream: ReportStream,
    /// When it was last looked for news.
    at: Duration,
    /// When a report was last sent.
    sent_at: Duration,
    /// When those with news may be sent.
    pace: Pace,
    sent: u64,
    /// Between two reports with news, as weir-control asks.
    pause: Duration,
    /// Reports that weir-control says it has taken; none: it has not said anything, as an older one never does.
    taken: Option<u64>,
    /// The last report had no room for everything.
    more: bool,
}

impl Reporting {
    /// Whether it is time. Where weir-control answers, what it has not taken yet is not added to: it would have to
    /// keep it.
    fn is_due(&self, interval: Duration, now: Duration) -> bool {
        match self.taken {
            Some(taken) if taken < self.sent => false,
            Some(_) if self.more => true,
            _ => now.saturating_sub(self.at) >= interval && self.pace.allows(self.pause, now),
        }
    }

    /// This was found: whether it goes out, as news or because it is time to say that there is none.
    fn found(&mut self, next: &Next, now: Duration) -> bool {
        (self.at, self.more) = (now, next.more);
        if next.more || next.has_news() {
            self.pace.told(self.pause, now);
        } else if now.saturating_sub(self.sent_at) < QUIET {
            return false;
        }
        self.sent_at = now;
        self.sent += 1;
        true
    }
}

impl Control {
    /// Opens what is not open, subscribes to what is wanted, reports when it is time.
    pub(crate) fn tick<H: Host>(
        &mut self,
        config: &Config,
        proxy: &str,
        vm: &mut Vm<H>,
        now: Duration,
    ) {
        let Some(cluster) = &config.control_cluster else {
            return;
        };
        if self.tables.open(cluster, DISCOVERY, vm, now) {
            vm.metrics.streams_opened.increment(&vm.host);
            (self.subscriptions, self.subscribed) = (Subscriptions::default(), None);
            // Nothing comes back through it that would end its pauses; a server that answers does.
            self.reports.backoff.succeeded();
        }
        if self.tables.token.is_some() {
            self.subscribe(proxy, vm, now);
        }
        // Not at once: where one of two endpoints is dead and Envoy takes them in turns, every attempt at tables
        // would meet the dead one, and every one at reports the other.
        let works = self.tables.token.is_some() && self.tables.works;
        if works && self.reports.open(cluster, REPORTS, vm, now) {
            self.reporting = Reporting::default();
        }
        let reporting = &mut self.reporting;
        if self.reports.token.is_some() && reporting.is_due(config.report_interval, now) {
            let next = vm.report(&mut reporting.stream, proxy, now);
            if reporting.found(&next, now) {
                self.reports.send(&next.report.encode_to_vec(), vm, now);
            }
        }
        // Every time: after a change of owner the gauge is still the old one's.
        vm.metrics.connected.set(&vm.host, works.into());
    }

    fn subscribe<H: Host>(&mut self, proxy: &str, vm: &mut Vm<H>, now: Duration) {
        let tables = vm.wanted(now);
        let (index, cas) = vm.index();
        let state = Some((tables.clone(), cas));
        if self.subscribed == state {
            return;
        }
        let shards = index.shards_of(&tables);
        forget_all_but(&vm.host, index, &tables, &shards);
        let wanted = [(Kind::Table, tables), (Kind::Shard, shards)];
        let requests = wanted.map(|(kind, names)| {
            let request = self.subscriptions.request(kind, names, proxy, index)?;
            Some(request.encode_to_vec())
        });
        for request in requests.into_iter().flatten() {
            self.tables.send(&request, vm, now);
        }
        self.subscribed = state;
    }

    /// Takes a message of either stream.
    pub(crate) fn message<H: Host>(
        &mut self,
        token: u32,
        message: &[u8],
        config: &Config,
        vm: &mut Vm<H>,
        now: Duration,
    ) {
        if self.reports.token == Some(token) {
            if let Ok(answer) = ReportAnswer::decode(message) {
                self.reporting.taken = Some(answer.taken);
                let pause = Duration::from_millis(answer.pause_ms.into());
                self.reporting.pause = pause.min(QUIET);
            }
            return;
        }
        if self.tables.token != Some(token) {
            return;
        }
        self.tables.works();
        let Ok(response) = DeltaDiscoveryResponse::decode(message) else {
            let words = "weir-control sent what is no discovery response";
            vm.host.log(LogLevel::Error, words);
            return;
        };
        if let Some(kind) = Kind::of(&response.type_url) {
            let in_all = SHARED_LIMITS.saturating_mul(config.cache_limit);
            let update = self.take(&response, kind, in_all, &vm.host, now);
            for _ in &update.refusals {
                vm.metrics.resources_refused.increment(&vm.host);
            }
            let answer = stream::answer(&response, &update).encode_to_vec();
            self.tables.send(&answer, vm, now);
            vm.read_resources(now);
        }
    }

    /// Takes what is good of a response into shared data, where cache contents may take `limit` bytes.
    fn take<'a>(
        &self,
        response: &'a DeltaDiscoveryResponse,
        kind: Kind,
        limit: usize,
        host: &impl Host,
        now: Duration,
    ) -> Update<'a> {
        let (index, _) = shared::index(host, None).unwrap_or_default();
        let update = stream::check(
            response,
            kind,
            &index,
            limit,
            host.contents().is_some(),
            now,
        );
        for (name, refusal) in &update.refusals {
            let reason = stream::reason(name, refusal);
            let words = format!("refused {reason}; the last good one stays");
            host.log(LogLevel::Warn, &words);
        }
        // What is not asked for, or no longer, is good but not kept. Nor is what another VM, which has the lease by
        // now, has received a later build of since the check.
        let is_outdated = |new: &Accepted<'_>, there: Meta| {
            let checked = index.get(kind, new.name).map(Entry::meta);
            new.meta.is_older_than(there)
                || (new.meta.is_of_older_leader_than(there) && checked != Some(there))
        };
        let asked_for = update.accepted.iter();
        let kept: Vec<_> = asked_for
            .filter(|new| self.subscriptions.has(kind, new.name))
            .filter(|new| {
                let may_replace = |there| !is_outdated(new, there);
                keep(host, kind, new, now, may_replace)
            })
            .collect();
        let removed = update.removed.iter();
        let removed: Vec<_> = removed.filter_map(|name| index.get(kind, name)).collect();
        shared::update_index(host, |index| {
            for new in &kept {
                let there = index.get(kind, new.name).map(Entry::meta);
                if there.is_none_or(|there| !is_outdated(new, there)) {
                    index.insert(kind, new.name, new.meta, new.says, now);
                }
            }
            index.entries.retain(|entry| !removed.contains(&entry));
        });
        forget(host, &removed);
        update
    }

    /// A stream has ended at the other side.
    pub(crate) fn closed<H: Host>(
        &mut self,
        token: u32,
        code: u32,
        config: &Config,
        vm: &mut Vm<H>,
        now: Duration,
    ) {
        let at_least = match code {
            // Who was superseded waits for the winner to keep its lease.
            ABORTED => config.lease,
            // Also where it had said something before: else it would be asked again at once, by all that it refuses.
            _ if ReportsEnd::of(code) == ReportsEnd::Refused => Backoff::after_refusal(vm.random()),
            _ => Duration::ZERO,
        };
        if self.reports.token == Some(token) {
            let end = ReportsEnd::of(code);
            vm.metrics.reports_ended(&vm.host, end);
            let words = format!(
                "the stream of reports to weir-control ended ({}) with gRPC status {code}: until it takes the \
                 next one it does not know this proxy's requests",
                end.as_str()
            );
            vm.host.log(LogLevel::Warn, &words);
        }
        for link in [&mut self.tables, &mut self.reports] {
            if link.token == Some(token) {
                link.token = None;
                link.backoff.failed(now, at_least, vm.random());
            }
        }
        if self.tables.token.is_none() {
            let cluster = config.control_cluster.as_deref().unwrap_or_default();
            let tried = match self.tables.tries {
                0 => "it worked before".to_owned(),
                tries => format!("try {tries}"),
            };
            let words = format!(
                "the stream to weir-control (cluster {cluster}, {tried}) ended with gRPC status {code}; {}",
                link::serves(vm)
            );
            vm.host.log(LogLevel::Warn, &words);
            self.reports.close(&vm.host);
        }
    }

    /// The lease is gone: so are the streams.
    pub(crate) fn release(&mut self, host: &impl Host) {
        self.tables.close(host);
        self.reports.close(host);
    }
}

/// Strikes what nobody wants any more: the server, not being asked, would never say that it is gone.
fn forget_all_but(
    host: &impl Host,
    known: &Index,
    tables: &BTreeSet<String>,
    shards: &BTreeSet<String>,
) {
    let is_unwanted = |kind, name: &String| match kind {
        Kind::Table => !tables.contains(name),
        Kind::Shard => !shards.contains(name),
    };
    let entries = known.entries.iter();
    let unwanted: Vec<_> = entries
        .filter(|entry| is_unwanted(entry.kind(), &entry.name))
        .collect();
    if unwanted.is_empty() {
        return;
    }
    shared::update_index(host, |index| {
        index.entries.retain(|entry| !unwanted.contains(&entry));
    });
    forget(host, &unwanted);
}

/// Keeps what came for all VMs, where it may replace the build that is there; says whether it did. In shared data is no
/// more than which build it is where VMs have other ways to hand it on.
fn keep(
    host: &impl Host,
    kind: Kind,
    new: &Accepted<'_>,
    now: Duration,
    may_replace: impl Fn(Meta) -> bool,
) -> bool {
    let Some((all, contents)) = host.contents().zip(new.contents.as_ref()) else {
        return shared::set_resource(host, kind, new.name, now, new.body, may_replace);
    };
    let build = CacheShard {
        epoch: new.meta.epoch,
        version: new.meta.version,
        ..CacheShard::default()
    };
    let build = build.encode_to_vec();
    let is_kept = shared::set_resource(host, kind, new.name, now, &build, may_replace);
    if is_kept {
        all.set(new.name, Some(contents.clone()));
    }
    is_kept
}

/// Frees the bytes of resources that are struck, unless there are others by now.
fn forget(host: &impl Host, struck: &[&Entry]) {
    for entry in struck {
        let is_it = |there| there == entry.meta();
        let (kind, name) = (entry.kind(), &entry.name);
        let is_freed = shared::set_resource(host, kind, name, Duration::ZERO, &[], is_it);
        if let (true, Kind::Shard, Some(all)) = (is_freed, kind, host.contents()) {
            all.set(name, None);
        }
    }
}

#[cfg(test)]
mod tests;
