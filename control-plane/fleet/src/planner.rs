// SPDX-License-Identifier: Apache-2.0
//! A caching plan that is learned: at which hosts a key is, from what requests for it cost there.
//!
//! ```text
//!  answers ── learn ──> work by key ─┐
//!  hosts, capacity ──────────────────┴─ plan, every so often ──> moves ──> what is pushed as cache contents
//! ```
//! A key begins at the host that answered it first, where its data are. From then on it moves for three reasons: its
//! host is gone; its host has more work than the others; or it is more work than one host should have, and gets
//! another. A move costs a fetch, so but for the first reason only a share of the keys moves in a minute.
//!
//! Ulita's planner, which document 001 (sections 5.1 and 9.2) compares with, computed assignments beforehand; how is not
//! told. Placing what has no host is Graham's rule, the most work first to whom has the least (*Bounds on multiprocessing
//! timing anomalies*, SIAM J. Appl. Math. 17(2), 1969).

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weir_policy::{HostId, KeyHash};

use crate::costs::Spent;
use crate::settings::Planning;

/// No more are planned: half as many as costs are kept of.
const MOST_KEYS: usize = 262_144;
/// What a key counts: its place in the map with its share of free ones, and a host or two.
const KEY_BYTES: usize = 160;
/// Less core time is nobody's concern: 10 µs within the memory.
const LEAST_WORK: f64 = 1e-5;
/// A host with so much more than the mean is relieved.
const TOLERANCE: f64 = 0.1;
/// A key with more than this share of a host's fair part is given another host.
const MOST_OF_A_HOST: f64 = 0.5;
/// Of keys that are to relieve hosts, in one plan: whoever plans has other things to do.
const MOST_TRIES: usize = 1_000;
/// A request that tells of more has run for so long: one record is not to outweigh all others.
const LONGEST_RUN: Duration = Duration::from_secs(600);
/// As many hosts of one key as the filter looks at.
const MOST_HOSTS: usize = 16;
/// Answers are told in no order, and within this: a fetch that is told later may be the one before.
pub(crate) const TOLD_WITHIN: Duration = Duration::from_secs(2);
const MINUTE: Duration = Duration::from_secs(60);

/// Which keys are planned at which hosts.
#[derive(Debug, Default)]
pub struct Planner {
    /// In order: sums of fractions depend on it, and so would plans.
    keys: BTreeMap<KeyHash, Planned>,
    /// When it was made.
    made: Option<Duration>,
    /// Keys that may move still.
    moves: f64,
    counts: Counts,
}

/// What has happened to keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Went to another host, or to one more, as that had less work.
    pub balanced: u64,
    /// Went to another host, as theirs was gone.
    pub rehoused: u64,
    /// Requests that fetched at a host what an earlier one had fetched there: it was evicted, or the host began anew.
    pub evicted: u64,
}

#[derive(Debug)]
struct Planned {
    /// Where it is planned.
    hosts: Vec<Home>,
    /// Core seconds that its requests ran for, halved with every memory that has gone by.
    work: f64,
    /// When it was last halved.
    at: Duration,
    /// Core seconds of the last fetch.
    fetch: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Home {
    host: HostId,
    /// When it was first told to have answered, so that it had the data.
    answered: Option<Duration>,
}

/// A host that keys can be at.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Who.
    pub host: HostId,
    /// In cores or anything else, alike for all.
    pub capacity: f64,
}

/// A key comes to a host, or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which.
    pub key: KeyHash,
    /// Whose it is not any more.
    pub from: Option<HostId>,
    /// Whose it is now.
    pub to: Option<HostId>,
}

impl Planned {
    fn halve(&mut self, now: Duration, memory: Duration) {
        let gone = now.saturating_sub(self.at).as_secs_f64() / memory.as_secs_f64();
        self.work *= (-gone).exp2();
        self.at = now;
    }

    fn share(&self) -> f64 {
        self.work / self.hosts.len().max(1) as f64
    }

    fn is_at(&self, host: HostId) -> bool {
        self.hosts.iter().any(|home| home.host == host)
    }
}

impl Planner {
    /// What has happened to them.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Bytes that it counts.
    pub fn bytes(&self) -> usize {
        KEY_BYTES * self.keys.len()
    }

