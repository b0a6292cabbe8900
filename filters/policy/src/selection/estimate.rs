// SPDX-License-Identifier: Apache-2.0
//! Where the request is expected to be done first, and to delay others least: its wait at its priority, the fetch
//! if the data are not there, and the run on a host of that speed (document 001, section 12, leaves it as future
//! work).
//!
//! ```text
//! finish = wait(class) + crossing + fetch(key) × fetches ÷ speed + run(key) ÷ speed
//! wait   = 0 while a core is idle, else what waits of no less important classes, and one job, ÷ cores
//! fetches = 0 at the holder that is named first, rent at others that have the key, else chain + others
//! others = 2 × jobs that wait ÷ cores
//! lost   = refetched, of which nothing counts below a fifth and all from two fifths
//! chain  = 1 ÷ (1 - lost), at most 16
//! rent   = lost × chain ÷ 2
//! crossing = 0 in the caller's zone, else what the policy says ([`crate::Policy::crossing`])
//! ```
//! A fetch that a host with the data would not need takes its cores from others, so where jobs wait it counts for
//! those that it delays too. Without that, each request of an overloaded fleet is done sooner elsewhere, all fetch,
//! and the fleet does less the more it has to do.
//! Where caches are full, what is fetched evicts what is wanted again, and that is fetched again and evicts the next:
//! `refetched` is how often weir-control sees that, and `chain` how many fetches follow from one, as a geometric series has
//! it. A second copy of a key takes the place of what another host has to fetch, so where another holder can be had it costs
//! a part of that, its rent: copies that nobody uses are evicted, and each host comes to have keys of its own. Where little
//! is fetched again, what is evicted is mostly what nobody wants any more: the least rent would have all wait for the first
//! of several holders.
//! What waits is what the host said last, what was sent since, less what its cores have done meanwhile; and never less
//! than what is in flight there from here, so that no host gains by what it says more than it would where the fewest
//! jobs in progress count (`dynamic`). What a
//! key costs is learned by weir-control; a key that nobody has seen costs what all do on average, and where hosts
//! tell no costs at all each is taken for the same ([`crate::Cost::UNTOLD`]). Of a list of
//! keys the last one's cost counts, and of its fetch the part that a host lacks. Hosts that will be taken away
//! before the finish come last.
//!
//! Hosts of a language model ([`Serves::Prompts`]) read prompts one after another and write answers beside that:
//! ```text
//! finish = what is still to be read there (`unread.rs`) + reading of the keys that it lacks × (2 + prompts that wait)
//! ```
//! A key is a block of the prompt, or several ([`crate::Keys`]). One takes what prompts do on average, by the blocks that they have.
//! Answers take as long at any host, so what they take on average to be written counts for one question alone: whether a host
//! will be taken away before the end of the answer. Such hosts come last.
//!
//! Times are nanoseconds in floating point here: a decision takes some for each host, and `Duration`'s way from and
//! to floats costs more than all the rest.

use std::time::Duration;

use rand::Rng;

use super::Candidates;
use crate::account::{Account, Has, Places, Score, Terms, among_equals};
use crate::key::scale;
use crate::outlook::Outlook;
use crate::prefix::Prefix;
use crate::standing::{Standing, time};
use crate::{KeyHash, Ranked, Reason, Request, Serves};

/// Hosts looked at among a key's holders, and among the others, at most; as for `dynamic`.
const SAMPLE: usize = 16;
/// A host of a language model that writes so many answers, or more, is full; a quarter of those that vLLM writes at a
/// time by default (`max_num_seqs`). Of hosts that are equal otherwise the emptier one is taken.
const MANY_ANSWERS: f64 = 64.0;
/// Fetches that follow from one, at most, and the part of them that a second copy costs. By trial on SIMULATED hosts with
/// caches for a sixth to all of the keys: a longer chain and a higher rent keep more found there, and where all keys have
/// room, but are replaced now and then, make requests wait for the first holder in vain.
const LONGEST_CHAIN: f64 = 16.0;
const RENT: f64 = 0.5;
/// From which part of all fetches those of what a host had before count, and from which they count in full. By trial on
/// SIMULATED hosts: up to a fifth where the charge brought nothing, more than a third where each key has room about once.
const FEW_REFETCHED: f64 = 0.2;
const MANY_REFETCHED: f64 = 0.4;
/// Those that all callers together look at. By trial on 14 hosts: 8 callers do best if each sees all, 64 if each
/// sees 2.
const LOOKS: usize = 128;

