// SPDX-License-Identifier: Apache-2.0
//! Which hosts hold which keys of a cluster, by shard: what hosts say, and what is assumed because a key
//! was sent to a host a moment ago.
//!
//! A change costs what it changes: only shards that look different afterwards are marked, and only those
//! are encoded again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use weir_policy::{HostId, KeyHash, shard_of};

/// Caches are asked once a second, so what they say waits no longer than that again.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// What a key counts: its place in the map, its first claims, its columns in the pushed shard.
const KEY_BYTES: usize = 224;
/// What a host's word for a key counts: a place in the host's set and one among the key's claims.
const KNOWN_BYTES: usize = 64;
/// What an assumption counts: its end, and one among the key's claims.
const ASSUMED_BYTES: usize = 96;

/// How a host's contents changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Forget what was there before.
    pub reset: bool,
    /// Keys that came.
    pub added: Vec<KeyHash>,
    /// Keys that went.
    pub removed: Vec<KeyHash>,
}

/// One host's claim to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who.
    pub host: HostId,
    /// The host itself says so.
    pub known: bool,
    /// Assumed until then.
    pub assumed_until: Option<Duration>,
}

#[derive(Debug, Default)]
struct Shard {
    keys: BTreeMap<KeyHash, Vec<Claim>>,
    changed: bool,
    /// It is not taken before, so that a large one is not pushed for each key that comes or goes.
    rests_until: Duration,
}

impl Shard {
    fn is_due(&self, now: Duration) -> bool {
        self.changed && now >= self.rests_until
    }
}

/// The holders of all keys.
#[derive(Debug, Default)]
pub struct Holdings {
    shards: Vec<Shard>,
    known: HashMap<HostId, HashSet<KeyHash>>,
    /// One entry an assumption, at or before its end.
    ends: BTreeSet<(Duration, KeyHash, HostId)>,
}

impl Holdings {
    /// Holdings in this many shards; 0 keeps nothing.
    pub fn new(shards: u32) -> Self {
        let mut holdings = Self::default();
        holdings.resize(shards);
        holdings
    }

    /// Splits the same holdings into another number of shards.
    pub fn resize(&mut self, shards: u32) {
        if self.shards.len() == shards as usize {
            return;
        }
        let old = std::mem::take(&mut self.shards);
        self.shards.resize_with(shards as usize, || Shard {
            changed: true,
            ..Shard::default()
        });
        for (key, claims) in old.into_iter().flat_map(|shard| shard.keys) {
            if let Some(shard) = self.shard(key) {
                shard.keys.insert(key, claims);
            }
        }
    }

    /// How many keys a host has said that it holds.
    pub fn known_keys(&self, host: HostId) -> usize {
        self.known.get(&host).map_or(0, HashSet::len)
    }

    /// How many claims are assumptions (also of hosts that have said so since).
    pub fn assumed_claims(&self) -> usize {
        self.ends.len()
    }

    /// Bytes that all of it counts, and the shards as they are pushed.
    pub fn bytes(&self) -> usize {
        let keys: usize = self.shards.iter().map(|shard| shard.keys.len()).sum();
        let known: usize = self.known.values().map(HashSet::len).sum();
        KEY_BYTES * keys + KNOWN_BYTES * known + ASSUMED_BYTES * self.ends.len()
    }

    /// Folds in what a host says. Where it would hold more than `limit` keys then, all that it said is forgotten, and
    /// the error is how many. To keep as many as allowed would leave those that came first, whatever they are worth.
    pub fn apply(&mut self, host: HostId, changes: &Changes, limit: usize) -> Result<(), usize> {
        self.fold(host, changes);
        let keys = self.known_keys(host);
        if keys <= limit {
            return Ok(());
        }
        for key in self.known.remove(&host).unwrap_or_default() {
            self.lose(host, key, false);
        }
        Err(keys)
    }

    fn fold(&mut self, host: HostId, changes: &Changes) {
        let added = changes.added.iter().copied();
        if changes.reset {
            let new: HashSet<KeyHash> = added.collect();
            let old = self.known.insert(host, HashSet::new()).unwrap_or_default();
            for key in old.difference(&new) {
                self.lose(host, *key, false);
            }
            for key in &new {
                self.gain(host, *key);
            }
            self.known.insert(host, new);
        } else {
            for key in added {
                self.known.entry(host).or_default().insert(key);
                self.gain(host, key);
            }
            for key in &changes.removed {
                if let Some(known) = self.known.get_mut(&host) {
                    known.remove(key);
                    if known.is_empty() {
                        self.known.remove(&host);
                    }
                }
                // The host has just said that it is gone, which is better than an assumption.
                self.lose(host, *key, true);
            }
        }
    }