    /// Takes in what a request has cost. A key that is not planned is from now on at the host that answered: that is
    /// told.
    pub fn learn(&mut self, spent: &Spent, planning: &Planning, now: Duration) -> Option<Move> {
        let is_full = self.keys.len() >= MOST_KEYS;
        let seconds = |time: Duration| time.min(LONGEST_RUN).as_secs_f64();
        let (run, fetch) = (seconds(spent.run), spent.fetch.map(seconds));
        if let Some(planned) = self.keys.get_mut(&spent.key) {
            planned.halve(now, planning.memory);
            planned.work += run;
            let mut homes = planned.hosts.iter_mut();
            if let Some(home) = homes.find(|home| home.host == spent.host) {
                let answered = *home.answered.get_or_insert(now);
                let again = fetch.is_some() && now.saturating_sub(answered) > TOLD_WITHIN;
                self.counts.evicted += u64::from(again);
            }
            planned.fetch = fetch.unwrap_or(planned.fetch);
            return None;
        }
        if is_full {
            return None;
        }
        let home = Home {
            host: spent.host,
            answered: Some(now),
        };
        let planned = Planned {
            hosts: vec![home],
            work: run,
            at: now,
            fetch: fetch.unwrap_or_default(),
        };
        self.keys.insert(spent.key, planned);
        Some(Move {
            key: spent.key,
            from: None,
            to: Some(spent.host),
        })
    }

    /// Whether it is time to plan anew.
    pub fn is_due(&self, planning: &Planning, now: Duration) -> bool {
        self.made
            .is_none_or(|made| now.saturating_sub(made) >= planning.every)
    }

    /// Plans anew where it is time to: keys for whom there is a host, as long as there is one.
    pub fn plan(&mut self, places: &[Place], planning: &Planning, now: Duration) -> Vec<Move> {
        if places.is_empty() || !self.is_due(planning, now) {
            return Vec::new();
        }
        let since = self.made.replace(now).map(|made| now.saturating_sub(made));
        let a_minute = self.keys.len() as f64 * planning.moved_per_minute;
        let part = since.unwrap_or_default().as_secs_f64() / MINUTE.as_secs_f64();
        // Not saved for longer than a minute, but of few keys one may move now and then.
        let most = if a_minute > 0.0 {
            a_minute.max(1.0)
        } else {
            0.0
        };
        self.moves = (self.moves + a_minute * part).min(most);
        let mut moves = self.forget(planning, now);
        let mut hosts = Hosts::new(places, self.keys.values());
        moves.extend(self.rehouse(&mut hosts));
        moves.extend(self.gather(&mut hosts));
        moves.extend(self.spread(&mut hosts));
        moves.extend(self.balance(&mut hosts));
        debug_assert!(hosts.are_as(Hosts::new(places, self.keys.values())));
        moves
    }

    /// Keys that nobody asks for any more, and where there are too many, those that are least work.
    fn forget(&mut self, planning: &Planning, now: Duration) -> Vec<Move> {
        for planned in self.keys.values_mut() {
            planned.halve(now, planning.memory);
        }
        let mut least = (LEAST_WORK, KeyHash(0));
        if self.keys.len() >= MOST_KEYS {
            let work = self.keys.iter().map(|(key, planned)| (planned.work, *key));
            let mut work: Vec<_> = work.collect();
            let quarter = work.len() / 4;
            let (_, at_a_quarter, _) = work.select_nth_unstable_by(quarter, by_work);
            if by_work(at_a_quarter, &least).is_gt() {
                least = *at_a_quarter;
            }
        }
        let mut gone = Vec::new();
        self.keys.retain(|key, planned| {
            let stays = by_work(&(planned.work, *key), &least).is_ge();
            if !stays {
                gone.extend(planned.hosts.iter().map(|home| Move {
                    key: *key,
                    from: Some(home.host),
                    to: None,
                }));
            }
            stays
        });
        gone
    }

    /// Gives keys whose host is gone another, the most work first.
    fn rehouse(&mut self, hosts: &mut Hosts) -> Vec<Move> {
        let mut homeless = Vec::new();
        for (key, planned) in &mut self.keys {
            if planned.hosts.iter().all(|home| hosts.has(home.host)) {
                continue;
            }
            hosts.count(planned, -1.0);
            planned.hosts.retain(|home| {
                let stays = hosts.has(home.host);
                if !stays {
                    homeless.push((planned.work, *key, home.host));
                }
                stays
            });
            hosts.count(planned, 1.0);
        }
        homeless.sort_by(|(a, key, _), (b, other, _)| b.total_cmp(a).then(key.cmp(other)));
        let mut moves = Vec::new();
        for (_, key, from) in homeless {
            let Some(planned) = self.keys.get_mut(&key) else {
                continue;
            };
            let to = match planned.hosts.is_empty() {
                true => hosts.give(planned),
                false => None,
            };
            self.counts.rehoused += u64::from(to.is_some());
            moves.push(Move {
                key,
                from: Some(from),
                to,
            });
        }
        moves
    }

