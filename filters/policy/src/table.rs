// SPDX-License-Identifier: Apache-2.0
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::hash::BuildHasherDefault;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::hashed::AsIs;
use crate::holding::{LONGEST_HOLD, MAX_HELD};
use crate::key::{scale, split_mix};
use crate::ranked::MAX_RANKED;
use crate::{Cost, Hedging, Holding, Host, HostId, KeyHash, Keys, Overload, Selection};

/// The most hosts in one table, to bound memory: 39,900 are tried in a mesh.
pub const MAX_HOSTS: usize = 40_000;
/// The most zones that the hosts of one table are in.
pub const MAX_ZONES: usize = 256;
/// The most shards that a cluster's cache contents are split into.
pub const MAX_CACHE_SHARDS: u32 = 1024;
/// So that the share of keys that is steered has nothing to do with the hosts that they hash to.
const STEER_SALT: u64 = 0x5745_4952_5354_4552;

/// What hosts do, and so what delays a request there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Serves {
    /// Jobs that hold cores.
    #[default]
    Jobs,
    /// Prompts, one after another, as engines of language models do: answers are written beside that.
    Prompts,
}

/// How one cluster's hosts are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The choice of hosts that a request may go to.
    pub overload: Overload,
    /// The choice among those.
    pub selection: Selection,
    /// What delays a request at a host.
    pub serves: Serves,
    /// For how long a key is assumed cached at the host it was last sent to.
    pub assumed_cached: Duration,
    /// Load figures older than this are ignored.
    pub stale_after: Duration,
    /// How many hosts a decision names, best first: 1 to [`MAX_RANKED`].
    pub ranked_hosts: usize,
    /// Mean of the jittered time after which a shed request may be tried again.
    pub retry_after: Duration,
    /// For how long requests wait for a host.
    pub holding: Holding,
    /// When a request is tried at a second host.
    pub hedging: Hedging,
    /// Fewer hosts than this share of all, in percent, are too few to take the whole load: 0 to 100.
    pub panic_threshold: u32,
    /// The check of the cluster's salt ([`Salt::check`](crate::Salt::check)); none: its keys have no salt.
    pub salt_check: Option<KeyHash>,
    /// Of so many percent of the requests the choice is carried out; of the others it is only made. 0 to 100.
    pub steer_percent: u32,
    /// Of so many requests one leaves a receipt; 0: none does.
    pub receipt_every: u32,
    /// A second choice, which is only made, and only of requests that leave a receipt.
    pub beside: Option<Selection>,
    /// By how much sooner a request has to be done for another zone than its caller's: what crossing takes, and what it
    /// costs, told as time. Zero: zones make no difference. Only `estimate` goes by it.
    pub crossing: Duration,
}

impl Policy {
    /// Whether choices go by what is expected of each request, or are to be compared by it.
    pub fn estimates(&self) -> bool {
        let is_chosen = self.selection == Selection::Estimate || self.beside.is_some();
        is_chosen || self.overload.estimates()
    }

    /// Whether any choice is made by this selection.
    pub(crate) fn selects_by(&self, selection: Selection) -> bool {
        self.selection == selection || self.beside == Some(selection)
    }

    /// Whether the choice for a request with these keys is carried out. A key's requests stay together; those without
    /// one are drawn by a uniform number.
    pub fn steers(&self, keys: &Keys, random: u32) -> bool {
        if self.steer_percent >= 100 {
            return true;
        }
        let draw = match keys.as_slice().first() {
            Some(KeyHash(key)) => (split_mix(&mut key.wrapping_add(STEER_SALT)) >> 32) as u32,
            None => random,
        };
        scale(draw, 100) < self.steer_percent as usize
    }

    /// Whether a request leaves a receipt, by a uniform number.
    pub fn leaves_receipt(&self, random: u32) -> bool {
        self.receipt_every > 0 && scale(random, self.receipt_every as usize) == 0
    }

    /// Whether `left` of `all` hosts are too few to leave the others out. What says so of them is then as likely to
    /// be wrong as they are, and those that are left would drown.
    pub fn panics(&self, left: usize, all: usize) -> bool {
        let (left, all) = (left as u64, all as u64);
        100 * left < u64::from(self.panic_threshold) * all
    }

