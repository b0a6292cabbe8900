// SPDX-License-Identifier: Apache-2.0
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use rand::Rng;

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

/// The place of a held request: by rank, then by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    rank: Rank,
    number: u64,
}

/// The held requests of one cluster, most important first.
///
/// `T` is what the caller needs to let one go.
#[derive(Clone, Debug)]
pub struct Held<T> {
    waiting: BTreeMap<Ticket, Waiting<T>>,
    /// When each is decided at the latest.
    due: BTreeSet<(Duration, Ticket)>,
    came: u64,
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

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            due: BTreeSet::new(),
            came: 0,
            answers: 0,
        }
    }
}

impl<T> Held<T> {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Decides a request that has just come. Where the policy's `max_held` wait already, it is not held. It
    /// does not overtake those who wait: where somebody at least as important waits for any host, so does it.
    pub fn decide(
        &self,
        cluster: &Cluster,
        request: &Request,
        patience: Patience,
        now: Duration,
        rng: &mut impl Rng,
    ) -> Decision {
        let holding = cluster.table().map(|table| table.policy().holding);
        let Some(holding) = holding.filter(|holding| self.len() < holding.max_held) else {
            return cluster.decide(request, now, rng);
        };
        let decision = cluster.decide_or_hold(request, patience, now, rng);
        let until = patience.until(holding.for_eligible);
        let is_sent = until > now && matches!(decision.outcome, Outcome::Send(_));
        if is_sent && self.is_behind(request.rank) {
            return Decision {
                outcome: Outcome::Hold { until },
                reason: Reason::HeldForEligible,
            };
        }
        decision
    }

    /// Whether somebody at least as important waits for any host.
    fn is_behind(&self, rank: Rank) -> bool {
        let before = self
            .waiting
            .iter()
            .take_while(|(first, _)| first.rank <= rank);
        before.into_iter().any(|(_, waiting)| waiting.for_any)
    }

    /// Holds a request for which [`Held::decide`] has said so, for this reason.
    pub fn hold(
        &mut self,
        request: Request,
        patience: Patience,
        (until, reason): (Duration, Reason),
        what: T,
    ) -> Ticket {
        let ticket = Ticket {
            rank: request.rank,
            number: self.came,
        };
        self.came += 1;
        self.due.insert((until, ticket));
        let waiting = Waiting {
            request,
            patience,
            until,
            for_any: reason == Reason::HeldForEligible,
            what,
        };
        self.waiting.insert(ticket, waiting);
        ticket
    }

    /// Its caller has gone.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let waiting = self.waiting.remove(&ticket)?;
        self.due.remove(&(waiting.until, ticket));
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
        None
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
        Some((waiting.what, waiting.request, decision))
    }
}
