// SPDX-License-Identifier: Apache-2.0
//! One sidecar: what it knows, what it decides and what it reports.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use weir_executor::Source;
use weir_fleet::costs::Spent;
use weir_fleet::ledger::News;
use weir_fleet::requests::Change;
use weir_policy::{
    Answer, BounceBudget, Cluster, Decision, HostId, KeyHash, Keys, Load, Outcome, Patience, Rank,
    Ranked, Reason, Request, Round, Table, Ticket, USERS, WaitQueue,
};
use weir_tables::{Pace, encode_load};

use crate::control::Push;
use crate::scenario::{Balancer, Scenario};
use crate::stock::{Paces, Stock};
use crate::workload::Job;

/// Between two looks of a VM at shared data and at who waits: the filter's default `tick`.
const TICK: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Caller {
    /// As of the tables seen last: [`Caller::see_tables`] comes before every use.
    cluster: Cluster,
    rng: SmallRng,
    /// By host.
    names: Rc<[(HostId, String)]>,
    news: News,
    /// What was asked for and what was sent where since the last report, to be counted then.
    offered: Vec<Rank>,
    admitted: Vec<(usize, Rank)>,
    loads: BTreeMap<usize, Load>,
    /// By host, requests under way there as of the last report.
    under_way: Vec<u32>,
    /// It was used since the last report. Most of a thousand are not, and looking for news cost them most of the time.
    is_used: bool,
    /// When news may be reported.
    pace: Pace,
    /// Requests that wait for a host, by number.
    held: WaitQueue<u32>,
    /// Hosts may give its requests back.
    may_bounce: bool,
    /// It ejects hosts that fail.
    ejects: bool,
    budget: BounceBudget,
    /// It will look at those that wait.
    pub(crate) looks: bool,
    /// Its first tick.
    phase: Duration,
    /// Tables that have come and were not needed yet.
    unseen: VecDeque<Unseen>,
    /// Where it is.
    zone: String,
    /// Envoy's own policy chooses.
    stock: Option<Stock>,
}

#[derive(Debug)]
struct Unseen {
    push: Rc<Push>,
    /// When it came to the proxy.
    came: Duration,
    /// The tick at which the caller sees it.
    seen: Duration,
}

impl Unseen {
    /// The table, when it came and when it is seen.
    fn table(&self) -> Option<(&Table, Duration, Duration)> {
        let table = self.push.table.as_ref()?;
        Some((table, self.came, self.seen))
    }
}

/// Hosts that get a request, one after the other.
pub(crate) struct Send {
    pub(crate) hosts: Vec<usize>,
    pub(crate) reason: Reason,
    /// After this time also the second.
    pub(crate) hedge: Option<Duration>,
    /// How long it may wait at each, as far as there are bounds.
    pub(crate) bounds: Vec<Duration>,
}

/// Where a request goes.
pub(crate) enum Choice {
    Send(Send),
    /// It waits here.
    Hold(Ticket),
    /// Come back after this time.
    Shed(Duration),
}

impl Caller {
    /// One with this seed, whose requests come back from no host.
    pub(crate) fn new(names: Rc<[(HostId, String)]>, seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        Self {
            phase: TICK.mul_f64(rng.random()),
            cluster: Cluster::default(),
            rng,
            names,
            news: News::default(),
            offered: Vec::new(),
            admitted: Vec::new(),
            loads: BTreeMap::new(),
            under_way: Vec::new(),
            is_used: false,
            pace: Pace::default(),
            held: WaitQueue::default(),
            may_bounce: false,
            ejects: true,
            budget: BounceBudget::default(),
            looks: false,
            unseen: VecDeque::new(),
            zone: String::new(),
            stock: None,
        }
    }

    /// This caller, the one with this number, as the scenario says of giving back, ejection and zones.
    pub(crate) fn in_scenario(mut self, number: usize, scenario: &Scenario) -> Self {
        self.zone = scenario.zones.name(number);
        self.may_bounce = scenario.gives_back;
        self.ejects = scenario.ejects;
        self
    }

