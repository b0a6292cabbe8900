// SPDX-License-Identifier: Apache-2.0
//! What was reported and not counted, by reason.

use std::collections::BTreeMap;

/// Why something that a proxy reported was not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refused {
    /// A record's deadline has passed: its VM is dead.
    Expired,
    /// A record more than `reports.max_vms`, or the second of a VM in one report.
    TooManyVms,
    /// A report of a proxy more than `reports.max_proxies`.
    TooManyProxies,
    /// A cluster that the configuration does not name.
    UnknownCluster,
    /// A host that has left its cluster's table, or of a cluster whose hosts are still to be found.
    HostAway,
    /// A host that is not in its cluster's table, nor was lately.
    UnknownHost,
    /// A rank that does not exist.
    UnknownRank,
    /// An assignment more than the filter keeps.
    TooManyAssignments,
    /// A request's cost more than the filter keeps.
    TooManySpent,
    /// A receipt that cannot be read, is too large, or is more than the filter keeps.
    BadReceipt,
    /// A counter more than `reports.max_rows`.
    TooManyRows,
    /// A record whose counters have risen by more than a VM can do in the time.
    Leap,
}

impl Refused {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Expired,
        Self::TooManyVms,
        Self::TooManyProxies,
        Self::UnknownCluster,
        Self::HostAway,
        Self::UnknownHost,
        Self::UnknownRank,
        Self::TooManyAssignments,
        Self::TooManySpent,
        Self::BadReceipt,
        Self::TooManyRows,
        Self::Leap,
    ];

    /// Its name in metrics, logs and `/tables`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::TooManyVms => "too_many_vms",
            Self::TooManyProxies => "too_many_proxies",
            Self::UnknownCluster => "unknown_cluster",
            Self::HostAway => "host_away",
            Self::UnknownHost => "unknown_host",
            Self::UnknownRank => "unknown_rank",
            Self::TooManyAssignments => "too_many_assignments",
            Self::TooManySpent => "too_many_spent",
            Self::BadReceipt => "bad_receipt",
            Self::TooManyRows => "too_many_rows",
            Self::Leap => "leap",
        }
    }

    /// A whole record was left out, not a part of one.
    pub fn is_record(self) -> bool {
        matches!(
            self,
            Self::Expired | Self::TooManyVms | Self::TooManyProxies
        )
    }

    /// Nobody need look: VMs end, and a host that leaves is reported until its last request has ended.
    pub fn is_usual(self) -> bool {
        matches!(self, Self::Expired | Self::HostAway)
    }
}

/// How often each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<Refused, u64>);

impl Tally {
    /// So many more.
    pub fn add(&mut self, reason: Refused, count: u64) {
        if count > 0 {
            let sum = self.0.entry(reason).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// All of another one more.
    pub fn add_all(&mut self, other: &Self) {
        other
            .iter()
            .for_each(|(reason, count)| self.add(reason, count));
    }

    /// How often this one.
    pub fn get(&self, reason: Refused) -> u64 {
        self.0.get(&reason).copied().unwrap_or(0)
    }

    /// Those that there are.
    pub fn iter(&self) -> impl Iterator<Item = (Refused, u64)> + '_ {
        self.0.iter().map(|(reason, count)| (*reason, *count))
    }

    /// Of those that somebody should look at.
    pub fn unusual(&self) -> u64 {
        let unusual = self.iter().filter(|(reason, _)| !reason.is_usual());
        unusual.fold(0, |sum, (_, count)| sum.saturating_add(count))
    }
}

/// `leap: 3, unknown_host: 1`.
impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, (reason, count)) in self.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{}: {count}", reason.as_str())?;
        }
        Ok(())
    }
}