/// For a host of the caller's own zone, at most: it is found in all but a tenth of cases where a quarter of the hosts is
/// there.
const DRAWS: usize = 8;

/// How many hosts to look at. Callers who know the same would all take the same best host until somebody tells
/// them better; the more they are, the fewer each looks at. Two keep most of what many give (Mitzenmacher, *How
/// useful is old information?*, IEEE TPDS 2000).
fn sample(callers: u32) -> usize {
    let share = LOOKS.checked_div(callers as usize).unwrap_or(SAMPLE);
    share.clamp(2, SAMPLE)
}

/// The part of fetches that evicts what is wanted again, of the part that fetches what was evicted.
fn lost(refetched: f64) -> f64 {
    let counted = (refetched - FEW_REFETCHED) / (MANY_REFETCHED - FEW_REFETCHED);
    refetched * counted.clamp(0.0, 1.0)
}

pub(super) fn select(candidates: &Candidates<'_>, rng: &mut impl Rng) -> (Ranked, Reason) {
    let asked = Asked::new(candidates);
    let salt = rng.next_u64();
    let mut places = Places::new(candidates.limit());
    let consider = |places: &mut Places, host, has, rent| {
        if let Some(terms) = asked.terms(host, has, rent) {
            places.consider(terms.score(salt));
        }
    };
    asked.look_at_holders(rng.next_u32(), &mut |host, has, rent| {
        consider(&mut places, host, has, rent);
    });
    let usual = asked.usual_merit();
    let Candidates { cluster, clock, .. } = candidates;
    asked.look_at_others(rng, |host| {
        match (usual, cluster.feedback.usual(host, *clock)) {
            (Some(merit), Some(fullness)) => {
                places.consider(merit | among_equals(host, fullness, salt));
            }
            _ => consider(&mut places, host, asked.absent(), 0.0),
        }
    });
    places.ranked(asked.keys)
}

/// What [`select`] compares where `rng` is as it was for it.
#[cold]
pub(super) fn compared(candidates: &Candidates<'_>, rng: &mut impl Rng) -> Account {
    let asked = Asked::new(candidates);
    let mut account = Account {
        salt: rng.next_u64(),
        keys: asked.keys,
        limit: candidates.limit(),
        ..Account::default()
    };
    let mut consider = |host, has, rent| {
        // What is offered again is no better than it was, and changes nothing.
        if account.terms.iter().all(|terms| terms.host != host) {
            account.terms.extend(asked.terms(host, has, rent));
        }
    };
    asked.look_at_holders(rng.next_u32(), &mut consider);
    asked.look_at_others(rng, |host| consider(host, asked.absent(), 0.0));
    account
}

/// How long the request may wait at each host named but the last, until it would be done sooner at the next one; so
/// far as the next one is not to be avoided.
pub(super) fn may_wait<'a>(
    candidates: &'a Candidates<'a>,
    ranked: &'a Ranked,
) -> impl Iterator<Item = Duration> + 'a {
    let asked = Asked::new(candidates);
    let lacks = move |host| {
        let held = candidates.prefix(host).map_or(0, |prefix| prefix.keys);
        asked.keys.saturating_sub(held)
    };
    let pairs = ranked.as_slice().windows(2);
    pairs.map_while(move |pair| {
        let [here, next] = pair else { return None };
        let has = match lacks(*next) {
            0 => Has::Known,
            keys => Has::Lacks(keys),
        };
        let next = asked
            .terms(*next, has, 0.0)
            .filter(|terms| !terms.avoided)?;
        if candidates.is_suspect(next.host) {
            return None;
        }
        // What is evicted for it is so here as there.
        let fetch = asked.fetch_each * asked.lacking(lacks(*here)) * asked.chain;
        let busy = (fetch + asked.run) / candidates.table.host(*here)?.speed();
        Some(Duration::from_nanos((next.finish() - busy).max(0.0) as u64))
    })
}

