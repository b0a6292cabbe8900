// SPDX-License-Identifier: Apache-2.0
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::{Cost, HostId, KeyHash};

/// The shard of `shards` (a power of two) that a key belongs to: the top bits of its hash.
pub fn shard_of(key: KeyHash, shards: u32) -> u32 {
    let bits = shards.checked_ilog2().unwrap_or(0);
    key.0.checked_shr(64 - bits).unwrap_or(0) as u32
}

/// A host that has a key, or is only assumed to have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The host.
    pub host: HostId,
    /// Whether nobody but the sender of a recent request says so.
    pub assumed: bool,
}

/// Why a shard was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ShardError {
    #[error("keys[{index}]: not above its predecessor")]
    UnsortedKeys { index: usize },
    #[error("keys[{index}]: belongs to shard {belongs_to}, not to {shard} of {shards}")]
    ForeignKey {
        index: usize,
        belongs_to: u32,
        shard: u32,
        shards: u32,
    },
    #[error("holders_end: {ends} entries for {keys} keys")]
    EndsDoNotMatchKeys { ends: usize, keys: usize },
    #[error("holders_end[{index}]: below its predecessor or beyond the {holders} holders")]
    BadEnd { index: usize, holders: usize },
    #[error("{field}: {costs} entries for {keys} keys")]
    CostsDoNotMatchKeys {
        field: &'static str,
        costs: usize,
        keys: usize,
    },
    #[error("holders: {unused} entries belong to no key")]
    UnusedHolders { unused: usize },
    #[error("holders[{index}]: host {host} of {hosts}")]
    UnknownHost {
        index: usize,
        host: u32,
        hosts: usize,
    },
}

/// The holders of the keys of one shard.
///
/// A clone shares them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheShard(Arc<Columns>);

/// Each holder is an index into `hosts` times two, plus one where it is only assumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Columns {
    hosts: Vec<HostId>,
    keys: Vec<u64>,
    ends: Vec<u32>,
    holders: Vec<u32>,
    /// Of each key, microseconds to fetch and to run; none where nothing is known of any.
    costs: Vec<(u32, u32)>,
}

impl CacheShard {
    /// Checks the columns of shard `shard` of `shards`: keys strictly ascending and of this shard, holders
    /// of key i between `ends[i - 1]` and `ends[i]`, all of them in `hosts`.
    pub fn new(
        shard: u32,
        shards: u32,
        hosts: Vec<HostId>,
        keys: Vec<u64>,
        ends: Vec<u32>,
        holders: Vec<u32>,
    ) -> Result<Self, ShardError> {
        if ends.len() != keys.len() {
            return Err(ShardError::EndsDoNotMatchKeys {
                ends: ends.len(),
                keys: keys.len(),
            });
        }
        let mut previous = None;
        for (index, key) in keys.iter().enumerate() {
            if previous.is_some_and(|previous| previous >= *key) {
                return Err(ShardError::UnsortedKeys { index });
            }
            let belongs_to = shard_of(KeyHash(*key), shards);
            if belongs_to != shard {
                return Err(ShardError::ForeignKey {
                    index,
                    belongs_to,
                    shard,
                    shards,
                });
            }
            previous = Some(*key);
        }
        let mut previous = 0;
        for (index, end) in ends.iter().enumerate() {
            if *end < previous || *end as usize > holders.len() {
                return Err(ShardError::BadEnd {
                    index,
                    holders: holders.len(),
                });
            }
            previous = *end;
        }
        if holders.len() > previous as usize {
            return Err(ShardError::UnusedHolders {
                unused: holders.len() - previous as usize,
            });
        }
        check_hosts(&holders, hosts.len())?;
        Ok(Self(Arc::new(Columns {
            hosts,
            keys,
            ends,
            holders,
            costs: Vec::new(),
        })))
    }

    /// The same shard with what requests for its keys cost, in microseconds by key; both columns may be empty,
    /// and 0 and 0 is a key of which nothing is known.
    pub fn with_costs(self, fetches: &[u32], runs: &[u32]) -> Result<Self, ShardError> {
        let keys = self.0.keys.len();
        for (field, costs) in [("fetch_us", fetches.len()), ("run_us", runs.len())] {
            if costs != keys && !(fetches.is_empty() && runs.is_empty()) {
                return Err(ShardError::CostsDoNotMatchKeys { field, costs, keys });
            }
        }
        let mut columns = Arc::unwrap_or_clone(self.0);
        let costs = fetches.iter().copied().zip(runs.iter().copied());
        columns.costs = costs.collect();
        Ok(Self(Arc::new(columns)))
    }

    fn cost(&self, key: KeyHash) -> Option<Cost> {
        // Most hosts tell none, and the key is looked for once more for its holders.
        if self.0.costs.is_empty() {
            return None;
        }
        let place = self.0.keys.binary_search(&key.0).ok()?;
        let (fetch, run) = self.0.costs.get(place).copied()?;
        let micros = |micros: u32| Duration::from_micros(micros.into());
        (fetch > 0 || run > 0).then(|| Cost {
            fetch: micros(fetch),
            run: micros(run),
        })
    }

