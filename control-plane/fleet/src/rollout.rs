// SPDX-License-Identifier: Apache-2.0
//! Whether requests whose choice is carried out fare worse than those that are left to Envoy, while there are both.
//!
//! ```text
//!  reports ── shares that have risen ──> 64 groups of proxies ── each WINDOW: a vote of each ──> two in a row: withdrawn
//! ```
//! A proxy is in one group, by the hash of its name, so that one that lies moves one vote.

use std::time::Duration;

use weir_policy::KeyHash;

/// Between two votes. Two have to be lost in a row, and the first window may have begun before the policy did: it is
/// withdrawn within three of them.
pub const WINDOW: Duration = Duration::from_secs(8);
/// Requests that each share of a group needs for a vote: of fewer, one that fails would be five percent.
pub const LEAST: u64 = 20;
/// So much longer than the others they may take in the mean.
pub const SLOWER: f64 = 1.5;
/// So many percentage points more of them may fail, beside [`MORE_OFTEN`].
pub const MORE_FAIL: f64 = 0.05;
/// So many times as often they may fail.
pub const MORE_OFTEN: f64 = 2.0;

const GROUPS: usize = 64;

/// How requests of a share ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Requests that ended.
    pub ended: u64,
    /// Those with a status from 500 on, and those without an answer.
    pub failed: u64,
    /// Of those that neither failed nor were shed, together.
    pub duration_us: u64,
    /// Answered 429 by the filter: that is its work, and no fault.
    pub shed: u64,
}

impl Share {
    fn add(&mut self, other: Self) {
        self.ended = self.ended.saturating_add(other.ended);
        self.failed = self.failed.saturating_add(other.failed);
        self.duration_us = self.duration_us.saturating_add(other.duration_us);
        self.shed = self.shed.saturating_add(other.shed);
    }

    /// Requests that a host could have answered.
    fn sent(&self) -> u64 {
        self.ended.saturating_sub(self.shed)
    }

    fn failing(&self) -> f64 {
        self.failed as f64 / self.sent().max(1) as f64
    }

    /// Mean of those that were answered, in seconds; none where none was.
    pub fn mean(&self) -> Option<f64> {
        let answered = self.sent().saturating_sub(self.failed);
        (answered > 0).then(|| self.duration_us as f64 / answered as f64 / 1e6)
    }
}

/// Both shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// The choice was carried out.
    pub steered: Share,
    /// It was left to Envoy.
    pub left: Share,
}

impl Shares {
    /// As many more.
    pub fn add(&mut self, other: Self) {
        self.steered.add(other.steered);
        self.left.add(other.left);
    }

    fn is_enough(&self) -> bool {
        self.steered.sent() >= LEAST && self.left.sent() >= LEAST
    }

    /// By what measure those that are steered fare worse; none where they do not.
    pub fn worse(&self) -> Option<Worse> {
        let (steered, left) = (self.steered.failing(), self.left.failing());
        if steered > MORE_OFTEN * left + MORE_FAIL {
            return Some(Worse::Fail { steered, left });
        }
        let (steered, left) = (self.steered.mean()?, self.left.mean()?);
        (steered > SLOWER * left).then_some(Worse::Slow { steered, left })
    }
}

/// What is worse where requests are steered.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Worse {
    /// Parts of them that fail.
    Fail { steered: f64, left: f64 },
    /// Their mean duration, in seconds.
    Slow { steered: f64, left: f64 },
    /// Whoever built the tables before found that, and did not tell why.
    Before,
}

impl std::fmt::Display for Worse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fail { steered, left } => write!(
                f,
                "of requests that were steered {:.1} % failed, of the others {:.1} %",
                steered * 100.0,
                left * 100.0
            ),
            Self::Slow { steered, left } => write!(
                f,
                "requests that were steered took {:.1} ms in the mean, the others {:.1} ms",
                steered * 1e3,
                left * 1e3
            ),
            Self::Before => f.write_str(
                "it was withdrawn before this replica began to lead; the log of that time says why",
            ),
        }
    }
}

/// The votes on one cluster's policy.
#[derive(Clone, Debug, Default)]
pub struct Rollout {
    groups: Vec<Shares>,
    /// When the present window ends.
    ends: Option<Duration>,
    was_lost: bool,
}