/// What counts of one host, whether it would be chosen or not.
pub(super) fn judged(candidates: &Candidates<'_>, host: u32) -> Option<Terms> {
    let asked = Asked::new(candidates);
    let held = candidates.prefix(host);
    let has = held.map_or(asked.absent(), |prefix| asked.has(prefix));
    let first = asked.first_holder();
    let rent = asked.rent(first.is_some_and(|(first, _)| first == host));
    asked.terms(host, has, rent)
}

/// What comes before a request at a host.
struct Ahead {
    /// How long, in nanoseconds.
    wait: f64,
    /// By how many times itself reading or fetching what the host lacks delays others.
    delayed: f64,
    /// What fetch and run are divided by.
    speed: f64,
    /// Cores that are held, of those that there are; the like of answers.
    fullness: f64,
}

/// What a request is compared by.
#[derive(Clone, Copy)]
struct Asked<'a> {
    candidates: &'a Candidates<'a>,
    serves: Serves,
    /// How many it has.
    keys: u32,
    /// How much they stand for.
    size: f64,
    /// To fetch a part of 1 of that, and to run.
    fetch_each: f64,
    run: f64,
    /// Fetches that follow from one.
    chain: f64,
    /// Those that the use of a second copy counts for.
    rent: f64,
    /// What all requests take on average, or prompts to be read.
    mean: f64,
    class: u8,
}

impl<'a> Asked<'a> {
    fn new(candidates: &'a Candidates<'a>) -> Self {
        let Candidates { cluster, table, .. } = *candidates;
        let Request { keys, rank } = candidates.request;
        let mean = table.expected_cost();
        let (count, size) = (keys.as_slice().len(), keys.size());
        let serves = table.policy().serves;
        let lost = match serves {
            Serves::Jobs => lost(table.refetched()),
            Serves::Prompts => 0.0,
        };
        let chain = 1.0 / (1.0 - lost).max(1.0 / LONGEST_CHAIN);
        let (fetch_each, run, mean) = match serves {
            Serves::Jobs => {
                let cost = cluster.cost(keys);
                let each = time(cost.fetch) / size.max(1) as f64;
                (each, time(cost.run), time(mean.run))
            }
            // Answers are written beside each other, and take as long at any host.
            Serves::Prompts => {
                let each = time(cluster.reading_each(table, size));
                (each, 0.0, time(mean.fetch))
            }
        };
        Self {
            candidates,
            serves,
            keys: count as u32,
            size: size as f64,
            fetch_each,
            run,
            chain,
            rent: lost * chain * RENT,
            mean,
            class: rank.class(),
        }
    }

    /// The merit of a usual host ([`Outlook::usual`]) that has nothing of the data, as most have that are looked at in a
    /// fleet that is not overloaded. None where hosts serve prompts.
    fn usual_merit(&self) -> Option<Score> {
        let terms = Terms {
            host: 0,
            has: self.absent(),
            wait: 0.0,
            fetch: self.fetch_each * self.size * self.chain,
            run: self.run,
            crossing: 0.0,
            speed: 1.0,
            fullness: 0.0,
            avoided: false,
        };
        (self.serves == Serves::Jobs).then(|| terms.merit())
    }

    /// What a host has that has none of the data.
    fn absent(&self) -> Has {
        Has::Lacks(self.keys)
    }

    /// How many fetches the use of a holder's copy counts for.
    fn rent(&self, is_first: bool) -> f64 {
        if is_first { 0.0 } else { self.rent }
    }

    /// Of its data where so much is.
    #[inline]
    fn has(&self, prefix: Prefix) -> Has {
        let lacks = self.keys.saturating_sub(prefix.keys);
        match (lacks, prefix.assumed) {
            (0, false) => Has::Known,
            (0, true) => Has::Assumed,
            _ => Has::Lacks(lacks),
        }
    }

