// SPDX-License-Identifier: Apache-2.0
//! Which identity may do what. Pure.
//!
//! What no rule allows is denied. Rules add up: an identity may do what any rule that fits it says.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use weir_policy::{Rank, USERS};
use weir_tables::v1;

/// What a rule can allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// To be told the hosts of a cluster, their load and their levels.
    Tables,
    /// To be told which host has which key.
    Keys,
    /// To say what was sent to the hosts of a cluster.
    Report,
    /// To say how much a host has, as the governor of its node, and to be told its level.
    Capacity,
    /// To be another weir-control: it is told everything, and passes on what others say in their names.
    Replica,
}

impl What {
    /// All there are.
    pub const ALL: [Self; 5] = [
        Self::Tables,
        Self::Keys,
        Self::Report,
        Self::Capacity,
        Self::Replica,
    ];

    /// Its name in the configuration and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tables => "tables",
            Self::Keys => "keys",
            Self::Report => "report",
            Self::Capacity => "capacity",
            Self::Replica => "replica",
        }
    }
}

/// The rules, of which there is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization(pub Vec<Rule>);

/// What some identities may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Whose.
    pub identity: Pattern,
    /// Where.
    pub clusters: Clusters,
    /// What.
    pub what: BTreeSet<What>,
    /// Whose capacity; absent: every host's of the clusters.
    pub hosts: Option<Vec<Place>>,
    /// The most important class that requests count as, whatever is reported of them.
    pub max_priority: u8,
}

/// Fits an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Everybody's.
    Any,
    /// This one alone.
    Exact(String),
    /// Those that begin with this, which ends in a slash, and go on.
    Under(String),
}

impl Pattern {
    /// `*`, a whole identity, or one that ends in `/*`. The error is the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let visible = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        let (front, is_under) = match text.strip_suffix("/*") {
            Some(front) => (front, true),
            None => (text, false),
        };
        // `spiffe://*` would be every identity of every trust domain.
        let is_whole = !front.is_empty()
            && !front.ends_with('/')
            && !front.ends_with(':')
            && !front.contains('*');
        match (text, visible && is_whole) {
            ("*", _) => Ok(Self::Any),
            (_, true) if is_under => Ok(Self::Under(format!("{front}/"))),
            (_, true) => Ok(Self::Exact(text.to_owned())),
            _ => Err(format!(
                "{text:?} is not *, a SPIFFE id or DNS name, or the beginning of an id with /* at its end"
            )),
        }
    }

    fn fits(&self, identity: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(whole) => whole == identity,
            Self::Under(front) => identity
                .strip_prefix(front.as_str())
                .is_some_and(|rest| !rest.is_empty()),
        }
    }
}

/// Some clusters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clusters {
    /// These.
    Named(BTreeSet<String>),
    /// All, also those to come.
    All,
}

impl Clusters {
    fn none() -> Self {
        Self::Named(BTreeSet::new())
    }

    /// Whether it is one of them.
    pub fn have(&self, cluster: &str) -> bool {
        match self {
            Self::Named(names) => names.contains(cluster),
            Self::All => true,
        }
    }

    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        matches!(self, Self::Named(names) if names.is_empty())
    }

    fn and(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Named(mut ours), Self::Named(theirs)) => {
                ours.extend(theirs.iter().cloned());
                Self::Named(ours)
            }
            _ => Self::All,
        }
    }
}

impl Serialize for Clusters {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Named(names) => names.serialize(serializer),
            Self::All => ["*"].serialize(serializer),
        }
    }
}

/// A machine, or one port of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Every host at this address.
    Machine(IpAddr),
    /// One host.
    Host(SocketAddr),
}

impl Place {
    /// `ip` or `ip:port`.
    pub fn parse(text: &str) -> Option<Self> {
        let machine = text.parse().map(Self::Machine);
        machine.or_else(|_| text.parse().map(Self::Host)).ok()
    }

    fn has(self, host: &str) -> bool {
        host.parse().is_ok_and(|host: SocketAddr| match self {
            Self::Machine(ip) => ip == host.ip(),
            Self::Host(place) => place == host,
        })
    }
}

/// What an identity is told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sight {
    /// Of these it is told the hosts.
    pub tables: Clusters,
    /// Of these it is told the keys.
    pub keys: Clusters,
}

impl Authorization {
    fn of<'a>(&'a self, identity: &'a str, what: What) -> impl Iterator<Item = &'a Rule> {
        self.0
            .iter()
            .filter(move |rule| rule.what.contains(&what) && rule.identity.fits(identity))
    }

    /// Where an identity may do it.
    pub fn clusters(&self, identity: &str, what: What) -> Clusters {
        let rules = self.of(identity, what);
        rules.fold(Clusters::none(), |all, rule| all.and(&rule.clusters))
    }

    /// Whether it is another weir-control.
    pub fn is_replica(&self, identity: &str) -> bool {
        self.of(identity, What::Replica).next().is_some()
    }

    /// What it is told.
    pub fn sight(&self, identity: &str) -> Sight {
        if self.is_replica(identity) {
            let (tables, keys) = (Clusters::All, Clusters::All);
            return Sight { tables, keys };
        }
        Sight {
            tables: self.clusters(identity, What::Tables),
            keys: self.clusters(identity, What::Keys),
        }
    }

    /// Whether it may speak for a host's node.
    pub fn may_set(&self, identity: &str, cluster: &str, host: &str) -> bool {
        self.of(identity, What::Capacity).any(|rule| {
            let places = rule.hosts.as_ref();
            rule.clusters.have(cluster)
                && places.is_none_or(|places| places.iter().any(|place| place.has(host)))
        })
    }

    /// The most important class that it may claim in a cluster; none where it may not report on it.
    pub fn max_priority(&self, identity: &str, cluster: &str) -> Option<u8> {
        self.of(identity, What::Report)
            .filter(|rule| rule.clusters.have(cluster))
            .map(|rule| rule.max_priority)
            .min()
    }

    /// Takes away what an identity may not report. Says which clusters that were, and of the others which class is
    /// the most important that counts.
    pub fn sift(&self, identity: &str, report: &mut v1::Report) -> (BTreeSet<String>, Caps) {
        let (mut denied, mut caps) = (BTreeSet::new(), Caps::new());
        for record in &mut report.records {
            record.clusters.retain(|cluster| {
                let name = &cluster.cluster;
                match self.max_priority(identity, name) {
                    None => {
                        denied.insert(name.clone());
                        false
                    }
                    Some(0) => true,
                    Some(class) => {
                        caps.insert(name.clone(), class);
                        true
                    }
                }
            });
        }
        (denied, caps)
    }
}

/// By cluster, the most important class that counts; absent: all do.
pub type Caps = BTreeMap<String, u8>;

/// Counts what is more important than `class` at it, each user at its own place.
pub fn cap(counts: &mut BTreeMap<Rank, u64>, class: u8) {
    let rest = counts.split_off(&Rank::new(class, 0));
    for (rank, count) in std::mem::replace(counts, rest) {
        let user = (rank.number() % USERS) as u8;
        let sum = counts.entry(Rank::new(class, user)).or_default();
        *sum = sum.saturating_add(count);
    }
}

#[cfg(test)]
mod tests;
