// SPDX-License-Identifier: Apache-2.0
//! One sidecar: what it knows, what it decides and what it reports.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use weir_control::reports::ledger::News;
use weir_policy::{
    Cluster, Decision, HostId, KeyHash, Load, Outcome, Rank, Reason, Request, USERS,
};
use weir_tables::encode_load;

use crate::control::Push;
use crate::workload::Job;

#[derive(Debug)]
pub(crate) struct Caller {
    cluster: Cluster,
    rng: SmallRng,
    /// By host.
    names: Rc<[(HostId, String)]>,
    news: News,
    /// What was asked for and what was sent where since the last report, to be counted then.
    offered: Vec<Rank>,
    admitted: Vec<(usize, Rank)>,
    loads: BTreeMap<usize, Load>,
}

/// Where a request goes.
pub(crate) enum Choice {
    Send(Vec<usize>, Reason),
    /// Come back after this time.
    Shed(Duration),
    NoHost,
}

impl Caller {
    pub(crate) fn new(names: Rc<[(HostId, String)]>, seed: u64) -> Self {
        Self {
            cluster: Cluster::default(),
            rng: SmallRng::seed_from_u64(seed),
            names,
            news: News::default(),
            offered: Vec::new(),
            admitted: Vec::new(),
            loads: BTreeMap::new(),
        }
    }

    pub(crate) fn learn(&mut self, push: &Push, now: Duration) {
        if let Some(table) = &push.table {
            self.cluster.set_table(table.clone(), now, now);
        }
        for (shard, contents) in &push.shards {
            self.cluster.set_cache_shard(*shard, contents.clone());
        }
    }

    /// What the decision is told: of a request without a user, a rank drawn among its class.
    pub(crate) fn request(&mut self, job: &Job, key: Option<KeyHash>) -> Request {
        let drawn = || self.rng.random_range(0..USERS as u8);
        let user = job.user.unwrap_or_else(drawn);
        Request {
            key,
            rank: Rank::new(job.class, user),
        }
    }

    pub(crate) fn choose(&mut self, request: &Request, now: Duration) -> Choice {
        self.offered.push(request.rank);
        let Decision { outcome, reason } = self.cluster.decide(request, now, &mut self.rng);
        match outcome {
            Outcome::Send(ranked) => {
                // All hosts are in every table, in the order of their numbers.
                let hosts = ranked.as_slice().iter().map(|host| *host as usize);
                Choice::Send(hosts.collect(), reason)
            }
            Outcome::Shed { retry_after } => {
                self.news.shed += 1;
                Choice::Shed(retry_after)
            }
            Outcome::NoHost => Choice::NoHost,
            // Envoy's own policy, whose choice no table guides.
            Outcome::Fallback => {
                Choice::Send(vec![self.rng.random_range(0..self.names.len())], reason)
            }
        }
    }

    pub(crate) fn sent(&mut self, host: usize, request: &Request, now: Duration) {
        let (id, _) = self.names[host];
        self.cluster.assigned(id, request.key, now);
        self.admitted.push((host, request.rank));
        if let Some(key) = request.key {
            self.news.assignments.push((key, id, now));
        }
    }

    /// A request has ended: answered, with the host's load on it, or not.
    pub(crate) fn ended(&mut self, host: usize, load: Option<Load>, now: Duration) {
        let (id, _) = self.names[host];
        self.cluster.finished(id);
        self.cluster.answered(id);
        if let Some(load) = load {
            self.cluster.observed(id, load.clone(), now);
            self.loads.insert(host, load);
        }
    }

    pub(crate) fn gave_up(&mut self, host: usize) {
        self.cluster.finished(self.names[host].0);
    }

    /// The host did not take the request, or was gone before it answered.
    pub(crate) fn failed(&mut self, host: usize, now: Duration) {
        let (id, _) = self.names[host];
        self.cluster.finished(id);
        self.cluster.failed(id, now);
    }

    /// What is new since the last report.
    pub(crate) fn report(&mut self, now: Duration) -> News {
        let loads = std::mem::take(&mut self.loads).into_iter();
        let loads = loads.map(|(host, load)| {
            let address = self.names[host].1.clone();
            (address, encode_load(&load, now), load.observed)
        });
        self.news.loads = loads.collect();
        self.offered.sort_unstable();
        self.news.offered = counted(&self.offered, |rank| *rank);
        self.offered.clear();
        self.admitted.sort_unstable();
        let hosts = self.admitted.chunk_by(|(a, _), (b, _)| a == b);
        let hosts = hosts.filter_map(|sent| {
            let (host, _) = sent.first()?;
            let address = self.names[*host].1.clone();
            Some((address, counted(sent, |(_, rank)| *rank)))
        });
        self.news.admitted = hosts.collect();
        self.admitted.clear();
        std::mem::take(&mut self.news)
    }
}

/// How many there are of each rank, of what is sorted by it.
fn counted<T>(sorted: &[T], rank: impl Fn(&T) -> Rank) -> BTreeMap<Rank, u64> {
    let same = sorted.chunk_by(|a, b| rank(a) == rank(b));
    let count = same.filter_map(|same| Some((rank(same.first()?), same.len() as u64)));
    count.collect()
}