    /// Assumes that the host holds the key until then.
    pub fn assume(&mut self, host: HostId, key: KeyHash, until: Duration) {
        let Some(shard) = self.shard(key) else { return };
        let claims = shard.keys.entry(key).or_default();
        let claim = claims.iter_mut().find(|claim| claim.host == host);
        let queued = match claim {
            Some(claim) => {
                let queued = claim.assumed_until.is_some();
                claim.assumed_until = claim.assumed_until.max(Some(until));
                queued
            }
            None => {
                claims.push(Claim {
                    host,
                    known: false,
                    assumed_until: Some(until),
                });
                shard.changed = true;
                false
            }
        };
        if !queued {
            self.ends.insert((until, key, host));
        }
    }

    /// Ends assumptions whose time is over; true if a shard looks different.
    pub fn expire(&mut self, now: Duration) -> bool {
        let mut changed = false;
        while let Some((end, key, host)) =
            self.ends.first().copied().filter(|(end, ..)| *end <= now)
        {
            self.ends.remove(&(end, key, host));
            let Some(shard) = self.shard(key) else {
                continue;
            };
            let claims = shard.keys.get_mut(&key);
            let Some(claim) =
                claims.and_then(|claims| claims.iter_mut().find(|claim| claim.host == host))
            else {
                continue;
            };
            match claim.assumed_until {
                Some(until) if until > now => {
                    self.ends.insert((until, key, host));
                }
                _ => {
                    claim.assumed_until = None;
                    if !claim.known {
                        self.drop_claim(host, key);
                        changed = true;
                    }
                }
            }
        }
        changed
    }

    /// Forgets a host.
    pub fn remove(&mut self, host: HostId) {
        self.known.remove(&host);
        self.ends.retain(|(_, _, holder)| *holder != host);
        for shard in &mut self.shards {
            shard.keys.retain(|_, claims| {
                let before = claims.len();
                claims.retain(|claim| claim.host != host);
                shard.changed |= claims.len() != before;
                !claims.is_empty()
            });
        }
    }

    /// The numbers of the shards that look different since they were last taken, but for those that rest.
    pub fn take_changed(&mut self, now: Duration) -> Vec<u32> {
        let mut taken = Vec::new();
        for (shard, number) in self.shards.iter_mut().zip(0..) {
            if shard.is_due(now) {
                shard.changed = false;
                taken.push(number);
            }
        }
        taken
    }

    /// Whether there is a shard to take.
    pub fn is_changed(&self, now: Duration) -> bool {
        self.shards.iter().any(|shard| shard.is_due(now))
    }

    /// The shard was taken and took so many bytes: it rests until its share of the bytes that a sidecar is to
    /// get in a second allows for them, but never for long.
    pub fn rest(&mut self, shard: u32, now: Duration, bytes: usize, bytes_per_second: usize) {
        let all = bytes as u64 * u64::from(self.shards());
        if let Some(shard) = self.shards.get_mut(shard as usize) {
            let rest = Duration::from_millis(all * 1000 / bytes_per_second.max(1) as u64);
            shard.rests_until = now + rest.min(LONGEST_REST);
        }
    }

    /// Something else is to be told of the key than before.
    pub fn touch(&mut self, key: KeyHash) {
        if let Some(shard) = self.shard(key) {
            shard.changed |= shard.keys.contains_key(&key);
        }
    }

    /// How many shards there are.
    pub fn shards(&self) -> u32 {
        self.shards.len() as u32
    }

    /// The keys of a shard and who claims them.
    pub fn contents(&self, shard: u32) -> impl Iterator<Item = (KeyHash, &[Claim])> {
        let shard = self.shards.get(shard as usize);
        shard.into_iter().flat_map(|shard| {
            shard
                .keys
                .iter()
                .map(|(key, claims)| (*key, claims.as_slice()))
        })
    }

    fn shard(&mut self, key: KeyHash) -> Option<&mut Shard> {
        let shards = self.shards.len() as u32;
        self.shards.get_mut(shard_of(key, shards) as usize)
    }

    fn gain(&mut self, host: HostId, key: KeyHash) {
        let Some(shard) = self.shard(key) else { return };
        let claims = shard.keys.entry(key).or_default();
        match claims.iter_mut().find(|claim| claim.host == host) {
            Some(claim) if claim.known => {}
            Some(claim) => {
                claim.known = true;
                shard.changed = true;
            }
            None => {
                claims.push(Claim {
                    host,
                    known: true,
                    assumed_until: None,
                });
                shard.changed = true;
            }
        }
    }

    fn lose(&mut self, host: HostId, key: KeyHash, assumption_too: bool) {
        let Some(shard) = self.shard(key) else { return };
        let Some(claims) = shard.keys.get_mut(&key) else {
            return;
        };
        let Some(claim) = claims.iter_mut().find(|claim| claim.host == host) else {
            return;
        };
        if claim.assumed_until.is_some() && !assumption_too {
            shard.changed |= claim.known;
            claim.known = false;
            return;
        }
        self.drop_claim(host, key);
    }

    fn drop_claim(&mut self, host: HostId, key: KeyHash) {
        let Some(shard) = self.shard(key) else { return };
        shard.changed = true;
        if let Some(claims) = shard.keys.get_mut(&key) {
            claims.retain(|claim| claim.host != host);
            if claims.is_empty() {
                shard.keys.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