    /// This caller with a policy of Envoy's own.
    pub(crate) fn stock(
        mut self,
        balancer: Balancer,
        (number, scenario): (usize, &Scenario),
        paces: Paces,
    ) -> Self {
        let among = (number, scenario.callers);
        let stock = Stock::new(balancer, scenario.zones, among, paces, &mut self.rng);
        self.stock = Some(stock);
        self
    }

    /// The first tick after a moment.
    pub(crate) fn tick_after(&self, moment: Duration) -> Duration {
        let Some(since) = moment.checked_sub(self.phase) else {
            return self.phase;
        };
        let gone = since.as_nanos() % TICK.as_nanos();
        moment + TICK - Duration::from_nanos(gone as u64)
    }

    /// Tables come to the proxy. They are seen at the next tick, as by a VM that does not keep the streams.
    pub(crate) fn receive(&mut self, push: Rc<Push>, came: Duration) {
        let seen = self.tick_after(came);
        self.unseen.push_back(Unseen { push, came, seen });
    }

    /// Takes what ticks have seen by now, of several tables the newest: nothing has asked for any before, and all ticks
    /// of many callers would cost more than everything else.
    fn see_tables(&mut self, now: Duration) {
        self.is_used = true;
        let seen = self.unseen.partition_point(|next| next.seen <= now);
        let mut newest_first = self.unseen.range(..seen).rev();
        if let Some((table, came, seen)) = newest_first.find_map(Unseen::table) {
            let table = table.clone().seen_from(&self.zone);
            self.cluster.set_table(table, came, seen);
        }
        for unseen in self.unseen.drain(..seen) {
            for (shard, contents) in &unseen.push.shards {
                self.cluster.set_cache_shard(*shard, contents.clone());
            }
        }
    }

    /// Takes tables that are there at a moment.
    pub(crate) fn learn(&mut self, push: Rc<Push>, now: Duration) {
        let (came, seen) = (now, now);
        self.unseen.push_back(Unseen { push, came, seen });
        self.see_tables(now);
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
        if let Some(stock) = &mut self.stock {
            let key = request.keys.as_slice().first().map(|key| key.0);
            return Choice::Send(Send {
                hosts: stock.choose(key, &mut self.rng),
                reason: Reason::NoTable,
                hedge: None,
                bounds: Vec::new(),
            });
        }
        self.see_tables(now);
        self.offered.push(request.rank);
        let patience = Patience::new(now);
        let decision = self
            .held
            .decide(&self.cluster, request, patience, now, &mut self.rng);
        if let Outcome::Hold { until } = decision.outcome {
            self.news.held += 1;
            let why = (until, decision.reason);
            let ticket = self
                .held
                .hold(&self.cluster, request.clone(), patience, why, number);
            return Choice::Hold(ticket);
        }
        self.follow(request, decision, now)
    }

