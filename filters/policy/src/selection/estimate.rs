// SPDX-License-Identifier: Apache-2.0
//! Where the request is expected to be done first, and to delay others least: its wait at its priority, the fetch
//! if the data are not there, and the run on a host of that speed (document 001, section 12, leaves it as future
//! work).
//!
//! ```text
//! finish = wait(class) + (0 where the key is cached, else fetch(key) × (1 + others)) ÷ speed + run(key) ÷ speed
//! wait   = 0 while a core is idle, else what waits of no less important classes, and one job, ÷ cores
//! others = 2 × jobs that wait ÷ cores
//! ```
//! A fetch that a host with the data would not need takes its cores from others, so where jobs wait it counts for
//! those that it delays too. Without that, each request of an overloaded fleet is done sooner elsewhere, all fetch,
//! and the fleet does less the more it has to do.
//! What waits is what the host said last, what was sent since, less what its cores have done meanwhile; and never less
//! than what is in flight there from here, so that no host gains by what it says more than it would where the fewest
//! jobs in progress count (`dynamic`). What a
//! key costs is learned by weir-control; a key that nobody has seen costs what all do on average, and where hosts
//! tell no costs at all each is taken for the same ([`crate::Cost::UNTOLD`]). Of a list of
//! keys the last one's cost counts, and of its fetch the part that a host lacks. Hosts that will be taken away
//! before the finish come last.
//!
//! Times are nanoseconds in floating point here: a decision takes some for each host, and `Duration`'s way from and
//! to floats costs more than all the rest.

use std::time::Duration;

use rand::Rng;

use super::Candidates;
use crate::key::{scale, split_mix};
use crate::outlook::Outlook;
use crate::ranked::MAX_RANKED;
use crate::standing::time;
use crate::table::MAX_HOSTS;
use crate::{Ranked, Reason, Request};

/// Hosts looked at among a key's holders, and among the others, at most; as for `dynamic`.
const SAMPLE: usize = 16;
/// Those that all callers together look at. By trial on 14 hosts: 8 callers do best if each sees all, 64 if each
/// sees 2.
const LOOKS: usize = 128;

/// Smaller is better: hosts to be avoided last, then the finish, then where the key is, then how full the host
/// is, then chance, and the host. All in one number (1, 31, 2, 4, 10 and 16 bits): sixteen steps of fullness,
/// so that callers who know the same do not all take the same host.
type Score = u64;

const AVOID: Score = 1 << 63;
const FINISH_AT: u32 = 32;
const MAX_FINISH: Score = (1 << 31) - 1;
/// The unit of the finish: 2^31 of them are six days.
const UNIT: f64 = 256_000.0;
const STATUS_AT: u32 = 30;
const FULLNESS_AT: u32 = 26;
const MAX_FULLNESS: Score = (1 << 4) - 1;
const CHANCE_AT: u32 = 16;
const HOST: Score = (1 << 16) - 1;
/// Worse than every host.
const NOBODY: Score = Score::MAX;

const _: () = assert!((MAX_HOSTS as Score) < HOST);

/// How many hosts to look at. Callers who know the same would all take the same best host until somebody tells
/// them better; the more they are, the fewer each looks at. Two keep most of what many give (Mitzenmacher, *How
/// useful is old information?*, IEEE TPDS 2000).
fn sample(callers: u32) -> usize {
    let share = LOOKS.checked_div(callers as usize).unwrap_or(SAMPLE);
    share.clamp(2, SAMPLE)
}

/// What of the data is at a host.
#[derive(Clone, Copy)]
enum Status {
    Known,
    Assumed,
    /// So many of the keys are not there.
    Lacks(u32),
}

impl Status {
    /// In a score.
    fn number(self) -> Score {
        match self {
            Self::Known => 0,
            Self::Assumed => 1,
            Self::Lacks(_) => 2,
        }
    }
}

pub(super) fn select(candidates: &Candidates<'_>, rng: &mut impl Rng) -> (Ranked, Reason) {
    let mut best = Best::new(candidates, rng.next_u64());
    best.offer_holders(rng);
    let absent = Status::Lacks(best.keys);
    let eligible = candidates.eligible;
    let sample = sample(candidates.table.callers());
    if eligible.len() <= sample {
        eligible
            .iter()
            .for_each(|host| best.consider(*host, absent));
    } else {
        for _ in 0..sample {
            if let Some(host) = eligible.get(scale(rng.next_u32(), eligible.len())) {
                best.consider(*host, absent);
            }
        }
    }
    best.ranked()
}

/// How long the request may wait at each host named but the last, until it would be done sooner at the next one; so
/// far as the next one is not to be avoided.
pub(super) fn may_wait<'a>(
    candidates: &'a Candidates<'a>,
    ranked: &'a Ranked,
) -> impl Iterator<Item = Duration> + 'a {
    let best = Best::new(candidates, 0);
    let prefixes = candidates.prefixes(0);
    let lacks = move |host: u32| {
        let held = prefixes.iter().find(|prefix| prefix.host == host);
        best.keys
            .saturating_sub(held.map_or(0, |prefix| prefix.keys))
    };
    let pairs = ranked.as_slice().windows(2);
    pairs.map_while(move |pair| {
        let [here, next] = pair else { return None };
        let score = match lacks(*next) {
            0 => best.score(*next, Status::Known),
            keys => best.score(*next, Status::Lacks(keys)),
        };
        if score >= AVOID || candidates.is_suspect(*next) {
            return None;
        }
        let finish = (score >> FINISH_AT) as f64 * UNIT;
        let fetch = best.fetch_each * f64::from(lacks(*here));
        let busy = (fetch + best.run) / candidates.table.host(*here)?.speed();
        Some(Duration::from_nanos((finish - busy).max(0.0) as u64))
    })
}

