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
use crate::feedback::HostFeedback;
use crate::key::{scale, split_mix};
use crate::ranked::MAX_RANKED;
use crate::standing::{Clock, nanos};
use crate::table::MAX_HOSTS;
use crate::{Host, Load, Ranked, Reason, Request};

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
/// Whatever hosts say waits: more is as good as that, a week.
const LONGEST: f64 = 7.0 * 86_400.0 * 1e9;
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
        let (Some(host), Some(row), Some(standing)) = (
            table.host(index),
            cluster.feedback.row(index),
            cluster.feedback.standing(index),
        ) else {
            return NOBODY;
        };
        let outlook = Outlook::of(host, row, cluster.feedback.usual_cores(), clock);
        let fetch = match status {
            Status::Lacks(keys) => self.fetch_each * f64::from(keys) * (1.0 + outlook.delayed()),
            Status::Known | Status::Assumed => 0.0,
        };
        let wait = outlook.wait(self.class, self.mean, clock);
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
        let fullness = outlook.fullness() << FULLNESS_AT;
        let chance = (split_mix(&mut (self.salt ^ u64::from(index))) & 0x3ff) << CHANCE_AT;
        avoid | finish | status.number() << STATUS_AT | fullness | chance | Score::from(index)
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

fn time(time: Duration) -> f64 {
    nanos(time) as f64
}

/// What is ahead of a request at a host.
struct Outlook<'a> {
    row: &'a HostFeedback,
    /// What the host said last, unless that is too old.
    told: Option<&'a Load>,
    cores: f64,
    /// Jobs that are probably there.
    jobs: u32,
    /// Cores that one of them holds.
    per_job: f64,
    /// Cores that are probably held; more than there are where jobs wait.
    held: f64,
}

impl<'a> Outlook<'a> {
    /// `usual_cores` is how many cores half of the hosts have been seen to use.
    fn of(host: &Host, row: &'a HostFeedback, usual_cores: u32, clock: Clock) -> Self {
        let told = row
            .load
            .as_ref()
            .filter(|load| clock.believes(load.observed));
        // What is in flight from here is there, whatever the host says: to claim to be idle gains little.
        let here = row.in_flight.saturating_add(row.peers_in_flight);
        let Some(load) = told else {
            return Self {
                row,
                told,
                cores: host.cores().unwrap_or(1.0),
                jobs: here,
                per_job: 1.0,
                held: here.into(),
            };
        };
        let running = load.in_progress.saturating_sub(load.queued);
        let busy = load.busy();
        let cores = host
            .cores()
            .unwrap_or_else(|| believed(load, here, usual_cores).into());
        // A job takes a whole core, however slow.
        let per_job = (f64::from(busy) / f64::from(running.max(1))).clamp(1.0, cores.max(1.0));
        let (sent, _) = row.outstanding();
        let jobs = load
            .in_progress
            .saturating_add(sent)
            .saturating_sub(row.gone());
        Self {
            row,
            told,
            cores,
            jobs,
            per_job,
            held: f64::from(jobs.max(here)) * per_job,
        }
    }

    /// By how many times itself what a request does beyond the needful delays others: all that wait, and as many
    /// that come while those do, as a queue that neither grows nor shrinks has it; each by its part of a core.
    fn delayed(&self) -> f64 {
        2.0 * self.waiting() / self.cores
    }

    /// Jobs that probably have no core.
    fn waiting(&self) -> f64 {
        (self.held - self.cores).max(0.0) / self.per_job
    }

    /// Until a request of this class would have a core, where a job takes `mean`.
    fn wait(&self, class: u8, mean: f64, clock: Clock) -> f64 {
        if self.held < self.cores {
            return 0.0;
        }
        let (_, sent) = self.row.outstanding();
        let sent = time(sent.ahead_of(class));
        let before = match self.told {
            Some(load) => self.told_and_sent(load, sent, class, mean, clock),
            None => sent,
        };
        // One more for the core that has to be freed first.
        (before.max(self.least(class, mean)) + mean).min(LONGEST) / self.cores
    }

    /// What waits at least, whatever the host tells: what is in flight from here of no less important classes, each as
    /// long as requests are on average, but for those that have a core. Of the proxy's other VMs no classes are
    /// known; they are taken to send what this one does.
    fn least(&self, class: u8, mean: f64) -> f64 {
        let own = f64::from(self.row.in_flight.max(1));
        let all = own + f64::from(self.row.peers_in_flight);
        let ahead = time(self.row.here().ahead_of(class)) * (all / own);
        (ahead - mean * self.cores / self.per_job).max(0.0)
    }

    /// Of what the host told and what was sent since, the core time that waits.
    fn told_and_sent(&self, load: &Load, sent: f64, class: u8, mean: f64, clock: Clock) -> f64 {
        let told = match &load.work {
            Some(work) => time(work.ahead_of(class)),
            None => mean * f64::from(load.queued),
        };
        // Core time done since then for those that waited.
        let done = match load.queued {
            0 => 0.0,
            _ => clock.age(load.observed) as f64 * self.cores,
        };
        // The part of what was sent since that waits.
        let (since, _) = self.row.outstanding();
        let over = (f64::from(self.jobs) * self.per_job - self.cores).max(0.0);
        let waiting = (over / (f64::from(since) * self.per_job).max(1.0)).min(1.0);
        (told - done).max(0.0) + sent * waiting
    }

    /// Of 15, how full the host is.
    fn fullness(&self) -> Score {
        (self.held / self.cores * MAX_FULLNESS as f64).min(MAX_FULLNESS as f64) as Score
    }
}

/// The cores of a host whose capacity nobody has configured or measured: those that it says it uses, and one more where
/// nothing waits, as it is not known how many more there are. Of what it says no more is believed than half of the
/// hosts have used at some time; and that nothing waits, only while no more is there from `here` than that.
fn believed(load: &Load, here: u32, usual: u32) -> u32 {
    let (busy, usual) = (load.busy(), usual.max(1));
    match load.queued {
        0 if here <= usual => busy.saturating_add(1).min(usual.saturating_add(1)),
        0 => busy.saturating_add(1).min(usual),
        _ => busy.clamp(1, usual),
    }
}