    /// How much the last so many keys stand for.
    #[inline]
    fn lacking(&self, keys: u32) -> f64 {
        match self.keys.saturating_sub(keys) {
            0 => self.size,
            held => self.size - self.candidates.request.keys.share(held as usize) as f64,
        }
    }

    /// At the host with this table index, for whose copy so many fetches count; none where there is no such host.
    #[inline(always)]
    fn terms(&self, index: u32, has: Has, rent: f64) -> Option<Terms> {
        let Candidates {
            cluster,
            table,
            clock,
            now,
            ..
        } = self.candidates;
        let host = table.host(index)?;
        let standing = cluster.feedback.standing(index)?;
        let ahead = match self.serves {
            Serves::Jobs => self.jobs_ahead(index, host.speed())?,
            Serves::Prompts => self.prompts_ahead(index, standing)?,
        };
        let fetch = match has {
            Has::Lacks(keys) => self.lacking(keys) * (self.chain + ahead.delayed),
            Has::Known | Has::Assumed => self.size * rent,
        };
        let mut terms = Terms {
            host: index,
            has,
            wait: ahead.wait,
            fetch: self.fetch_each * fetch,
            run: self.run,
            crossing: match table.is_elsewhere(host) {
                true => time(table.policy().crossing),
                false => 0.0,
            },
            speed: ahead.speed,
            fullness: ahead.fullness,
            avoided: standing.is_suspect(*clock),
        };
        if let Some(at) = host.preempt_at {
            let finish = Duration::from_nanos(self.alone(terms).finish() as u64);
            let finish = match self.serves {
                Serves::Jobs => finish,
                // The answer is lost if the host goes while it is written.
                Serves::Prompts => finish.saturating_add(table.expected_cost().run),
            };
            terms.avoided |= now.saturating_add(finish) >= at;
        }
        Some(terms)
    }

    /// What a job takes of its own: without what its fetch evicts, whom it delays, and the rent of a copy.
    fn alone(&self, terms: Terms) -> Terms {
        let fetch = match (self.serves, terms.has) {
            (Serves::Prompts, _) => terms.fetch,
            (Serves::Jobs, Has::Lacks(keys)) => self.fetch_each * self.lacking(keys),
            (Serves::Jobs, Has::Known | Has::Assumed) => 0.0,
        };
        Terms { fetch, ..terms }
    }

    /// Where jobs hold cores.
    #[inline(never)]
    fn jobs_ahead(&self, index: u32, speed: f64) -> Option<Ahead> {
        let Candidates { cluster, clock, .. } = *self.candidates;
        let outlook = cluster.feedback.outlook(index, clock)?;
        let wait = match outlook.is_idle() {
            true => 0.0,
            false => self.wait(index, &outlook),
        };
        Some(Ahead {
            wait,
            delayed: outlook.delayed,
            // How fast a host is comes from what it says its requests take: to be fast helps it only while nobody waits
            // there.
            speed: match wait > 0.0 {
                true => speed.min(1.0),
                false => speed,
            },
            fullness: outlook.fullness,
        })
    }

    /// Where prompts are read one after another. What a reading delays are the prompts that wait, and one that comes: with
    /// twice as many, as for jobs, first tokens came 3 % later on SIMULATED hosts near saturation, and as soon below; without
    /// the one that comes as soon, and hosts found less of what they had.
    #[inline(never)]
    fn prompts_ahead(&self, index: u32, standing: &Standing) -> Option<Ahead> {
        let Candidates {
            cluster,
            table,
            clock,
            now,
            ..
        } = *self.candidates;
        let row = cluster.feedback.row(index)?;
        let wait = time(row.unread(table.expected_cost().fetch, clock, now));
        Some(Ahead {
            wait,
            delayed: 1.0 + wait / self.mean.max(1.0),
            speed: 1.0,
            fullness: f64::from(standing.in_progress(clock)) / MANY_ANSWERS,
        })
    }

    /// Until the request would have a core of a host that has none idle.
    fn wait(&self, index: u32, outlook: &Outlook) -> f64 {
        let Candidates { cluster, clock, .. } = *self.candidates;
        let row = cluster.feedback.row(index);
        row.map_or(0.0, |row| outlook.wait(row, self.class, self.mean, clock))
    }

