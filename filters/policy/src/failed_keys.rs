// SPDX-License-Identifier: Apache-2.0
//! Which keys failed where of late: a request that fails wherever it goes is no host's fault.
//!
//! ```text
//!  a key's failures at one host, in a row:   1, 2   count against the host
//!                                            3 ...  do not, but where the request is the trial of a host that is
//!                                                   out; they go elsewhere for 1 s, doubled to 30 s, and one
//!                                                   tries again
//!  2 or more at each of two hosts:           the key is at fault: nothing of it counts, it goes wherever it likes
//! ```
//! A good answer to the key ends what is remembered of it at that host; so do 10 s. So one key takes no host out
//! ([`crate::health`] wants five failures), and a host that fails is found out by three keys. Where it gets fewer these
//! leave it by themselves.

use std::time::Duration;

use crate::health::{BASE, MOST};
use crate::{HostId, KeyHash, Keys};

/// Of one key at one host so many failures in a row count against the host.
const COUNT: u32 = 2;
/// So many, and the key's requests go elsewhere.
const TURN_AWAY: u32 = COUNT + 1;
/// So long a failure is remembered: as long as a host's are looked at together.
const LIFETIME: Duration = Duration::from_secs(10);
/// Keys and hosts remembered, the newest. A failing host is out before it has failed so many; who sends more keys
/// that fail makes each of them count twice at a host, as any that are different.
const MOST_REMEMBERED: usize = 32;

/// Who is to blame for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The host, or so it may be; whether the key's last request there had not failed, as far as is remembered.
    Host { is_first: bool },
    /// The host, where the request was its trial: the key has failed there before, which was counted, and is not
    /// known to fail elsewhere.
    HostOnTrial,
    /// Nobody who could be told: the request fails everywhere.
    Nobody,
}

#[derive(Clone, Copy, Debug)]
struct Failed {
    key: KeyHash,
    host: HostId,
    /// Failures in a row. What ends while the key is turned away adds none.
    count: u32,
    /// The last one.
    at: Duration,
    turned_away_until: Duration,
    /// After that one request was let through, which has not failed so far.
    trial: bool,
}

impl Failed {
    fn is(&self, key: KeyHash, host: HostId) -> bool {
        self.key == key && self.host == host
    }

    fn is_over(&self, now: Duration) -> bool {
        now.saturating_sub(self.at.max(self.turned_away_until)) > LIFETIME
    }
}

/// The keys of one cluster that failed of late. Of several keys of a request the last one counts: who has it has all.
#[derive(Clone, Debug, Default)]
pub(crate) struct FailedKeys(Vec<Failed>);

impl FailedKeys {
    /// Nearly always.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A request has failed at a host.
    pub(crate) fn failed(&mut self, keys: &Keys, host: HostId, now: Duration) -> Blame {
        let Some(key) = keys.last() else {
            return Blame::Host { is_first: true };
        };
        self.forget(now);
        let known = self.0.iter_mut().find(|failed| failed.is(key, host));
        let count = match known {
            Some(failed) => {
                failed.at = now;
                if failed.trial || failed.turned_away_until <= now {
                    failed.trial = false;
                    failed.count = failed.count.saturating_add(1);
                    if let Some(doubled) = failed.count.checked_sub(TURN_AWAY) {
                        let time = BASE.saturating_mul(1 << doubled.min(8)).min(MOST);
                        failed.turned_away_until = now.saturating_add(time);
                    }
                }
                failed.count
            }
            None => {
                self.remember(Failed {
                    key,
                    host,
                    count: 1,
                    at: now,
                    turned_away_until: Duration::ZERO,
                    trial: false,
                });
                1
            }
        };
        match count {
            _ if self.is_at_fault(key) => Blame::Nobody,
            0..=COUNT => Blame::Host {
                is_first: count == 1,
            },
            _ => Blame::HostOnTrial,
        }
    }

    /// A request is sent to a host: where its key was turned away it is a trial, and no other goes there meanwhile.
    pub(crate) fn assigned(&mut self, keys: &Keys, host: HostId, now: Duration) {
        let Some(key) = keys.last() else { return };
        let failed = self.0.iter_mut().find(|failed| failed.is(key, host));
        if let Some(failed) = failed
            && failed.count >= TURN_AWAY
            && failed.turned_away_until <= now
        {
            failed.trial = true;
            failed.turned_away_until = now.saturating_add(MOST);
        }
    }

    /// A request was answered well.
    pub(crate) fn did_well(&mut self, keys: &Keys, host: HostId) {
        if let Some(key) = keys.last() {
            self.0.retain(|failed| !failed.is(key, host));
        }
    }