    fn check(&self) -> Result<(), TableError> {
        if !(1..=MAX_RANKED).contains(&self.ranked_hosts) {
            return Err(TableError::BadRankedHosts {
                count: self.ranked_hosts,
            });
        }
        self.holding.check()?;
        self.hedging.check()?;
        for selection in std::iter::once(self.selection).chain(self.beside) {
            if let Selection::HotCold { permille } = selection
                && permille > 1000
            {
                return Err(TableError::BadQuantile { permille });
            }
        }
        if self.panic_threshold > 100 {
            return Err(TableError::BadPanicThreshold {
                percent: self.panic_threshold,
            });
        }
        if self.steer_percent > 100 {
            return Err(TableError::BadSteerPercent {
                percent: self.steer_percent,
            });
        }
        Ok(())
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            overload: Overload::None,
            serves: Serves::Jobs,
            // The one that leaves a host with the data when to wait there costs more than to fetch them.
            selection: Selection::Estimate,
            // Two polls of a host's cache at the longest interval that document 001 uses (5 s, section 7.3).
            assumed_cached: Duration::from_secs(10),
            // One such interval.
            stale_after: Duration::from_secs(5),
            // The production system of document 001 tries three hosts (section 4.1).
            ranked_hosts: 3,
            retry_after: Duration::from_secs(1),
            holding: Holding::default(),
            hedging: Hedging::default(),
            // Envoy's healthy_panic_threshold.
            panic_threshold: 50,
            salt_check: None,
            steer_percent: 100,
            receipt_every: 1_000,
            beside: None,
            crossing: Duration::ZERO,
        }
    }
}

/// Why a table was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum TableError {
    #[error("hosts[{index}].address: {address:?} is not ip:port in its canonical form")]
    BadAddress { index: usize, address: String },
    #[error("hosts[{index}].address: {address:?} is in the table twice")]
    DuplicateHost { index: usize, address: String },
    #[error(
        "hosts[{index}].address: {address:?} comes before its predecessor in the order of bytes"
    )]
    UnsortedHosts { index: usize, address: String },
    #[error("hosts: {count} are more than the limit of {MAX_HOSTS}")]
    TooManyHosts { count: usize },
    #[error("zones: {count} are more than the limit of {MAX_ZONES}")]
    TooManyZones { count: usize },
    #[error("hosts[{index}].zone: {zone} is not in 0..={zones}, the number of zones")]
    BadZone {
        index: usize,
        zone: u32,
        zones: usize,
    },
    #[error("cache_shards: {count} is not 0 or a power of two up to {MAX_CACHE_SHARDS}")]
    BadShardCount { count: u32 },
    #[error("policy.ranked_hosts: {count} is not in 1..={MAX_RANKED}")]
    BadRankedHosts { count: usize },
    #[error("policy.holding.{field}: {hold:?} is over {LONGEST_HOLD:?}")]
    BadHold { field: &'static str, hold: Duration },
    #[error("policy.holding.max_held: {count} is not in 1..={MAX_HELD}")]
    BadMaxHeld { count: usize },
    #[error("policy.hedging.{field}: {value} is not in {least}..={most}")]
    BadHedging {
        field: &'static str,
        value: u32,
        least: u32,
        most: u32,
    },
    #[error("policy.hot_cold_permille: {permille} is not in 0..=1000")]
    BadQuantile { permille: u16 },
    #[error("policy.panic_percent: {percent} is not in 0..=100")]
    BadPanicThreshold { percent: u32 },
    #[error("policy.steer_percent: {percent} is not in 0..=100")]
    BadSteerPercent { percent: u32 },
}

/// The most of a text that an error repeats: a refusal has to fit into a message.
const MAX_SHOWN: usize = 64;

fn clipped(text: &str) -> String {
    text.chars().take(MAX_SHOWN).collect()
}

/// Whether it is `ip:port`, spelled as this library spells it.
fn is_canonical(address: &str) -> bool {
    /// The rest of a text when what was written is taken off its front.
    struct Rest<'a>(&'a str);

    impl Write for Rest<'_> {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            self.0 = self.0.strip_prefix(part).ok_or(fmt::Error)?;
            Ok(())
        }
    }

    let mut rest = Rest(address);
    let parsed = address.parse::<SocketAddr>();
    parsed.is_ok_and(|parsed| write!(rest, "{parsed}").is_ok() && rest.0.is_empty())
}

/// Places of hosts by identity.
type Index = HashMap<HostId, u32, BuildHasherDefault<AsIs>>;

/// The place of each host. Addresses that are not sorted, or there twice, are refused.
fn index(hosts: &[Host], ids: &[HostId]) -> Result<Index, TableError> {
    let mut index_of = Index::with_capacity_and_hasher(hosts.len(), Default::default());
    let mut previous = "";
    for (index, (host, id)) in hosts.iter().zip(ids).enumerate() {
        let address = host.address.as_str();
        // Only the canonical spelling: two spellings of one address would be two hosts.
        if !is_canonical(address) {
            return Err(TableError::BadAddress {
                index,
                address: clipped(address),
            });
        }
        // Two addresses with one identity (1 in 10¹⁰ for 40,000 hosts) are as good as one address twice.
        if address == previous || index_of.insert(*id, index as u32).is_some() {
            return Err(TableError::DuplicateHost {
                index,
                address: clipped(address),
            });
        }
        if address < previous {
            return Err(TableError::UnsortedHosts {
                index,
                address: clipped(address),
            });
        }
        previous = address;
    }
    Ok(index_of)
}