/// The best hosts offered so far, in order.
struct Best<'a> {
    candidates: &'a Candidates<'a>,
    /// How many the request has.
    keys: u32,
    /// To fetch one of them, and to run.
    fetch_each: f64,
    run: f64,
    /// What all requests take on average.
    mean: f64,
    class: u8,
    salt: u64,
    /// How many are to be named.
    limit: usize,
    scores: [Score; MAX_RANKED],
}

impl<'a> Best<'a> {
    fn new(candidates: &'a Candidates<'a>, salt: u64) -> Self {
        let Request { keys, rank } = candidates.request;
        let cost = candidates.cluster.cost(keys);
        let keys = keys.as_slice().len() as u32;
        Self {
            candidates,
            keys,
            fetch_each: time(cost.fetch) / f64::from(keys.max(1)),
            run: time(cost.run),
            mean: time(candidates.table.expected_cost().run),
            class: rank.class(),
            salt,
            limit: candidates.limit(),
            scores: [NOBODY; MAX_RANKED],
        }
    }

    /// Considers those that have the key, or of several keys the first.
    fn offer_holders(&mut self, rng: &mut impl Rng) {
        let Candidates {
            cluster,
            table,
            request,
            now,
            ..
        } = *self.candidates;
        let [key] = request.keys.as_slice() else {
            for prefix in self.candidates.prefixes(rng.next_u32()).iter() {
                let lacks = self.keys.saturating_sub(prefix.keys);
                let status = match (lacks, prefix.assumed) {
                    (0, false) => Status::Known,
                    (0, true) => Status::Assumed,
                    _ => Status::Lacks(lacks),
                };
                self.offer(prefix.host, status);
            }
            return;
        };
        let sample = sample(table.callers());
        for holder in cluster.cache.holders(*key, sample, rng.next_u32()) {
            if let Some(host) = table.index_of(holder.host) {
                let status = match holder.assumed {
                    true => Status::Assumed,
                    false => Status::Known,
                };
                self.offer(host, status);
            }
        }
        let lifetime = table.policy().assumed_cached;
        for host in cluster.feedback.assumed.hosts(*key, now, lifetime) {
            if let Some(host) = table.index_of(host) {
                self.offer(host, Status::Assumed);
            }
        }
    }

    /// Considers a host if it is eligible.
    fn offer(&mut self, host: u32, status: Status) {
        if self.candidates.is_eligible(host) {
            self.consider(host, status);
        }
    }

    /// Considers a host that is not among the best already.
    fn consider(&mut self, host: u32, status: Status) {
        let known = |score: &Score| *score != NOBODY && (score & HOST) as u32 == host;
        let best = self.scores.iter().take(self.limit);
        if best.into_iter().any(known) {
            return;
        }
        let mut moved = self.score(host, status);
        for place in self.scores.iter_mut().take(self.limit) {
            (*place, moved) = (moved.min(*place), moved.max(*place));
        }
    }

    fn score(&self, index: u32, status: Status) -> Score {
        let Candidates {
            cluster,
            table,
            clock,
            ..
        } = *self.candidates;
        let (Some(host), Some(standing), Some(outlook)) = (
            table.host(index),
            cluster.feedback.standing(index),
            cluster.feedback.outlook(index, clock),
        ) else {
            return NOBODY;
        };
        let fetch = match status {
            Status::Lacks(keys) => self.fetch_each * f64::from(keys) * (1.0 + outlook.delayed()),
            Status::Known | Status::Assumed => 0.0,
        };
        let wait = match outlook.is_idle() {
            true => 0.0,
            false => self.wait(index, &outlook),
        };
        // How fast a host is comes from what it says its requests take: to be fast helps it only while nobody waits
        // there.
        let speed = match wait > 0.0 {
            true => host.speed().min(1.0),
            false => host.speed(),
        };
        let finish = wait + (fetch + self.run) / speed;
        let taken = host.preempt_at.is_some_and(|at| {
            let finish = Duration::from_nanos(finish as u64);
            self.candidates.now.saturating_add(finish) >= at
        });
        let avoid = if taken || standing.is_suspect(clock) {
            AVOID
        } else {
            0
        };
        let finish = ((finish / UNIT) as Score).min(MAX_FINISH) << FINISH_AT;
        let fullness = (outlook.fullness() * MAX_FULLNESS as f64) as Score;
        let fullness = fullness.min(MAX_FULLNESS) << FULLNESS_AT;
        let chance = (split_mix(&mut (self.salt ^ u64::from(index))) & 0x3ff) << CHANCE_AT;
        avoid | finish | status.number() << STATUS_AT | fullness | chance | Score::from(index)
    }

    /// Until the request would have a core of a host that has none idle.
    fn wait(&self, index: u32, outlook: &Outlook) -> f64 {
        let Candidates { cluster, clock, .. } = *self.candidates;
        let row = cluster.feedback.row(index);
        row.map_or(0.0, |row| outlook.wait(row, self.class, self.mean, clock))
    }

    fn ranked(&self) -> (Ranked, Reason) {
        let mut ranked = Ranked::default();
        for score in self.scores.iter().take_while(|score| **score != NOBODY) {
            ranked.push((score & HOST) as u32);
        }
        let [first, ..] = self.scores;
        let reason = match (self.keys, first >> STATUS_AT & 3) {
            (0, _) => Reason::NoKey,
            (_, 0) => Reason::KnownCached,
            (_, 1) => Reason::AssumedCached,
            _ => Reason::NotCached,
        };
        (ranked, reason)
    }
}