    /// How many keys it has.
    pub fn len(&self) -> usize {
        self.0.keys.len()
    }

    /// Whether it has no key.
    pub fn is_empty(&self) -> bool {
        self.0.keys.is_empty()
    }

    /// Bytes that its columns take.
    pub fn bytes(&self) -> usize {
        let Columns {
            hosts,
            keys,
            ends,
            holders,
            costs,
        } = &*self.0;
        size_of_val(&**hosts)
            + size_of_val(&**keys)
            + size_of_val(&**ends)
            + size_of_val(&**holders)
            + size_of_val(&**costs)
    }
}

/// Refuses holders that are none of the hosts.
fn check_hosts(holders: &[u32], hosts: usize) -> Result<(), ShardError> {
    let unknown = |holder: &u32| *holder as usize / 2 >= hosts;
    let index = holders.iter().position(unknown);
    if let Some((index, holder)) = index.and_then(|index| Some((index, holders.get(index)?))) {
        return Err(ShardError::UnknownHost {
            index,
            host: holder / 2,
            hosts,
        });
    }
    Ok(())
}

impl Columns {
    fn entries(&self, key: KeyHash) -> Range<usize> {
        let Ok(found) = self.keys.binary_search(&key.0) else {
            return 0..0;
        };
        let end = |index: usize| self.ends.get(index).map_or(0, |end| *end as usize);
        let start = found.checked_sub(1).map_or(0, end);
        start..end(found)
    }

    fn holder(&self, entry: u32) -> Option<Holder> {
        let host = *self.hosts.get(entry as usize / 2)?;
        Some(Holder {
            host,
            assumed: entry % 2 == 1,
        })
    }
}

/// The hosts that hold each key, by shard.
#[derive(Clone, Debug, Default)]
pub struct CacheIndex {
    shards: Vec<CacheShard>,
    /// While it rests, shards by number for as long as somebody else keeps them.
    resting: Vec<(u32, Weak<Columns>)>,
}

impl CacheIndex {
    /// Prepares for `shards` shards; what was known is dropped where that number differs.
    pub fn resize(&mut self, shards: u32) {
        if self.shards.len() != shards as usize {
            self.shards = vec![CacheShard::default(); shards as usize];
            self.resting.clear();
        }
    }

    /// Keeps no shard alive, and knows of none, until it wakes.
    pub fn rest(&mut self) {
        let nothing = CacheShard::default();
        for (number, shard) in (0..).zip(&mut self.shards) {
            if !shard.is_empty() {
                let before = std::mem::replace(shard, nothing.clone());
                self.resting.push((number, Arc::downgrade(&before.0)));
            }
        }
    }

    /// Takes back its shards; those that nobody has kept meanwhile as `newest` has them.
    pub fn wake(&mut self, newest: impl Fn(u32) -> Option<CacheShard>) {
        for (number, resting) in self.resting.drain(..) {
            let kept = resting.upgrade().map(CacheShard);
            let contents = kept.or_else(|| newest(number));
            if let (Some(place), Some(contents)) = (self.shards.get_mut(number as usize), contents)
            {
                *place = contents;
            }
        }
    }

    /// Replaces a shard; ignored where there is no such shard. It is not taken back at the next [`CacheIndex::wake`].
    pub fn set(&mut self, shard: u32, contents: CacheShard) {
        self.resting.retain(|(number, _)| *number != shard);
        if let Some(place) = self.shards.get_mut(shard as usize) {
            *place = contents;
        }
    }

    /// How many keys are known.
    pub fn len(&self) -> usize {
        self.shards.iter().map(CacheShard::len).sum()
    }

    /// Whether no key is known.
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(CacheShard::is_empty)
    }

    /// The cost of requests for the key lately.
    pub(crate) fn cost(&self, key: KeyHash) -> Option<Cost> {
        let shard = shard_of(key, self.shards.len() as u32);
        self.shards.get(shard as usize)?.cost(key)
    }

    /// The holding of the key at the host, if one is known.
    pub fn holder(&self, key: KeyHash, host: HostId) -> Option<Holder> {
        self.entries(key).of(host)
    }

    /// At most `limit` holders of the key; see [`Entries::sample`].
    pub(crate) fn holders(
        &self,
        key: KeyHash,
        limit: usize,
        random: u32,
    ) -> impl Iterator<Item = Holder> + '_ {
        self.entries(key).sample(limit, random)
    }

    /// The holders of the key.
    pub(crate) fn entries(&self, key: KeyHash) -> Entries<'_> {
        let shard = self
            .shards
            .get(shard_of(key, self.shards.len() as u32) as usize)
            .map(|shard| &*shard.0);
        let entries = shard
            .and_then(|shard| shard.holders.get(shard.entries(key)))
            .unwrap_or_default();
        Entries { shard, entries }
    }
}

/// The holders of one key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entries<'a> {
    shard: Option<&'a Columns>,
    entries: &'a [u32],
}