/// A checked host table. A clone shares the rows.
#[derive(Clone, Debug)]
pub struct Table {
    policy: Policy,
    hosts: Arc<[Host]>,
    ids: Arc<[HostId]>,
    index_of: Arc<Index>,
    cache_shards: u32,
    mean_cost: Cost,
    callers: u32,
    refetched: f64,
    zones: Arc<[String]>,
    /// The place of the caller's among them, counted from 1; 0 where that is not known.
    home: u32,
}

impl Table {
    /// Checks the parts: hosts sorted by address without a duplicate, addresses that parse, counts in range.
    pub fn new(policy: Policy, hosts: Vec<Host>, cache_shards: u32) -> Result<Self, TableError> {
        policy.check()?;
        if cache_shards > MAX_CACHE_SHARDS || cache_shards != 0 && !cache_shards.is_power_of_two() {
            return Err(TableError::BadShardCount {
                count: cache_shards,
            });
        }
        if hosts.len() > MAX_HOSTS {
            return Err(TableError::TooManyHosts { count: hosts.len() });
        }
        let ids: Arc<[HostId]> = hosts.iter().map(Host::id).collect();
        let index_of = index(&hosts, &ids)?;
        Ok(Self {
            policy,
            hosts: hosts.into(),
            ids,
            index_of: Arc::new(index_of),
            cache_shards,
            mean_cost: Cost::default(),
            callers: 0,
            refetched: 0.0,
            zones: Arc::default(),
            home: 0,
        })
    }

    /// The same table, with what requests cost on average.
    #[must_use]
    pub fn with_mean_cost(self, mean_cost: Cost) -> Self {
        Self { mean_cost, ..self }
    }

    /// The mean cost of requests; nothing where that is not known.
    pub fn mean_cost(&self) -> Cost {
        self.mean_cost
    }

    /// The expected cost of a request of whose keys nothing is known.
    pub fn expected_cost(&self) -> Cost {
        if self.mean_cost == Cost::default() {
            return Cost::UNTOLD;
        }
        self.mean_cost
    }

    /// The same table, with how many proxies choose by it.
    #[must_use]
    pub fn with_callers(self, callers: u32) -> Self {
        Self { callers, ..self }
    }

    /// How many proxies choose by it, as far as they report; 0 where that is not known.
    pub fn callers(&self) -> u32 {
        self.callers
    }

    /// The same table, where hosts had this part of what they fetch before, and evicted it.
    #[must_use]
    pub fn with_refetched(self, part: f64) -> Self {
        let refetched = part.clamp(0.0, 1.0);
        Self { refetched, ..self }
    }

    /// Of what hosts fetch, the part that they had before; 0 where that is not known.
    pub fn refetched(&self) -> f64 {
        self.refetched
    }

    /// The same table, with the names of the zones that its hosts are in.
    pub fn with_zones(self, zones: Vec<String>) -> Result<Self, TableError> {
        let count = zones.len();
        if count > MAX_ZONES {
            return Err(TableError::TooManyZones { count });
        }
        for (index, host) in self.hosts.iter().enumerate() {
            if host.zone as usize > count {
                return Err(TableError::BadZone {
                    index,
                    zone: host.zone,
                    zones: count,
                });
            }
        }
        Ok(Self {
            zones: zones.into(),
            ..self
        })
    }

    /// The same table, as a caller in this zone sees it; the empty name stands for a zone that is not known.
    #[must_use]
    pub fn seen_from(self, zone: &str) -> Self {
        let place = self.zones.iter().position(|other| other == zone);
        let home = match place {
            _ if zone.is_empty() => 0,
            Some(place) => place as u32 + 1,
            // No host is there, so all are elsewhere.
            None => u32::MAX,
        };
        Self { home, ..self }
    }

    /// The zones that its hosts are in.
    pub fn zones(&self) -> &[String] {
        &self.zones
    }

    /// Whether the host is in another zone than the caller, as far as both are known.
    #[inline]
    pub fn is_elsewhere(&self, host: &Host) -> bool {
        self.has_home() && host.zone != 0 && host.zone != self.home
    }

    /// Whether the caller's zone is known.
    #[inline]
    pub(crate) fn has_home(&self) -> bool {
        self.home != 0
    }

    /// How to choose.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The rows, sorted by address.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The identities of the rows.
    pub(crate) fn ids(&self) -> &[HostId] {
        &self.ids
    }

    /// How many shards the cluster's cache contents are split into; 0 where nothing is known of any cache.
    pub fn cache_shards(&self) -> u32 {
        self.cache_shards
    }

    /// The row with this index.
    pub fn host(&self, index: u32) -> Option<&Host> {
        self.hosts.get(index as usize)
    }

    /// The index of the host's row.
    pub fn index_of(&self, host: HostId) -> Option<u32> {
        self.index_of.get(&host).copied()
    }
}