    /// Keys that are not so much any more have a host less, at no cost.
    fn gather(&mut self, hosts: &mut Hosts) -> Vec<Move> {
        let enough = MOST_OF_A_HOST / 2.0 * hosts.fair();
        let mut moves = Vec::new();
        for (key, planned) in &mut self.keys {
            if planned.hosts.len() > 1 && planned.work < enough * (planned.hosts.len() - 1) as f64 {
                let from = hosts.take(planned);
                moves.push(Move {
                    key: *key,
                    from,
                    to: None,
                });
            }
        }
        moves
    }

    /// Gives keys that are too much for their hosts one more.
    fn spread(&mut self, hosts: &mut Hosts) -> Vec<Move> {
        let fair = hosts.fair();
        let mut heavy = Vec::new();
        for (key, planned) in &self.keys {
            if planned.share() > MOST_OF_A_HOST * fair && planned.hosts.len() < MOST_HOSTS {
                heavy.push((planned.work, *key));
            }
        }
        heavy.sort_by(|a, b| by_work(b, a));
        let mut moves = Vec::new();
        for (_, key) in heavy {
            if self.moves < 1.0 {
                break;
            }
            let Some(planned) = self.keys.get_mut(&key) else {
                continue;
            };
            if let Some(to) = hosts.give(planned) {
                self.moves -= 1.0;
                self.counts.balanced += 1;
                let to = Some(to);
                moves.push(Move {
                    key,
                    from: None,
                    to,
                });
            }
        }
        moves
    }

    /// Relieves the hosts that have the most.
    fn balance(&mut self, hosts: &mut Hosts) -> Vec<Move> {
        let over = hosts.over();
        let mut by_host: BTreeMap<HostId, Vec<(f64, KeyHash)>> = BTreeMap::new();
        for (key, planned) in &self.keys {
            // What ran for less than a fetch takes is not worth one.
            if planned.share() <= planned.fetch {
                continue;
            }
            for home in &planned.hosts {
                if over.contains(&home.host) {
                    let keys = by_host.entry(home.host).or_default();
                    keys.push((planned.share(), *key));
                }
            }
        }
        for keys in by_host.values_mut() {
            keys.sort_by(by_work);
        }
        let mut moves = Vec::new();
        for _ in 0..MOST_TRIES {
            if self.moves < 1.0 {
                break;
            }
            let candidates = by_host.iter().filter(|(_, keys)| !keys.is_empty());
            let candidates = candidates.map(|(host, _)| *host);
            let Some((from, most)) = hosts.fullest(candidates) else {
                break;
            };
            let Some(keys) = by_host.get_mut(&from) else {
                break;
            };
            // The largest that leaves the one with no less than the other gets.
            let fits = keys.partition_point(|(work, _)| *work <= most);
            let Some(at) = fits.checked_sub(1) else {
                keys.clear();
                continue;
            };
            let (_, key) = keys.remove(at);
            let Some(planned) = self.keys.get_mut(&key) else {
                continue;
            };
            let Some(to) = hosts.exchange(planned, from) else {
                continue;
            };
            self.moves -= 1.0;
            self.counts.balanced += 1;
            moves.push(Move {
                key,
                from: Some(from),
                to: Some(to),
            });
        }
        moves
    }
}

/// The least work first.
fn by_work((a, key): &(f64, KeyHash), (b, other): &(f64, KeyHash)) -> Ordering {
    a.total_cmp(b).then(key.cmp(other))
}

/// What hosts have, as it is planned.
struct Hosts {
    /// In the order of their identities.
    rows: Vec<(Place, f64)>,
}

