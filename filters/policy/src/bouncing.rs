// SPDX-License-Identifier: Apache-2.0
//! Hosts that bounce requests: one that would let a request wait longer than the next host named gives it back, before
//! anything of it is done, and the next one gets it.
//!
//! Many callers who know the same as of a moment ago choose the same host. What tells them apart is the host itself at
//! the moment of placement, as in Sparrow's late binding (Ousterhout et al., SOSP 2013, section 3.3). A bound for each
//! host, rather than "only if a core is idle", keeps a request where its data are as long as that is worth it, and no
//! request wanders through a fleet where all wait.

use std::time::Duration;

use crate::selection::{Candidates, Selection};
use crate::{Cluster, Ranked, Request};

/// Bounces are counted against requests for so long; then both begin again.
const WINDOW: Duration = Duration::from_secs(1);

/// Whether requests may still be given back: not where there were more bounces than requests of late, as then all hosts
/// are full and a bounce only adds to the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BounceBudget {
    since: Duration,
    requests: u32,
    bounces: u32,
}

impl BounceBudget {
    /// A request is sent. Says whether it may be given back.
    pub fn sent(&mut self, now: Duration) -> bool {
        if now.saturating_sub(self.since) >= WINDOW {
            *self = Self {
                since: now,
                ..Self::default()
            };
        }
        self.requests = self.requests.saturating_add(1);
        self.bounces <= self.requests
    }

    /// One was given back.
    pub fn bounced(&mut self) {
        self.bounces = self.bounces.saturating_add(1);
    }
}

impl Cluster {
    /// Tells `each` for how long the request may wait at each of these hosts in turn, until it would be done sooner at
    /// the next; the last one has no bound, nor has any before a host that is to be avoided. Nothing is told where
    /// that is not known: another selection than `estimate`, a stale table, a proxy that goes its own way, or hosts that
    /// refuse requests of this rank, as levels then see to who waits.
    pub fn may_wait(
        &self,
        ranked: &Ranked,
        request: &Request,
        now: Duration,
        each: impl FnMut(Duration),
    ) {
        let is_known = self.is_heeded() && !self.is_stale(now);
        let Some(table) = self.table().filter(|_| is_known) else {
            return;
        };
        let eligible = self.admission.admitting(request.rank);
        let all_admit = eligible.len() == self.admission.up().len();
        if table.policy().selection != Selection::Estimate || !all_admit {
            return;
        }
        let candidates = Candidates::new(self, table, (eligible, request), now);
        candidates.may_wait(ranked).for_each(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_may_be_given_back_in_a_second_with_more_bounces_than_requests() {
        let mut budget = BounceBudget::default();
        let now = Duration::from_secs(7);
        let bounce = |budget: &mut BounceBudget, times| (0..times).for_each(|_| budget.bounced());
        assert!(budget.sent(now));
        bounce(&mut budget, 2);
        assert!(budget.sent(now), "two of each");
        bounce(&mut budget, 2);
        assert!(!budget.sent(now), "four of three");
        assert!(budget.sent(now), "four of each");
        bounce(&mut budget, 1000);
        assert!(!budget.sent(now + WINDOW / 2));
        assert!(budget.sent(now + WINDOW), "another second");
    }
}
