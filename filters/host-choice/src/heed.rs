// SPDX-License-Identifier: Apache-2.0
//! Whether Envoy sends requests where the filter says. It does not where the cluster lacks the `override_host`
//! policy, or where the table names other addresses than Envoy's endpoints have.
//!
//! ```text
//!  answered at the first attempt ── by the host named first ──────────────────────────> heeded
//!        └── by another ── the named one has answered of late, or the other is in no table ──> a miss that counts
//!                             └── else Envoy does not have it (yet, or any more) ─────────> says nothing
//! ```
//! 16 misses that count within 64 answers: not heeded, until there were 64 answers with fewer. Where Envoy draws one
//! of n hosts, a third of the answers or more are such misses.

use std::collections::{BTreeMap, VecDeque};

use weir_policy::HostId;

/// So many misses ...
const MISSES: usize = 16;
/// ... within so many answers mean that choices are not heeded.
const ANSWERS: u32 = 64;
/// Misses that count of a host between two of its answers. A host that leaves Envoy before it leaves the table is
/// named on and on: of fewer than eight at a time that is no sign.
const MISSES_OF_A_HOST: u32 = 2;
/// Hosts that are remembered; beyond them all are forgotten.
const MAX_HOSTS: usize = 4096;

/// The misses of late.
#[derive(Clone, Debug, Default)]
pub struct Heed {
    /// How many answers there had been at each, oldest first.
    misses: VecDeque<u32>,
    named: BTreeMap<HostId, Named>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Named {
    answers: u32,
    misses: u32,
}

impl Heed {
    /// At its first attempt a request was answered by another host than the one named first, which has answered
    /// `answers_of_named` requests of `answers` in all. Says whether that counts. `is_known`: the other host is in the
    /// table.
    pub fn missed(
        &mut self,
        named: HostId,
        answers_of_named: u32,
        is_known: bool,
        answers: u32,
    ) -> bool {
        if is_known && !self.is_sign(named, answers_of_named) {
            return false;
        }
        if self.misses.len() == MISSES {
            self.misses.pop_front();
        }
        self.misses.push_back(answers);
        true
    }

    /// Whether Envoy sends requests where the filter says, after so many answers in all.
    pub fn is_heeded(&self, answers: u32) -> bool {
        let all = self.misses.len() == MISSES;
        let oldest = self.misses.front().filter(|_| all);
        oldest.is_none_or(|oldest| answers.wrapping_sub(*oldest) >= ANSWERS)
    }

    fn is_sign(&mut self, named: HostId, answers: u32) -> bool {
        if self.named.len() >= MAX_HOSTS && !self.named.contains_key(&named) {
            self.named.clear();
        }
        let known = self.named.entry(named).or_default();
        if known.answers != answers {
            *known = Named { answers, misses: 0 };
        }
        let counts = answers > 0 && known.misses < MISSES_OF_A_HOST;
        known.misses += u32::from(counts);
        counts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Requests for hosts by number, and how many each has answered.
    struct Proxy {
        heed: Heed,
        answers: Vec<u32>,
    }

    impl Proxy {
        fn of(hosts: usize) -> Self {
            Self {
                heed: Heed::default(),
                answers: vec![0; hosts],
            }
        }

        fn request(&mut self, named: usize, answers: usize) {
            let all = self.answers.iter().sum();
            if named != answers {
                let id = HostId(named as u64);
                self.heed.missed(id, self.answers[named], true, all);
            }
            self.answers[answers] += 1;
        }

        fn is_heeded(&self) -> bool {
            self.heed.is_heeded(self.answers.iter().sum())
        }
    }

    proptest! {
        #[test]
        fn an_envoy_that_draws_hosts_is_told_from_one_that_does_not(
            hosts in 2usize..20, draws in prop::collection::vec(any::<(u32, u32)>(), 400),
        ) {
            let mut proxy = Proxy::of(hosts);
            let mut told = Vec::new();
            for (named, answers) in &draws {
                proxy.request(*named as usize % hosts, *answers as usize % hosts);
                told.push(!proxy.is_heeded());
            }
            // Of two hosts half of the draws are right, and by chance enough of them for a moment.
            let late = told[200..].iter().filter(|told| **told).count();
            prop_assert!(late > 150, "{late} of 200");
            // Somebody sees to it.
            for (named, _) in &draws[..80] {
                proxy.request(*named as usize % hosts, *named as usize % hosts);
            }
            prop_assert!(proxy.is_heeded());
        }

        #[test]
        fn hosts_that_envoy_does_not_have_yet_or_any_more_are_no_sign(
            leaving in 0usize..8, coming in 0usize..20,
            named in prop::collection::vec(0usize..40, 500), gone_from in 0usize..500,
        ) {
            // The last ones are there from the beginning to the end.
            let mut proxy = Proxy::of(40);
            for (number, named) in named.into_iter().enumerate() {
                let is_gone = named < leaving && number >= gone_from;
                let is_to_come = (8..8 + coming).contains(&named);
                let answers = if is_gone || is_to_come { 39 } else { named };
                proxy.request(named, answers);
                prop_assert!(proxy.is_heeded());
            }
        }
    }

    #[test]
    fn answers_of_hosts_in_no_table_are_signs_whoever_was_named() {
        let mut heed = Heed::default();
        for number in 0..16 {
            assert!(heed.is_heeded(0));
            assert!(heed.missed(HostId(number % 2), 0, false, 0));
        }
        assert!(!heed.is_heeded(0));
        assert!(!heed.is_heeded(63));
        assert!(heed.is_heeded(64));
    }

    #[test]
    fn what_is_remembered_of_hosts_is_bounded() {
        let mut heed = Heed::default();
        for number in 0..3 * MAX_HOSTS as u64 {
            heed.missed(HostId(number), 1, true, 0);
            assert!(heed.named.len() <= MAX_HOSTS && heed.misses.len() <= MISSES);
        }
    }
}