    /// The next of those that wait which need not or must not wait any longer.
    pub(crate) fn next_held(&mut self, round: &mut Round, now: Duration) -> Option<(u32, Choice)> {
        self.see_tables(now);
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
                Choice::Send(Send {
                    hosts: hosts.collect(),
                    reason,
                    hedge,
                    // As in the filter, one or the other.
                    bounds: match hedge {
                        Some(_) => Vec::new(),
                        None => self.bounds(&ranked, request, now),
                    },
                })
            }
            Outcome::Shed { retry_after } => {
                *self.news.shed.entry(request.rank).or_default() += 1;
                self.cluster.refused(now);
                Choice::Shed(retry_after)
            }
            // Envoy's own policy, whose choice no table guides.
            Outcome::Fallback | Outcome::Hold { .. } => {
                let any = self.rng.random_range(0..self.names.len());
                Choice::Send(Send {
                    hosts: vec![any],
                    reason,
                    hedge: None,
                    bounds: Vec::new(),
                })
            }
        }
    }

    /// How long it may wait at each of these hosts before it is given back.
    fn bounds(&mut self, ranked: &Ranked, request: &Request, now: Duration) -> Vec<Duration> {
        let mut bounds = Vec::new();
        if self.may_bounce && self.budget.sent(now) {
            let cluster = &self.cluster;
            cluster.may_wait(ranked, request, now, |bound| bounds.push(bound));
        }
        bounds
    }

    /// A host gave the request back, and said what it has to do.
    pub(crate) fn given_back(
        &mut self,
        (host, sent): (usize, Duration),
        load: Load,
        now: Duration,
    ) {
        self.see_tables(now);
        self.budget.bounced();
        let (id, _) = self.names[host];
        self.cluster.finished(id, sent, now);
        self.cluster.observed(id, load.clone(), now);
        self.loads.insert(host, load);
    }

    /// A request goes to the host. How many this caller wants to have there, where hosts give credits.
    pub(crate) fn sent(&mut self, host: usize, request: &Request, now: Duration) -> Option<u32> {
        if let Some(stock) = &mut self.stock {
            stock.sent(host);
            return None;
        }
        self.see_tables(now);
        let (id, ref address) = self.names[host];
        let reading = self.cluster.assigned(id, request, now);
        if !reading.is_zero() {
            let sum = self.news.reading_us.entry(address.clone()).or_default();
            *sum += reading.as_micros() as u64;
        }
        self.admitted.push((host, request.rank));
        let keys = request.keys.as_slice().iter();
        let assigned = keys.map(|key| (*key, id, now));
        self.news.assignments.extend(assigned);
        self.cluster.demand(id, self.held.len(), now)
    }

    /// The host gave credits with an answer that has just come.
    pub(crate) fn credited(&mut self, host: usize, credits: Option<u32>, now: Duration) {
        if let Some(credits) = credits {
            self.see_tables(now);
            let (id, _) = self.names[host];
            self.cluster.credited(id, credits, now);
        }
    }

    /// The host refused the request, and said what it has to do. Until the caller may come again.
    pub(crate) fn refused(
        &mut self,
        (host, sent): (usize, Duration),
        load: Load,
        now: Duration,
    ) -> Duration {
        self.ended_with(host, sent, Answer::Refused, now);
        let (id, _) = self.names[host];
        self.cluster.observed(id, load.clone(), now);
        self.loads.insert(host, load);
        let policy = self.cluster.table().map(|table| table.policy());
        let mean = policy.map_or(Duration::ZERO, |policy| policy.retry_after);
        mean.mul_f64(self.rng.random_range(0.5..1.5))
    }

    fn ended_with(&mut self, host: usize, sent: Duration, answer: Answer, now: Duration) {
        self.see_tables(now);
        let (id, _) = self.names[host];
        self.held.answered();
        self.cluster.finished(id, sent, now);
        let keys = Keys::default();
        self.cluster.answered(id, &keys, sent, answer, now);
    }

    /// A request has ended: answered, with the host's load on it, or not.
    pub(crate) fn ended(
        &mut self,
        (host, sent): (usize, Duration),
        load: Option<Load>,
        spent: Option<(KeyHash, &weir_executor::Spent)>,
        now: Duration,
    ) {
        if let Some(stock) = &mut self.stock {
            let took = load.is_some().then(|| now.saturating_sub(sent));
            return stock.ended(host, took, now);
        }
        self.ended_with(host, sent, Answer::Well, now);
        let (id, _) = self.names[host];
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
        if let Some(stock) = &mut self.stock {
            return stock.ended(host, None, now);
        }
        self.see_tables(now);
        self.held.answered();
        self.cluster.finished(self.names[host].0, sent, now);
    }

    /// The host did not take the request, or was gone before it answered.
    pub(crate) fn failed(&mut self, (host, sent): (usize, Duration), now: Duration) {
        if let Some(stock) = &mut self.stock {
            return stock.ended(host, None, now);
        }
        self.see_tables(now);
        let (id, address) = &self.names[host];
        self.held.answered();
        self.cluster.finished(*id, sent, now);
        if self.ejects {
            self.cluster.failed(*id, &Keys::default(), sent, now);
        } else {
            self.cluster.suspected(*id, now);
        }
        *self.news.unconnected.entry(address.clone()).or_default() += 1;
    }

    /// What is new since the last report, where this `pause` between two with news allows it.
    pub(crate) fn report(&mut self, pause: Duration, now: Duration) -> Option<News> {
        if !self.pace.allows(pause, now) {
            return None;
        }
        if !std::mem::take(&mut self.is_used) {
            return Some(News::default());
        }
        let news = self.news(now);
        if news != News::default() {
            self.pace.told(pause, now);
        }
        Some(news)
    }

    fn news(&mut self, now: Duration) -> News {
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
        self.news.under_way = self.moved();
        self.admitted.clear();
        std::mem::take(&mut self.news)
    }

    /// How many requests more are under way at hosts than by the last report.
    fn moved(&mut self) -> Vec<(HostId, Change)> {
        self.under_way.resize(self.names.len(), 0);
        let admitted = &self.admitted;
        let sent = |host: usize| {
            let first = admitted.partition_point(|(other, _)| *other < host);
            let after = admitted.partition_point(|(other, _)| *other <= host);
            (after - first) as u64
        };
        let hosts = self.names.iter().zip(&mut self.under_way).enumerate();
        let moved = hosts.filter_map(|(host, ((id, _), told))| {
            let requests = self.cluster.in_flight(*id);
            let by = i64::from(requests) - i64::from(std::mem::replace(told, requests));
            let sent = sent(host);
            let change = Change {
                by,
                ended: sent.saturating_add_signed(-by),
                is_found: false,
            };
            (by != 0 || sent > 0).then_some((*id, change))
        });
        moved.collect()
    }
}

