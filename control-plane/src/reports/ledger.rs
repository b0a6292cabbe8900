// SPDX-License-Identifier: Apache-2.0
//! From absolute counters to what is new.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_policy::{HostId, KeyHash, Level, Rank};
use weir_tables::v1;

use crate::config::ReportLimits;
use crate::state::costs::Spent;

/// Clusters of a VM: the filter takes no more in its configuration.
const MOST_CLUSTERS: usize = 64;

/// A VM is in its proxy's report each second; of one that is not for so long nothing is under way.
const ALIVE: Duration = Duration::from_secs(5);

/// The newest counters of every VM of every proxy.
#[derive(Debug, Default)]
pub struct Ledger {
    proxies: BTreeMap<String, BTreeMap<(u32, u64), Vm>>,
}

#[derive(Debug, Default)]
struct Vm {
    heard: Duration,
    /// On the proxy's clock: when the last record that was taken in was written.
    published_ns: Option<u64>,
    /// Requests on their way to hosts when that record was written.
    in_flight: u64,
    clusters: BTreeMap<String, Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    offered: BTreeMap<u32, u64>,
    admitted: BTreeMap<(String, u32), u64>,
    unconnected: BTreeMap<String, u64>,
    shed: u64,
    held: u64,
    outcomes: [u64; 4],
}

/// Names of [`News::outcomes`].
pub const OUTCOMES: [&str; 4] = ["ok", "client_error", "server_error", "no_answer"];

/// What a report adds for one cluster.
#[derive(Debug, Default, PartialEq)]
pub struct News {
    /// Requests that asked for a host.
    pub offered: BTreeMap<Rank, u64>,
    /// Requests that got one, by address.
    pub admitted: BTreeMap<String, BTreeMap<Rank, u64>>,
    /// Requests that a host did not take, by address.
    pub unconnected: BTreeMap<String, u64>,
    /// Requests answered 429.
    pub shed: u64,
    /// Requests that waited for a host.
    pub held: u64,
    /// Answers, as [`OUTCOMES`] names them.
    pub outcomes: [u64; 4],
    /// Admission levels in force at the proxy, by address.
    pub levels: BTreeMap<String, Level>,
    /// What answers of hosts carried, and when they carried it.
    pub loads: Vec<(String, v1::Load, Duration)>,
    /// Keys sent to hosts, and when.
    pub assignments: Vec<(KeyHash, HostId, Duration)>,
    /// What requests cost.
    pub spent: Vec<Spent>,
}

/// Why a record was not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Its deadline has passed: its VM is dead.
    Expired,
    /// The proxy has too many.
    TooManyVms,
    /// There are too many proxies.
    TooManyProxies,
}

impl Dropped {
    /// Its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::TooManyVms => "too_many_vms",
            Self::TooManyProxies => "too_many_proxies",
        }
    }
}

impl Ledger {
    /// Takes in a report: what is new by cluster, and which records were dropped.
    ///
    /// A record of a new epoch counts from zero: its VM has just started. The first report of a proxy that
    /// this process does not know is where counting begins: its VMs may be days old, and that is no burst.
    pub fn fold(
        &mut self,
        report: &v1::Report,
        now: Duration,
        limits: &ReportLimits,
    ) -> (BTreeMap<String, News>, Vec<Dropped>) {
        let (mut news, mut dropped) = (BTreeMap::new(), Vec::new());
        let known = self.proxies.contains_key(&report.proxy);
        if !known && self.proxies.len() >= limits.max_proxies {
            return (news, vec![Dropped::TooManyProxies]);
        }
        // The proxy's clock now, as near as it tells: that of the record written last.
        let clock = report
            .records
            .iter()
            .map(|record| record.published_ns)
            .max()
            .unwrap_or(0);
        let vms = self.proxies.entry(report.proxy.clone()).or_default();
        for record in &report.records {
            let key = (record.slot, record.epoch);
            if record.deadline_ns < clock {
                dropped.push(Dropped::Expired);
                continue;
            }
            if !vms.contains_key(&key) && vms.len() >= limits.max_vms {
                dropped.push(Dropped::TooManyVms);
                continue;
            }
            let vm = vms.entry(key).or_default();
            vm.heard = now;
            let since = vm.published_ns;
            if since.is_none_or(|since| record.published_ns >= since) {
                let hosts = record.clusters.iter().flat_map(|cluster| &cluster.hosts);
                vm.in_flight = hosts.map(|host| u64::from(host.in_flight)).sum();
            }
            // An older record may come after a newer one.
            vm.published_ns = since.max(Some(record.published_ns));
            let written = now.saturating_sub(Duration::from_nanos(clock - record.published_ns));
            for cluster in &record.clusters {
                let name = &cluster.cluster;
                if !vm.clusters.contains_key(name) && vm.clusters.len() >= MOST_CLUSTERS {
                    continue;
                }
                let news = news.entry(cluster.cluster.clone()).or_default();
                vm.clusters
                    .entry(cluster.cluster.clone())
                    .or_default()
                    .fold(cluster, known, news);
                observe(cluster, written, news);
                // A record repeats those of the records before it.
                let new = |age_ms: u32| {
                    let age = u64::from(age_ms) * 1_000_000;
                    since.is_none_or(|since| record.published_ns.saturating_sub(age) > since)
                };
                let assignments = cluster.assignments.iter();
                assign(assignments.filter(|sent| new(sent.age_ms)), written, news);
                let answered = cluster.spent.iter().filter(|spent| new(spent.age_ms));
                news.spent.extend(answered.map(spent));
            }
        }
        (news, dropped)
    }