impl Hosts {
    fn new<'a>(places: &[Place], keys: impl Iterator<Item = &'a Planned>) -> Self {
        let mut rows: Vec<_> = places.iter().map(|place| (*place, 0.0)).collect();
        rows.sort_by_key(|(place, _)| place.host);
        let mut hosts = Self { rows };
        for planned in keys {
            hosts.count(planned, 1.0);
        }
        hosts
    }

    /// But for how sums are rounded.
    fn are_as(&self, others: Self) -> bool {
        let most = others
            .rows
            .iter()
            .map(|(_, work)| *work)
            .fold(1e-9, f64::max);
        let mut both = self.rows.iter().zip(&others.rows);
        both.all(|((_, work), (_, other))| (work - other).abs() <= 1e-6 * most)
    }

    /// Adds the key's work, or takes it away.
    fn count(&mut self, planned: &Planned, sign: f64) {
        for home in &planned.hosts {
            self.add(home.host, sign * planned.share());
        }
    }

    fn place(&self, host: HostId) -> Option<usize> {
        let found = self
            .rows
            .binary_search_by_key(&host, |(place, _)| place.host);
        found.ok()
    }

    fn has(&self, host: HostId) -> bool {
        self.place(host).is_some()
    }

    fn add(&mut self, host: HostId, work: f64) {
        if let Some(at) = self.place(host) {
            self.rows[at].1 += work;
        }
    }

    fn load(&self, at: usize) -> f64 {
        let (place, work) = self.rows[at];
        work / place.capacity.max(f64::MIN_POSITIVE)
    }

    /// Work for each capacity, of all together.
    fn mean(&self) -> f64 {
        let work: f64 = self.rows.iter().map(|(_, work)| work).sum();
        let capacity: f64 = self.rows.iter().map(|(place, _)| place.capacity).sum();
        work / capacity.max(f64::MIN_POSITIVE)
    }

    /// A host's part of the work.
    fn fair(&self) -> f64 {
        let work: f64 = self.rows.iter().map(|(_, work)| work).sum();
        work / self.rows.len().max(1) as f64
    }

    /// Those that have too much.
    fn over(&self) -> BTreeSet<HostId> {
        let most = self.mean() * (1.0 + TOLERANCE);
        let over = (0..self.rows.len()).filter(|at| self.load(*at) > most);
        over.map(|at| self.rows[at].0.host).collect()
    }

    fn least(&self, but: impl Fn(HostId) -> bool) -> Option<usize> {
        let others = (0..self.rows.len()).filter(|at| !but(self.rows[*at].0.host));
        others.min_by(|a, b| self.load(*a).total_cmp(&self.load(*b)))
    }

    /// Of these hosts the one that has the most, where that is too much, and how much it can give to whom has the least
    /// until they have the same for their capacity.
    fn fullest(&self, of: impl Iterator<Item = HostId>) -> Option<(HostId, f64)> {
        let places = of.filter_map(|host| self.place(host));
        let over = self.mean() * (1.0 + TOLERANCE);
        let places = places.filter(|at| self.load(*at) > over);
        let order = |a: &usize, b: &usize| self.load(*a).total_cmp(&self.load(*b)).then(b.cmp(a));
        let most = places.max_by(order)?;
        let least = self.least(|_| false)?;
        let each = |at: usize| 1.0 / self.rows[at].0.capacity.max(f64::MIN_POSITIVE);
        let gap = self.load(most) - self.load(least);
        Some((self.rows[most].0.host, gap / (each(most) + each(least))))
    }

    /// The key is at one more host from now on: the one of the others that has least.
    fn give(&mut self, planned: &mut Planned) -> Option<HostId> {
        let at = self.least(|host| planned.is_at(host))?;
        let host = self.rows[at].0.host;
        self.count(planned, -1.0);
        planned.hosts.push(Home {
            host,
            answered: None,
        });
        self.count(planned, 1.0);
        Some(host)
    }

    /// The key is at one host less from now on: not at the one that it came to last.
    fn take(&mut self, planned: &mut Planned) -> Option<HostId> {
        self.count(planned, -1.0);
        let home = planned.hosts.pop();
        self.count(planned, 1.0);
        home.map(|home| home.host)
    }

    /// The key is at another host instead of this one.
    fn exchange(&mut self, planned: &mut Planned, from: HostId) -> Option<HostId> {
        let at = self.least(|host| planned.is_at(host))?;
        let Place { host, capacity } = self.rows[at].0;
        let then = self.load(at) + planned.share() / capacity.max(f64::MIN_POSITIVE);
        if then >= self.load(self.place(from)?) {
            return None;
        }
        let home = planned.hosts.iter_mut().find(|home| home.host == from)?;
        *home = Home {
            host,
            answered: None,
        };
        let share = planned.share();
        self.add(from, -share);
        self.add(host, share);
        Some(host)
    }
}

#[cfg(test)]
mod tests;