impl<'a> Entries<'a> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The holding of this host, if one is known. It looks at every holder: not for each host of a decision.
    pub(crate) fn of(self, host: HostId) -> Option<Holder> {
        let mut holders = self.sample(usize::MAX, 0);
        holders.find(|holder| holder.host == host)
    }

    /// At most `limit` of them. Where there are more, they start at the one that `random` points at, so
    /// that all of them get their turn.
    pub(crate) fn sample(self, limit: usize, random: u32) -> impl Iterator<Item = Holder> + 'a {
        let entries = self.entries;
        let start = if entries.len() > limit {
            crate::key::scale(random, entries.len())
        } else {
            0
        };
        let (tail, head) = entries.split_at_checked(start).unwrap_or_default();
        head.iter()
            .chain(tail)
            .take(limit)
            .filter_map(move |entry| self.shard?.holder(*entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(keys: &[u64], ends: &[u32], holders: &[u32]) -> Result<CacheShard, ShardError> {
        let hosts = vec![HostId(1), HostId(2)];
        CacheShard::new(0, 2, hosts, keys.to_vec(), ends.to_vec(), holders.to_vec())
    }

    #[test]
    fn holders_of_a_key_are_those_between_its_ends() {
        let mut index = CacheIndex::default();
        index.resize(2);
        index.set(0, shard(&[5, 9], &[1, 3], &[2, 0, 3]).unwrap());
        let holders = |key| index.holders(KeyHash(key), 16, 0).collect::<Vec<_>>();
        let known = |host| Holder {
            host: HostId(host),
            assumed: false,
        };
        assert_eq!(holders(5), [known(2)]);
        let bytes = shard(&[5, 9], &[1, 3], &[2, 0, 3]).unwrap().bytes();
        assert_eq!(bytes, 2 * 8 + 2 * 8 + 2 * 4 + 3 * 4);
        assert_eq!(
            holders(9),
            [
                known(1),
                Holder {
                    host: HostId(2),
                    assumed: true
                }
            ]
        );
        assert_eq!(holders(7), []);
        assert_eq!(holders(u64::MAX), []);
        assert_eq!(
            index.holders(KeyHash(9), 1, u32::MAX).next().unwrap().host,
            HostId(2)
        );
    }

    #[test]
    fn shards_of_an_index_that_rests_live_as_long_as_others_keep_them() {
        let mut index = CacheIndex::default();
        index.resize(2);
        let [kept, gone, newer] = [5, 9, 7].map(|key| shard(&[key], &[1], &[0]).unwrap());
        index.set(0, kept.clone());
        index.set(1, gone);
        // Twice is as once.
        index.rest();
        index.rest();
        assert!(index.is_empty());
        assert_eq!(Arc::strong_count(&kept.0), 1);
        let newest = |number| (number == 1).then(|| newer.clone());
        index.wake(newest);
        index.wake(|_| panic!("it is awake"));
        assert_eq!(index.shards, [kept.clone(), newer.clone()]);
        // What nobody has any more, and another number of shards.
        index.set(1, shard(&[9], &[1], &[0]).unwrap());
        index.rest();
        index.wake(|_| None);
        assert_eq!(index.shards, [kept, CacheShard::default()]);
        index.rest();
        // Replaced while it rests.
        index.set(0, CacheShard::default());
        index.wake(newest);
        assert_eq!(index.shards[0], CacheShard::default());
        index.rest();
        index.resize(1);
        index.wake(newest);
        assert!(index.is_empty());
    }

    #[test]
    fn a_malformed_shard_is_refused_with_the_place() {
        let errors = [
            (
                shard(&[9, 5], &[1, 2], &[0, 0]),
                "keys[1]: not above its predecessor",
            ),
            (
                shard(&[5, 5], &[1, 2], &[0, 0]),
                "keys[1]: not above its predecessor",
            ),
            (
                shard(&[1 << 63], &[1], &[0]),
                "keys[0]: belongs to shard 1, not to 0 of 2",
            ),
            (shard(&[5], &[], &[]), "holders_end: 0 entries for 1 keys"),
            (
                shard(&[5, 6], &[2, 1], &[0, 2]),
                "holders_end[1]: below its predecessor or beyond the 2 holders",
            ),
            (
                shard(&[5], &[3], &[0]),
                "holders_end[0]: below its predecessor or beyond the 1 holders",
            ),
            (
                shard(&[5], &[1], &[0, 0]),
                "holders: 1 entries belong to no key",
            ),
            (shard(&[5], &[1], &[4]), "holders[0]: host 2 of 2"),
        ];
        for (result, expected) in errors {
            assert_eq!(result.unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn the_top_bits_of_the_hash_select_the_shard() {
        assert_eq!(shard_of(KeyHash(u64::MAX), 16), 15);
        assert_eq!(shard_of(KeyHash(1 << 60), 16), 1);
        assert_eq!(shard_of(KeyHash(u64::MAX), 1), 0);
        assert_eq!(shard_of(KeyHash(u64::MAX), 0), 0);
    }
}