impl Rollout {
    /// What a proxy's shares have risen by, while so many percent are steered. Of all or none there is nothing to
    /// compare, and filters do not count: who tells of it lies.
    pub fn add(&mut self, proxy: &str, risen: Shares, percent: u32) {
        if risen == Shares::default() || !(1..100).contains(&percent) {
            return;
        }
        let group = KeyHash::of(proxy.as_bytes()).0 as usize % GROUPS;
        self.groups.resize(GROUPS, Shares::default());
        if let Some(group) = self.groups.get_mut(group) {
            group.add(risen);
        }
    }

    /// Counts the votes where a window is over. Says what is worse where a second vote in a row is lost.
    pub fn judge(&mut self, now: Duration) -> Option<Worse> {
        let ends = *self.ends.get_or_insert(now + WINDOW);
        if now < ends {
            return None;
        }
        self.ends = Some(now + WINDOW);
        let groups = std::mem::take(&mut self.groups);
        let votes: Vec<Shares> = groups.into_iter().filter(Shares::is_enough).collect();
        let against: Vec<Worse> = votes.iter().filter_map(Shares::worse).collect();
        let is_lost = 2 * against.len() > votes.len();
        let was_lost = std::mem::replace(&mut self.was_lost, is_lost);
        if !(is_lost && was_lost) {
            return None;
        }
        let mut all = Shares::default();
        votes.into_iter().for_each(|shares| all.add(shares));
        all.worse().or(against.first().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(ended: u64, failed: u64, mean_ms: u64) -> Share {
        Share {
            ended,
            failed,
            duration_us: (ended - failed) * mean_ms * 1000,
            shed: 0,
        }
    }

    fn shares(steered: Share, left: Share) -> Shares {
        Shares { steered, left }
    }

    /// What comes of so many windows in which each of the proxies tells this.
    fn after(windows: u32, told: &[(&str, Shares)]) -> Option<Worse> {
        after_of(50, windows, told)
    }

    /// The same while so many percent are steered.
    fn after_of(percent: u32, windows: u32, told: &[(&str, Shares)]) -> Option<Worse> {
        let mut rollout = Rollout::default();
        rollout.judge(Duration::ZERO);
        (1..=windows).find_map(|window| {
            for (proxy, shares) in told {
                rollout.add(proxy, *shares, percent);
            }
            rollout.judge(window * WINDOW)
        })
    }

    #[test]
    fn a_policy_that_is_slower_or_fails_more_is_withdrawn_after_two_windows_and_no_other_is() {
        let good = share(100, 2, 10);
        for (bad, name) in [
            (
                share(100, 2, 16),
                "took 16.0 ms in the mean, the others 10.0 ms",
            ),
            (share(100, 10, 10), "10.0 % failed, of the others 2.0 %"),
        ] {
            let told = [("a", shares(bad, good))];
            assert_eq!(after(1, &told), None, "one window may be chance");
            let worse = after(2, &told).unwrap().to_string();
            assert!(worse.contains(name), "{worse}");
        }
        for fine in [share(100, 8, 10), share(100, 2, 14), share(100, 0, 1)] {
            assert_eq!(after(10, &[("a", shares(fine, good))]), None, "{fine:?}");
        }
    }

    #[test]
    fn what_is_shed_is_no_fault_and_few_requests_do_not_vote() {
        let shed = Share {
            shed: 80,
            ..share(100, 0, 2)
        };
        assert_eq!(after(10, &[("a", shares(shed, share(100, 0, 10)))]), None);
        let few = shares(share(LEAST - 1, 19, 0), share(1000, 0, 10));
        assert_eq!(after(10, &[("a", few)]), None);
    }

    #[test]
    fn where_all_are_steered_or_none_nobody_has_a_vote() {
        let lie = [("liar", shares(share(100, 100, 0), share(100, 0, 10)))];
        assert!(after_of(1, 3, &lie).is_some() && after_of(99, 3, &lie).is_some());
        assert_eq!((after_of(100, 9, &lie), after_of(0, 9, &lie)), (None, None));
    }

    #[test]
    fn one_liar_of_three_does_not_withdraw_a_policy_nor_keep_a_bad_one() {
        let fair = shares(share(50, 0, 10), share(50, 0, 10));
        let lie = shares(share(u64::MAX / 4, u64::MAX / 4, 0), share(1 << 40, 0, 0));
        let told = [("caller-1", fair), ("caller-2", fair), ("caller-3", lie)];
        assert_eq!(after(10, &told), None);
        let bad = shares(share(50, 50, 0), share(50, 0, 10));
        let praise = shares(share(1 << 40, 0, 1), share(1 << 40, 0, 100));
        let told = [("caller-1", bad), ("caller-2", bad), ("caller-3", praise)];
        assert!(after(2, &told).is_some());
    }
}
