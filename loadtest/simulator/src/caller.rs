// SPDX-License-Identifier: Apache-2.0
//! One sidecar: what it knows, what it decides and what it reports.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use weir_executor::Source;
use weir_fleet::costs::Spent;
use weir_fleet::ledger::News;
use weir_policy::{
    Answer, Cluster, Decision, HostId, KeyHash, Keys, Load, Outcome, Patience, Rank, Reason,
    Request, Round, Ticket, USERS, WaitQueue,
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
    /// Requests that wait for a host, by number.
    held: WaitQueue<u32>,
    /// It will look at those that wait.
    pub(crate) looks: bool,
}

/// Where a request goes.
pub(crate) enum Choice {
    /// To the first of these; after the time also to the second.
    Send(Vec<usize>, Reason, Option<Duration>),
    /// It waits here.
    Hold(Ticket),
    /// Come back after this time.
    Shed(Duration),
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
            held: WaitQueue::default(),
            looks: false,
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
    pub(crate) fn request(&mut self, job: &Job, keys: Keys) -> Request {
        let drawn = || self.rng.random_range(0..USERS as u8);
        let user = job.user.unwrap_or_else(drawn);
        Request {
            keys,
            rank: Rank::new(job.class, user),
        }
    }

    /// What becomes of the request of this number.
    pub(crate) fn choose(&mut self, number: u32, request: &Request, now: Duration) -> Choice {
        self.offered.push(request.rank);
        let patience = Patience::new(now);
        let decision = self
            .held
            .decide(&self.cluster, request, patience, now, &mut self.rng);
        if let Outcome::Hold { until } = decision.outcome {
            self.news.held += 1;
            let why = (until, decision.reason);
            return Choice::Hold(self.held.hold(request.clone(), patience, why, number));
        }
        self.follow(request, decision, now)
    }

    /// The next of those that wait which need not or must not wait any longer.
    pub(crate) fn next_held(&mut self, round: &mut Round, now: Duration) -> Option<(u32, Choice)> {
        let next = self.held.next(&self.cluster, round, now, &mut self.rng);
        let (number, request, decision) = next?;
        Some((number, self.follow(&request, decision, now)))
    }

    /// Whether any request waits here.
    pub(crate) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Nobody wants the held request any more.
    pub(crate) fn left(&mut self, ticket: Ticket) {
        self.held.remove(ticket);
    }

    fn follow(&mut self, request: &Request, decision: Decision, now: Duration) -> Choice {
        let Decision { outcome, reason } = decision;
        match outcome {
            Outcome::Send(ranked) => {
                // All hosts are in every table, in the order of their numbers.
                let hosts = ranked.as_slice().iter().map(|host| *host as usize);
                let hedge = self.cluster.hedge(&ranked, request, now);
                Choice::Send(hosts.collect(), reason, hedge)
            }
            Outcome::Shed { retry_after } => {
                self.news.shed += 1;
                Choice::Shed(retry_after)
            }
            // Envoy's own policy, whose choice no table guides.
            Outcome::Fallback | Outcome::Hold { .. } => {
                let any = self.rng.random_range(0..self.names.len());
                Choice::Send(vec![any], reason, None)
            }
        }
    }

    pub(crate) fn sent(&mut self, host: usize, request: &Request, now: Duration) {
        let (id, _) = self.names[host];
        self.cluster.assigned(id, request, now);
        self.admitted.push((host, request.rank));
        let keys = request.keys.as_slice().iter();
        let assigned = keys.map(|key| (*key, id, now));
        self.news.assignments.extend(assigned);
    }

    /// A request has ended: answered, with the host's load on it, or not.
    pub(crate) fn ended(
        &mut self,
        (host, sent): (usize, Duration),
        load: Option<Load>,
        spent: Option<(KeyHash, &weir_executor::Spent)>,
        now: Duration,
    ) {
        let (id, _) = self.names[host];
        self.held.answered();
        self.cluster.finished(id, sent, now);
        let keys = Keys::default();
        self.cluster.answered(id, &keys, sent, Answer::Well, now);
        if let Some((key, spent)) = spent {
            self.news.spent.push(Spent {
                key,
                host: id,
                fetch: (spent.source == Source::Miss).then_some(spent.cost.fetch),
                run: spent.cost.run,
            });
        }
        if let Some(load) = load {
            self.cluster.observed(id, load.clone(), now);
            self.loads.insert(host, load);
        }
    }

    pub(crate) fn gave_up(&mut self, (host, sent): (usize, Duration), now: Duration) {
        self.held.answered();
        self.cluster.finished(self.names[host].0, sent, now);
    }

    /// The host did not take the request, or was gone before it answered.
    pub(crate) fn failed(&mut self, (host, sent): (usize, Duration), now: Duration) {
        let (id, address) = &self.names[host];
        self.held.answered();
        self.cluster.finished(*id, sent, now);
        self.cluster.failed(*id, &Keys::default(), sent, now);
        *self.news.unconnected.entry(address.clone()).or_default() += 1;
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
