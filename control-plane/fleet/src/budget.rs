// SPDX-License-Identifier: Apache-2.0
//! Whose cache contents are kept where memory is limited. Pure.
//!
//! Cache contents are what can be done without: choices go on without them. What moves levels and what
//! tables of hosts are made of is never given up for room.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_policy::{Claimant, Usage, fit};

/// What a cluster took when it was dropped is taken for half of that after so long, or it would never be tried again
/// whatever has become of it. Of our own choice.
const NEED_HALVES: Duration = Duration::from_secs(600);

/// Whether a cluster's cache contents are kept, for those who ask its hosts for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// They are not.
    pub dropped: bool,
    /// How often they were dropped: who asked before has to ask for everything again.
    pub drops: u64,
}

/// By cluster; one that is not there is kept.
pub type ByCluster = BTreeMap<String, Contents>;

/// The accounts of all clusters.
#[derive(Debug, Default)]
pub struct Budget {
    /// Absent: all is kept.
    limit: Option<usize>,
    /// Counted, and not to be dropped.
    fixed: usize,
    accounts: BTreeMap<String, Account>,
}

#[derive(Debug, Default)]
struct Account {
    bytes: usize,
    usage: Usage,
    contents: Contents,
    /// What it took when it was dropped.
    needs: usize,
    since: Duration,
}

impl Account {
    fn claimant(&self, now: Duration) -> Claimant {
        let halvings = now.saturating_sub(self.since).as_nanos() / NEED_HALVES.as_nanos();
        let halvings = u32::try_from(halvings).unwrap_or(u32::MAX);
        Claimant {
            bytes: match self.contents.dropped {
                true => self.needs.checked_shr(halvings).unwrap_or(0),
                false => self.bytes,
            },
            usage: self.usage.lately(now),
            kept: !self.contents.dropped,
        }
    }
}

impl Budget {
    /// Takes a limit, and what is counted beside cache contents.
    pub fn set(&mut self, limit: Option<usize>, fixed: usize) {
        (self.limit, self.fixed) = (limit, fixed);
    }

    /// What may be taken.
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// A cluster's contents count so many bytes now.
    pub fn holds(&mut self, cluster: &str, bytes: usize) {
        self.account(cluster).bytes = bytes;
    }

    /// Requests for a cluster were reported.
    pub fn used(&mut self, cluster: &str, requests: u64, now: Duration) {
        self.account(cluster).usage.add(requests, now);
    }

    fn account(&mut self, cluster: &str) -> &mut Account {
        if !self.accounts.contains_key(cluster) {
            let account = Account::default();
            self.accounts.insert(cluster.to_owned(), account);
        }
        self.accounts.entry(cluster.to_owned()).or_default()
    }

    /// Bytes that are counted.
    pub fn counted(&self) -> usize {
        let contents: usize = self.accounts.values().map(|account| account.bytes).sum();
        self.fixed + contents
    }

    /// Whether something has to be dropped.
    pub fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.counted() > limit)
    }

    /// Whether a cluster's contents are kept.
    pub fn contents(&self, cluster: &str) -> Contents {
        let account = self.accounts.get(cluster);
        account.map(|account| account.contents).unwrap_or_default()
    }

    /// The same of all clusters whose contents were ever dropped.
    pub fn by_cluster(&self) -> ByCluster {
        let dropped = self.accounts.iter();
        let dropped = dropped.filter(|(_, account)| account.contents.drops > 0);
        dropped
            .map(|(name, account)| (name.clone(), account.contents))
            .collect()
    }

    /// Forgets the clusters that are not there any more.
    pub fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.accounts.retain(|name, _| is_there(name));
    }

    /// Nobody has anything yet.
    pub fn begin(&mut self) {
        for account in self.accounts.values_mut() {
            account.bytes = 0;
            account.contents.dropped = false;
        }
    }

    /// Whose contents are to be dropped from now on, or are kept again.
    pub fn settle(&mut self, now: Duration) -> Vec<(String, Contents)> {
        let room = self
            .limit
            .map_or(usize::MAX, |limit| limit.saturating_sub(self.fixed));
        let accounts = self.accounts.values();
        let mut claimants: Vec<_> = accounts.map(|account| account.claimant(now)).collect();
        fit(&mut claimants, room);
        let mut changed = Vec::new();
        for ((name, account), Claimant { kept, .. }) in self.accounts.iter_mut().zip(claimants) {
            if account.contents.dropped != kept {
                continue;
            }
            account.contents.dropped = !kept;
            if !kept {
                account.contents.drops += 1;
                account.needs = std::mem::take(&mut account.bytes);
                account.since = now;
            }
            changed.push((name.clone(), account.contents));
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1000);

    fn budget(limit: usize, clusters: &[(&str, usize, u64)]) -> Budget {
        let mut budget = Budget::default();
        budget.set(Some(limit), 0);
        for (name, bytes, requests) in clusters {
            budget.holds(name, *bytes);
            budget.used(name, *requests, NOW);
        }
        budget
    }

    fn moves(budget: &mut Budget, now: Duration) -> Vec<(String, bool)> {
        let settled = budget.settle(now).into_iter();
        settled
            .map(|(name, contents)| (name, contents.dropped))
            .collect()
    }

    #[test]
    fn a_cluster_that_is_gone_takes_nothing() {
        let mut budget = budget(100, &[("stays", 60, 9), ("gone", 50, 1)]);
        budget.retain(|name| name == "stays");
        assert_eq!((budget.counted(), budget.is_over()), (60, false));
    }

    #[test]
    fn the_least_used_goes_first_and_comes_back_well_below_the_limit() {
        let mut budget = budget(100, &[("busy", 60, 9), ("idle", 50, 1)]);
        assert!(budget.is_over());
        assert_eq!(moves(&mut budget, NOW), [("idle".to_owned(), true)]);
        assert_eq!(budget.counted(), 60);
        // 40 are free, and 50 are wanted; 31 would leave 69 and be too close still.
        budget.holds("busy", 31);
        assert_eq!(moves(&mut budget, NOW), []);
        budget.holds("busy", 30);
        assert_eq!(moves(&mut budget, NOW), [("idle".to_owned(), false)]);
        let contents = Contents {
            dropped: false,
            drops: 1,
        };
        assert_eq!(budget.contents("idle"), contents);
    }

    #[test]
    fn what_is_larger_than_the_limit_is_tried_again_after_a_while_and_no_oftener() {
        let mut budget = budget(100, &[("huge", 300, 9)]);
        assert_eq!(moves(&mut budget, NOW), [("huge".to_owned(), true)]);
        assert_eq!(moves(&mut budget, NOW + NEED_HALVES), []);
        let later = NOW + 2 * NEED_HALVES;
        assert_eq!(moves(&mut budget, later), [("huge".to_owned(), false)]);
        budget.holds("huge", 101);
        assert_eq!(moves(&mut budget, later), [("huge".to_owned(), true)]);
        assert_eq!(moves(&mut budget, later), []);
    }

    #[test]
    fn what_is_not_dropped_leaves_less_room() {
        let mut budget = budget(100, &[("a", 50, 1)]);
        budget.set(Some(100), 60);
        assert_eq!(moves(&mut budget, NOW), [("a".to_owned(), true)]);
        budget.set(None, 60);
        assert_eq!(moves(&mut budget, NOW), [("a".to_owned(), false)]);
    }
}
