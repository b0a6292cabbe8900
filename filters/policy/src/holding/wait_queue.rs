// SPDX-License-Identifier: Apache-2.0
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use rand::Rng;

use super::turns::Turns;
use crate::{Cluster, Decision, Outcome, Rank, Reason, Request};

/// When a request came, and when it is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// When it came.
    pub came: Duration,
    /// When its caller gives up; none where that is not known.
    pub deadline: Option<Duration>,
}

impl Patience {
    /// That of a request that has come now.
    pub fn new(came: Duration) -> Self {
        Self {
            came,
            deadline: None,
        }
    }

    /// When a hold of at most this long ends.
    pub(crate) fn until(&self, limit: Duration) -> Duration {
        let until = self.came.saturating_add(limit);
        self.deadline.map_or(until, |deadline| until.min(deadline))
    }
}

/// The place of a held request: by rank, then by arrival. Where users are served by turns, by class, then by turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    /// The rank in the upper bits, a turn in the lower ones.
    order: u64,
    number: u64,
}

const TURN_BITS: u32 = 48;
const LAST_TURN: u64 = (1 << TURN_BITS) - 1;

impl Ticket {
    fn new(rank: Rank, turn: u64, number: u64) -> Self {
        let order = u64::from(rank.number()) << TURN_BITS | turn.min(LAST_TURN);
        Self { order, number }
    }

    /// Of those of its class each has its turn, whoever they are of.
    fn by_turn(rank: Rank, turn: u64, number: u64) -> Self {
        Self::new(Rank::new(rank.class(), 0), turn, number)
    }

    fn rank(self) -> u16 {
        (self.order >> TURN_BITS) as u16
    }

    fn turn(self) -> u64 {
        self.order & LAST_TURN
    }
}

/// The held requests of one cluster, most important first.
///
/// `T` is what the caller needs to let one go.
#[derive(Clone, Debug)]
pub struct WaitQueue<T> {
    waiting: BTreeMap<Ticket, Waiting<T>>,
    /// Who gave their place to somebody more important: the next round decides them without holding. As many at
    /// most as may wait.
    displaced: BTreeMap<Ticket, Waiting<T>>,
    /// When each that waits is decided at the latest.
    due: BTreeSet<(Duration, Ticket)>,
    came: u64,
    turns: Turns,
    /// Answers since the last round: each has left a place at a host.
    answers: usize,
}

#[derive(Clone, Debug)]
struct Waiting<T> {
    request: Request,
    patience: Patience,
    until: Duration,
    /// Any host that admits it will do.
    for_any: bool,
    /// What its user's next turn was put off by; none where users are not served by turns.
    cost: Option<Duration>,
    what: T,
}

/// One look at all who wait.
///
/// It sends at most one for each host that admits the most important, and one for each answer since the
/// last round: levels do not see yet what is sent, so that all at once would bury the first host to open.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    last: Option<Ticket>,
    /// How many more it sends; none before the first was looked at.
    room: Option<usize>,
    is_over: bool,
}

impl<T> Default for WaitQueue<T> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            displaced: BTreeMap::new(),
            due: BTreeSet::new(),
            came: 0,
            turns: Turns::default(),
            answers: 0,
        }
    }
}

