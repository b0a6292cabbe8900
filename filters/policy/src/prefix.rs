// SPDX-License-Identifier: Apache-2.0
//! How much of a request's list of keys each host has: as many as it holds from the first on. A gap ends it.
//!
//! The list is walked from the last key that anybody holds to the first, so that those who may have most are
//! met first. A key that more than [`MAX_HOLDERS`] hosts hold counts as held by whoever holds a later one:
//! what so many share stands at the beginning, and hosts drop the end of a prefix first. So the cost does
//! not grow with the fleet, and up to [`MAX_HOLDERS`] hosts the answer is exact.

use crate::cache::Entries;
use crate::cluster::Cluster;
use crate::{KeyHash, MAX_KEYS, Table};
use std::time::Duration;

/// A key that more hosts hold than this is one that most prompts begin with.
const MANY_HOLDERS: usize = 64;

/// Hosts that are told apart at most; as many as `dynamic` looks at of those without the key.
pub(crate) const MAX_HOLDERS: usize = 16;

/// A host that holds keys from the first on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// Its index in the table.
    pub(crate) host: u32,
    /// How many keys, at least one.
    pub(crate) keys: u32,
    /// Whether any of them is only assumed to be there.
    pub(crate) assumed: bool,
    /// The key that was last found there, by its place in the list.
    at: usize,
}

/// Hosts that hold keys from the first on, in no order, none twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prefixes {
    hosts: [Prefix; MAX_HOLDERS],
    len: usize,
}

/// Finds who says that it holds each of the keys, up to the first that nobody holds nor `is_sent` to anybody. Returns how
/// many they are.
fn find<'a>(
    told: &mut [Entries<'a>; MAX_KEYS],
    cluster: &'a Cluster,
    keys: &[KeyHash],
    is_sent: impl Fn(KeyHash) -> bool,
) -> usize {
    let mut held = 0;
    for (place, key) in told.iter_mut().zip(keys) {
        *place = cluster.cache.entries(*key);
        if place.is_empty() && !is_sent(*key) {
            break;
        }
        held += 1;
    }
    held
}

impl Prefixes {
    /// Who holds how many of `keys` at `now`. Of more holders than are told apart, `random` chooses.
    pub(crate) fn new(
        cluster: &Cluster,
        table: &Table,
        keys: &[KeyHash],
        now: Duration,
        random: u32,
    ) -> Self {
        let lifetime = table.policy().assumed_cached;
        let assumed = |key| cluster.feedback.assumed.hosts(key, now, lifetime);
        let mut told = [Entries::default(); MAX_KEYS];
        let held = find(&mut told, cluster, keys, |key| {
            assumed(key).next().is_some()
        });
        let mut prefixes = Self::default();
        for (at, (told, key)) in told.iter().zip(keys).enumerate().take(held).rev() {
            if told.len() > MAX_HOLDERS {
                prefixes.found_everywhere(at);
            }
            for holder in told.sample(MAX_HOLDERS, random) {
                if let Some(host) = table.index_of(holder.host) {
                    prefixes.found(host, at, holder.assumed);
                }
            }
            for host in assumed(*key).filter_map(|host| table.index_of(host)) {
                prefixes.found(host, at, true);
            }
        }
        prefixes
    }

    /// Those that hold the first key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Prefix> + '_ {
        let hosts = self.hosts.iter().take(self.len);
        hosts.filter(|prefix| prefix.at == 0).copied()
    }

    /// The host holds the key at this place; later places came before. What is heard first of a key counts.
    fn found(&mut self, host: u32, at: usize, assumed: bool) {
        let known = self.hosts.iter_mut().take(self.len);
        if let Some(prefix) = known.into_iter().find(|prefix| prefix.host == host) {
            prefix.found(at, assumed);
            return;
        }
        let new = Prefix {
            host,
            keys: 1,
            assumed,
            at,
        };
        if let Some(free) = self.hosts.get_mut(self.len) {
            *free = new;
            self.len += 1;
        } else if let Some(gap) = self.hosts.iter_mut().find(|prefix| prefix.at > at + 1) {
            // It lacks the key behind this one, so it cannot have more than the new one.
            *gap = new;
        }
    }

    fn found_everywhere(&mut self, at: usize) {
        for prefix in self.hosts.iter_mut().take(self.len) {
            prefix.found(at, false);
        }
    }
}

impl Prefix {
    /// What the host with this table index holds of `keys` at `now`, if it holds the first one. Exact, but that a key of
    /// [`MANY_HOLDERS`] and more counts as held by whoever holds the first and a later one.
    pub(crate) fn of(
        (cluster, table): (&Cluster, &Table),
        keys: &[KeyHash],
        host: u32,
        now: Duration,
    ) -> Option<Self> {
        let id = *table.ids().get(host as usize)?;
        let lifetime = table.policy().assumed_cached;
        let sent = |key| cluster.feedback.assumed.hosts(key, now, lifetime);
        let mut told = [Entries::default(); MAX_KEYS];
        let held = find(&mut told, cluster, keys, |key| sent(key).next().is_some());
        let list = || told.iter().zip(keys).take(held);
        // Whether it is only assumed to be there; none where it is not.
        let at_host = |(told, key): (&Entries<'_>, &KeyHash)| {
            let known = told.of(id).map(|holder| holder.assumed);
            known.or_else(|| sent(*key).any(|sent| sent == id).then_some(true))
        };
        let mut prefix = Self {
            host,
            keys: 1,
            assumed: list().next().and_then(at_host)?,
            at: 0,
        };
        // Few hold the last ones, and to find the last that is held is to know that most before it are.
        let is_held = |one| at_host(one).is_some();
        let last = list().rposition(is_held)?;
        for (told, key) in list().take(last + 1).skip(1) {
            let assumed = match told.len() < MANY_HOLDERS {
                true => at_host((told, key)),
                false => Some(false),
            };
            let Some(assumed) = assumed else { break };
            prefix.keys += 1;
            prefix.assumed |= assumed;
        }
        Some(prefix)
    }

    fn found(&mut self, at: usize, assumed: bool) {
        match self.at - at {
            0 => return,
            1 => {
                self.keys += 1;
                self.assumed |= assumed;
            }
            // A gap: what is behind it is of no use.
            _ => (self.keys, self.assumed) = (1, assumed),
        }
        self.at = at;
    }
}