    /// Names hosts that have the key, or of several keys the first, if they are eligible: some twice, the better known
    /// first. Beside each how many fetches the use of its copy counts for.
    fn look_at_holders(&self, random: u32, consider: &mut impl FnMut(u32, Has, f64)) {
        let candidates = self.candidates;
        let first = self.first_holder();
        let mut offer = |host, has| {
            let is_first = first.is_some_and(|(first, _)| first == host);
            consider(host, has, self.rent(is_first));
        };
        match candidates.request.keys.as_slice() {
            [key] => {
                let sample = sample(candidates.table.callers());
                for (host, has) in self.holders(*key, sample, random) {
                    offer(host, has);
                }
            }
            _ => {
                for prefix in candidates.prefixes(random).iter() {
                    if candidates.is_eligible(prefix.host) {
                        offer(prefix.host, self.has(prefix));
                    }
                }
            }
        }
        // Of many holders some are looked at, others by each request.
        if let Some((host, has)) = first {
            offer(host, has);
        }
    }

    /// The holder of all the data whose copy counts as no second one, wherever a look at some of them begins; none where
    /// second ones cost nothing.
    fn first_holder(&self) -> Option<(u32, Has)> {
        let candidates = self.candidates;
        if self.rent <= 0.0 {
            return None;
        }
        match candidates.request.keys.as_slice() {
            [key] => self.holders(*key, usize::MAX, 0).next(),
            _ => {
                let prefixes = candidates.prefixes(0);
                let mut whole = prefixes.iter().filter(|prefix| prefix.keys == self.keys);
                let first = whole.find(|prefix| candidates.is_eligible(prefix.host))?;
                Some((first.host, self.has(first)))
            }
        }
    }

    /// Eligible hosts that have the key: at most `limit` of those that say so, beginning at one that `random` points at
    /// where there are more, and those that it was sent to.
    fn holders(&self, key: KeyHash, limit: usize, random: u32) -> impl Iterator<Item = (u32, Has)> {
        let candidates = self.candidates;
        let Candidates {
            cluster,
            table,
            now,
            ..
        } = *candidates;
        let told = cluster.cache.holders(key, limit, random);
        let lifetime = table.policy().assumed_cached;
        let sent = cluster.feedback.assumed.hosts(key, now, lifetime);
        let told = told.map(|holder| (holder.host, holder.assumed));
        let all = told.chain(sent.map(|host| (host, true)));
        all.filter_map(move |(host, assumed)| {
            let host = table.index_of(host)?;
            let has = if assumed { Has::Assumed } else { Has::Known };
            candidates.is_eligible(host).then_some((host, has))
        })
    }

    /// Names all of few hosts, and some of many; where crossing to another zone takes time, as many again of the
    /// caller's own.
    #[inline]
    fn look_at_others(&self, rng: &mut impl Rng, mut consider: impl FnMut(u32)) {
        let Candidates {
            eligible, table, ..
        } = *self.candidates;
        let sample = sample(table.callers());
        let all = eligible.len() <= sample;
        for place in 0..eligible.len().min(sample) {
            let place = match all {
                true => place,
                false => scale(rng.next_u32(), eligible.len()),
            };
            if let Some(host) = eligible.get(place) {
                consider(*host);
            }
        }
        if !all && !table.policy().crossing.is_zero() {
            self.look_at_home(sample, rng, consider);
        }
    }

    /// Names some hosts of the caller's own zone. Of a zone with a part of the hosts as many draws are in vain as other
    /// zones have parts.
    fn look_at_home(&self, sample: usize, rng: &mut impl Rng, mut consider: impl FnMut(u32)) {
        let Candidates {
            eligible, table, ..
        } = *self.candidates;
        let draws = (0..sample * DRAWS).map(|_| scale(rng.next_u32(), eligible.len()));
        let hosts = draws.filter_map(|place| eligible.get(place));
        let is_home = |host: &&u32| {
            let row = table.host(**host);
            row.is_some_and(|row| !table.is_elsewhere(row))
        };
        hosts
            .filter(is_home)
            .take(sample)
            .for_each(|host| consider(*host));
    }
}