    /// Drops what has not been renewed for a while.
    pub fn forget(&mut self, now: Duration, limits: &ReportLimits) {
        self.proxies.retain(|_, vms| {
            vms.retain(|_, vm| now.saturating_sub(vm.heard) <= limits.forget_after);
            !vms.is_empty()
        });
    }

    /// How many proxies report.
    pub fn proxies(&self) -> usize {
        self.proxies.len()
    }

    /// Requests on their way to hosts, by the newest record of every VM that is alive: of one that was killed
    /// nothing is reported any more, and its requests have ended with it.
    pub fn in_flight(&self, now: Duration) -> u64 {
        let vms = self.proxies.values().flat_map(BTreeMap::values);
        let alive = vms.filter(|vm| now.saturating_sub(vm.heard) <= ALIVE);
        alive.map(|vm| vm.in_flight).sum()
    }
}

impl Counters {
    fn fold(&mut self, record: &v1::ClusterRecord, counts: bool, news: &mut News) {
        let rise = |counter: &mut u64, new: u64| {
            let rise = new.saturating_sub(*counter);
            *counter = (*counter).max(new);
            if counts { rise } else { 0 }
        };
        for (rank, count) in ranks(&record.offered) {
            let rise = rise(self.offered.entry(rank.number().into()).or_default(), count);
            if rise > 0 {
                raise(news.offered.entry(rank).or_default(), rise);
            }
        }
        raise(&mut news.shed, rise(&mut self.shed, record.shed));
        raise(&mut news.held, rise(&mut self.held, record.held));
        let mut outcomes = [0u64; 4];
        for host in &record.hosts {
            let level = host.admission_level.and_then(|level| level.try_into().ok());
            let level = level.map_or(Level::ALL, Level::admitting);
            news.levels.insert(host.address.clone(), level);
            for (total, one) in outcomes.iter_mut().zip([
                host.ok,
                host.client_error,
                host.server_error,
                host.no_answer,
            ]) {
                *total = total.saturating_add(one);
            }
            if host.unconnected > 0 {
                let known = self.unconnected.entry(host.address.clone()).or_default();
                let rise = rise(known, host.unconnected);
                if rise > 0 {
                    let news = news.unconnected.entry(host.address.clone());
                    raise(news.or_default(), rise);
                }
            }
            for (rank, count) in ranks(&host.admitted) {
                let key = (host.address.clone(), rank.number().into());
                let rise = rise(self.admitted.entry(key).or_default(), count);
                if rise > 0 {
                    let admitted = news.admitted.entry(host.address.clone()).or_default();
                    raise(admitted.entry(rank).or_default(), rise);
                }
            }
        }
        for ((counter, new), news) in self
            .outcomes
            .iter_mut()
            .zip(outcomes)
            .zip(&mut news.outcomes)
        {
            raise(news, rise(counter, new));
        }
    }
}

/// A proxy may say anything: sums stay where they cannot rise.
fn raise(sum: &mut u64, rise: u64) {
    *sum = sum.saturating_add(rise);
}

fn ranks(counts: &[v1::RankCount]) -> impl Iterator<Item = (Rank, u64)> + '_ {
    counts
        .iter()
        .filter_map(|count| Some((Rank::from_number(count.rank)?, count.count)))
}

fn observe(record: &v1::ClusterRecord, written: Duration, news: &mut News) {
    let at = |age_ms: u32| written.saturating_sub(Duration::from_millis(age_ms.into()));
    // More classes than there are would make a table that every proxy refuses.
    let classes = usize::from(weir_policy::CLASSES);
    let sane = |load: &&v1::Load| load.queued.len() <= classes && load.work_us.len() <= classes;
    let loads = record
        .hosts
        .iter()
        .filter_map(|host| Some((host, host.load.as_ref().filter(sane)?)));
    news.loads
        .extend(loads.map(|(host, load)| (host.address.clone(), load.clone(), at(load.age_ms))));
}

fn spent(spent: &v1::Spent) -> Spent {
    let micros = |micros: u32| Duration::from_micros(micros.into());
    Spent {
        key: KeyHash(spent.key),
        host: HostId(spent.host_id),
        fetch: spent.fetch_us.map(micros),
        run: micros(spent.run_us),
    }
}

fn assign<'a>(
    assignments: impl Iterator<Item = &'a v1::Assignment>,
    written: Duration,
    news: &mut News,
) {
    let assigned = |assignment: &v1::Assignment| {
        let age = Duration::from_millis(assignment.age_ms.into());
        let (key, host) = (KeyHash(assignment.key), HostId(assignment.host_id));
        (key, host, written.saturating_sub(age))
    };
    news.assignments.extend(assignments.map(assigned));
}

#[cfg(test)]
mod tests;