/// How many there are of each rank, of what is sorted by it.
fn counted<T>(sorted: &[T], rank: impl Fn(&T) -> Rank) -> BTreeMap<Rank, u64> {
    let same = sorted.chunk_by(|a, b| rank(a) == rank(b));
    let count = same.filter_map(|same| Some((rank(same.first()?), same.len() as u64)));
    count.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use weir_policy::Table;

    use super::*;

    fn caller(seed: u64) -> Caller {
        Caller::new(Rc::from([]), seed)
    }

    #[test]
    fn ticks_come_at_a_fixed_pace_and_every_caller_has_its_own_phase() {
        let phases: BTreeSet<_> = (0..20).map(|seed| caller(seed).phase).collect();
        assert_eq!(phases.len(), 20);
        assert!(phases.iter().all(|phase| *phase < TICK));
        let caller = caller(1);
        assert_eq!(caller.tick_after(Duration::ZERO), caller.phase);
        for ticks in 0..5 {
            let tick = caller.phase + TICK * ticks;
            assert_eq!(caller.tick_after(tick), tick + TICK);
            assert_eq!(caller.tick_after(tick + TICK / 3), tick + TICK);
            assert_eq!(
                caller.tick_after(tick + TICK - Duration::from_nanos(1)),
                tick + TICK
            );
        }
    }

    #[test]
    fn a_tick_sees_what_came_before_it_and_nothing_that_comes_later() {
        let mut caller = caller(1);
        // Told apart by their shards.
        let push = |shards| Push {
            table: Table::new(weir_policy::Policy::default(), Vec::new(), shards).ok(),
            shards: Vec::new(),
        };
        let tick = caller.tick_after(Duration::ZERO);
        caller.receive(Rc::new(push(1)), tick - TICK / 10);
        caller.receive(Rc::new(push(2)), tick + TICK / 10);
        let known = |caller: &Caller| caller.cluster.table().map(Table::cache_shards);
        caller.see_tables(tick);
        assert_eq!(known(&caller), Some(1));
        caller.see_tables(tick + TICK);
        assert_eq!(known(&caller), Some(2));
    }
}