impl<T> WaitQueue<T> {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits, nor was displaced since the last round.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.displaced.is_empty()
    }

    /// Decides a request that has just come; who is to be held goes to [`WaitQueue::hold`] next. It does not overtake
    /// those who wait: where somebody at least as important waits for any host, so does it, and who may not wait is shed. Where the policy's
    /// `max_held` wait already, it takes the place of the least important one, if it is more important itself;
    /// else it is decided without holding, and shed where it would overtake.
    pub fn decide(
        &mut self,
        cluster: &Cluster,
        request: &Request,
        patience: Patience,
        now: Duration,
        rng: &mut impl Rng,
    ) -> Decision {
        let Some(table) = cluster.table() else {
            return cluster.decide(request, now, rng);
        };
        let holding = table.policy().holding;
        let mut decision = cluster.decide_or_hold(request, patience, now, rng);
        let until = patience.until(holding.for_eligible);
        let is_sent = matches!(decision.outcome, Outcome::Send(_));
        if is_sent && self.is_behind(cluster, request.rank, now) {
            if until <= now {
                return self.decide_without(cluster, request, now, rng);
            }
            decision = Decision {
                outcome: Outcome::Hold { until },
                reason: Reason::HeldForEligible,
            };
        }
        let is_held = matches!(decision.outcome, Outcome::Hold { .. });
        if is_held && !self.make_room(cluster, request, holding.max_held) {
            return self.decide_without(cluster, request, now, rng);
        }
        decision
    }

    /// The place of a request that begins to wait now, and what its user's next turn is put off by for it.
    fn place(&self, cluster: &Cluster, request: &Request) -> (Ticket, Option<Duration>) {
        let cost = cluster.turn_cost(request);
        let ticket = match cost {
            Some(_) => Ticket::by_turn(request.rank, self.turns.next(request.rank), self.came),
            None => Ticket::new(request.rank, 0, self.came),
        };
        (ticket, cost)
    }

    /// Whether a request may wait; the one that would be let go last may have to go for it.
    fn make_room(&mut self, cluster: &Cluster, request: &Request, max_held: usize) -> bool {
        if self.waiting.len() < max_held {
            return true;
        }
        let (place, _) = self.place(cluster, request);
        let last = self.waiting.last_entry();
        let Some(last) = last.filter(|last| last.key().order > place.order) else {
            return false;
        };
        if self.displaced.len() >= max_held {
            return false;
        }
        let (ticket, mut waiting) = last.remove_entry();
        self.due.remove(&(waiting.until, ticket));
        if let Some(cost) = waiting.cost.take() {
            self.turns.give_back(waiting.request.rank, cost);
        }
        self.displaced.insert(ticket, waiting);
        true
    }

    /// The decision for somebody who cannot wait: those who wait are not overtaken.
    fn decide_without(
        &self,
        cluster: &Cluster,
        request: &Request,
        now: Duration,
        rng: &mut impl Rng,
    ) -> Decision {
        let decision = cluster.decide(request, now, rng);
        match (decision.outcome, cluster.table()) {
            (Outcome::Send(_), Some(table)) if self.is_behind(cluster, request.rank, now) => {
                // Jittered as `Cluster::decide` does.
                let share = 0.5 + f64::from(rng.next_u32()) / f64::from(u32::MAX);
                Decision {
                    outcome: Outcome::Shed {
                        retry_after: table.policy().retry_after.mul_f64(share),
                    },
                    reason: Reason::Overloaded,
                }
            }
            _ => decision,
        }
    }

    /// Whether somebody at least as important waits for any host. By a stale table nobody is refused, so nobody
    /// waits for others either.
    fn is_behind(&self, cluster: &Cluster, rank: Rank, now: Duration) -> bool {
        let before = self
            .waiting
            .iter()
            .take_while(|(first, _)| first.rank() <= rank.number());
        let mut before = before.map(|(_, waiting)| waiting.for_any);
        before.any(|for_any| for_any) && !cluster.is_stale(now)
    }

    /// Holds a request for which [`WaitQueue::decide`] has said so, for this reason.
    pub fn hold(
        &mut self,
        cluster: &Cluster,
        request: Request,
        patience: Patience,
        (until, reason): (Duration, Reason),
        what: T,
    ) -> Ticket {
        let (ticket, cost) = self.place(cluster, &request);
        if let Some(cost) = cost {
            self.turns.take(request.rank, cost);
        }
        self.came += 1;
        self.due.insert((until, ticket));
        let waiting = Waiting {
            request,
            patience,
            until,
            for_any: reason == Reason::HeldForEligible,
            cost,
            what,
        };
        self.waiting.insert(ticket, waiting);
        ticket
    }

    /// Its caller has gone.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let waiting = self.waiting.remove(&ticket);
        let waiting = waiting.or_else(|| self.displaced.remove(&ticket))?;
        self.due.remove(&(waiting.until, ticket));
        if let Some(cost) = waiting.cost {
            self.turns.give_back(waiting.request.rank, cost);
        }
        Some(waiting.what)
    }

    /// A host has answered.
    pub fn answered(&mut self) {
        if !self.is_empty() {
            self.answers = self.answers.saturating_add(1);
        }
    }

    /// The next who need not or must not wait any longer, and what becomes of it; the caller does that
    /// before it asks for another. At the end of a round nobody waits past its time.
    pub fn next(
        &mut self,
        cluster: &Cluster,
        round: &mut Round,
        now: Duration,
        rng: &mut impl Rng,
    ) -> Option<(T, Request, Decision)> {
        while let Some(ticket) = self.next_ticket(cluster, round) {
            let decision = self.decide_anew(ticket, cluster, now, rng)?;
            match decision.outcome {
                // Who is less important is refused too.
                Outcome::Hold { .. } if decision.reason == Reason::HeldForEligible => {
                    round.is_over = true;
                }
                Outcome::Hold { .. } => {}
                outcome => {
                    if let (Outcome::Send(_), Some(room)) = (outcome, &mut round.room) {
                        *room = room.saturating_sub(1);
                    }
                    return self.let_go(ticket, decision);
                }
            }
        }
        self.answers = 0;
        while let Some((_, ticket)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            let decision = self.decide_anew(ticket, cluster, now, rng)?;
            // Else it is held for another reason, until later.
            if !matches!(decision.outcome, Outcome::Hold { .. }) {
                return self.let_go(ticket, decision);
            }
        }
        let (_, displaced) = self.displaced.pop_first()?;
        let decision = self.decide_without(cluster, &displaced.request, now, rng);
        Some((displaced.what, displaced.request, decision))
    }

    fn next_ticket(&self, cluster: &Cluster, round: &mut Round) -> Option<Ticket> {
        if round.is_over || round.room == Some(0) {
            return None;
        }
        let start = round.last.map_or(Bound::Unbounded, Bound::Excluded);
        let (ticket, waiting) = self.waiting.range((start, Bound::Unbounded)).next()?;
        round.last = Some(*ticket);
        let hosts = || cluster.admitting(&waiting.request).max(1);
        round.room.get_or_insert_with(|| hosts() + self.answers);
        Some(*ticket)
    }

    fn decide_anew(
        &mut self,
        ticket: Ticket,
        cluster: &Cluster,
        now: Duration,
        rng: &mut impl Rng,
    ) -> Option<Decision> {
        let waiting = self.waiting.get_mut(&ticket)?;
        let decision = cluster.decide_or_hold(&waiting.request, waiting.patience, now, rng);
        if let Outcome::Hold { until } = decision.outcome {
            self.due.remove(&(waiting.until, ticket));
            self.due.insert((until, ticket));
            waiting.until = until;
            waiting.for_any = decision.reason == Reason::HeldForEligible;
        }
        Some(decision)
    }

    fn let_go(&mut self, ticket: Ticket, decision: Decision) -> Option<(T, Request, Decision)> {
        let waiting = self.waiting.remove(&ticket)?;
        self.due.remove(&(waiting.until, ticket));
        let rank = waiting.request.rank;
        match (decision.outcome, waiting.cost) {
            (Outcome::Shed { .. }, Some(cost)) => self.turns.give_back(rank, cost),
            (_, Some(_)) => {
                let first = self.waiting.range(Ticket::by_turn(rank, 0, 0)..).next();
                let first = first.filter(|(first, _)| first.rank() == ticket.rank());
                let first = first.map(|(first, _)| first.turn());
                self.turns.served(rank, ticket.turn(), first);
            }
            (_, None) => {}
        }
        Some((waiting.what, waiting.request, decision))
    }
}