    /// Whether the request is better sent to others; one of the most important after a single failure.
    pub(crate) fn turns_away(
        &self,
        keys: &Keys,
        host: HostId,
        is_important: bool,
        now: Duration,
    ) -> bool {
        let Some(key) = keys.last() else { return false };
        let failed = self.0.iter().find(|failed| failed.is(key, host));
        let is_turned_away = failed.is_some_and(|failed| {
            failed.turned_away_until > now || is_important && failed.at + BASE > now
        });
        is_turned_away && !self.is_at_fault(key)
    }

    /// Forgets what was long ago.
    pub(crate) fn forget(&mut self, now: Duration) {
        self.0.retain(|failed| !failed.is_over(now));
    }

    /// Whether the key failed wherever it was sent: more than once at more than one host.
    fn is_at_fault(&self, key: KeyHash) -> bool {
        let often = |failed: &&Failed| failed.key == key && failed.count >= COUNT;
        self.0.iter().filter(often).count() > 1
    }

    fn remember(&mut self, failed: Failed) {
        if self.0.len() == MOST_REMEMBERED {
            let ages = self.0.iter().enumerate();
            if let Some((oldest, _)) = ages.min_by_key(|(_, failed)| failed.at) {
                self.0.swap_remove(oldest);
            }
        }
        self.0.push(failed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Duration = Duration::from_secs(100);
    const A: HostId = HostId(1);
    const B: HostId = HostId(2);

    fn key(number: u64) -> Keys {
        KeyHash(number).into()
    }

    #[test]
    fn a_key_counts_twice_at_a_host_and_then_goes_elsewhere_for_a_while() {
        let mut failed = FailedKeys::default();
        let first = |is_first| Blame::Host { is_first };
        assert_eq!(failed.failed(&key(1), A, NOW), first(true));
        assert_eq!(failed.failed(&key(1), A, NOW), first(false));
        assert!(!failed.turns_away(&key(1), A, false, NOW));
        assert!(failed.turns_away(&key(1), A, true, NOW), "an important one");
        let mut now = NOW;
        for wait in [1, 2, 4, 8, 16, 30, 30] {
            for _ in 0..5 {
                assert_eq!(failed.failed(&key(1), A, now), Blame::HostOnTrial);
            }
            let end = now + Duration::from_secs(wait);
            assert!(failed.turns_away(&key(1), A, false, end - Duration::from_millis(1)));
            assert!(!failed.turns_away(&key(1), A, false, end));
            now = end;
        }
        assert!(!failed.turns_away(&key(1), B, false, NOW));
        failed.did_well(&key(1), A);
        assert!(failed.is_empty());
    }

    #[test]
    fn a_key_that_fails_twice_at_two_hosts_is_at_fault_until_it_has_not_for_ten_seconds() {
        let mut failed = FailedKeys::default();
        for host in [A, B, A, A, B] {
            failed.failed(&key(1), host, NOW);
        }
        assert!(!failed.turns_away(&key(1), A, false, NOW));
        assert_eq!(failed.failed(&key(1), HostId(3), NOW), Blame::Nobody);
        let later = NOW + Duration::from_secs(12);
        assert_ne!(failed.failed(&key(1), A, later), Blame::Nobody);
    }

    #[test]
    fn one_request_tries_a_host_again_and_no_other_meanwhile() {
        let mut failed = FailedKeys::default();
        for _ in 0..3 {
            failed.failed(&key(1), A, NOW);
        }
        let now = NOW + Duration::from_secs(1);
        assert!(!failed.turns_away(&key(1), A, false, now));
        failed.assigned(&key(1), A, now);
        let later = now + Duration::from_secs(20);
        assert!(failed.turns_away(&key(1), A, false, later), "on its way");
        failed.failed(&key(1), A, later);
        assert!(failed.turns_away(&key(1), A, false, later + Duration::from_millis(1_999)));
        assert!(!failed.turns_away(&key(1), A, false, later + Duration::from_secs(2)));
    }

    #[test]
    fn requests_without_a_key_always_count() {
        let mut failed = FailedKeys::default();
        for _ in 0..10 {
            let blame = failed.failed(&Keys::default(), A, NOW);
            assert_eq!(blame, Blame::Host { is_first: true });
        }
        assert!(failed.is_empty());
    }

    proptest! {
        #[test]
        fn what_is_remembered_has_an_end(
            failures in prop::collection::vec((0u64..50, 0u64..4, 0u64..200), 0..200),
        ) {
            let (mut failed, mut now) = (FailedKeys::default(), NOW);
            for (name, host, wait) in failures {
                now += Duration::from_millis(wait);
                failed.failed(&key(name), HostId(host), now);
                prop_assert!(failed.0.len() <= MOST_REMEMBERED);
            }
            failed.forget(now + MOST + LIFETIME + Duration::from_millis(1));
            prop_assert!(failed.is_empty());
        }
    }
}
