// SPDX-License-Identifier: Apache-2.0
//! A second try of a request that takes long, at another host, while the first goes on.
//!
//! Only where the other host has cores to spare: under load a second try costs somebody else's first, as
//! Primorac et al. show (*When to Hedge in Interactive Services*, NSDI 2021, LÆDGE). What is not known to be
//! idle is taken for busy. A second try at any load (Dean and Barroso, *The Tail at Scale*, 2013) is there to compare.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::standing::Clock;
use crate::{CLASSES, Cluster, HostId, Ranked, Request, TableError};

/// When a request is tried at a second host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hedging {
    /// When the first host has not answered for so long. Zero: never.
    pub after: Duration,
    /// Percent of the second host's cores that must be idle, and never less than one core; 0: none.
    pub idle_percent: u32,
    /// Requests of this many classes, the most important ones.
    pub classes: u32,
}

impl Default for Hedging {
    fn default() -> Self {
        Self {
            after: Duration::ZERO,
            // A host at three quarters of its cores still takes its own share without queuing.
            idle_percent: 25,
            classes: CLASSES.into(),
        }
    }
}

impl Hedging {
    /// Whether any request is ever tried at a second host.
    pub fn is_on(&self) -> bool {
        !self.after.is_zero()
    }

    pub(crate) fn check(&self) -> Result<(), TableError> {
        for (field, value, least, most) in [
            ("idle_percent", self.idle_percent, 0, 100),
            ("classes", self.classes, 1, CLASSES.into()),
        ] {
            if !(least..=most).contains(&value) {
                return Err(TableError::BadHedging {
                    field,
                    value,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }
}

/// Second tries that were permitted and are not over, by host. What all of them may need is not idle: without
/// this every request of a moment would count on the same spare core.
#[derive(Clone, Debug, Default)]
pub struct Hedges {
    /// Above zero.
    open: BTreeMap<HostId, u32>,
}

impl Hedges {
    /// As [`Cluster::hedge`], with the host that gets the second try. The permit counts as a job of that host
    /// until [`Hedges::ended`], which is called once for each; a try that runs may count twice meanwhile.
    pub fn permit(
        &mut self,
        cluster: &Cluster,
        ranked: &Ranked,
        request: &Request,
        now: Duration,
    ) -> Option<(HostId, Duration)> {
        let second = cluster.id(*ranked.as_slice().get(1)?)?;
        let open = self.open.get(&second).copied().unwrap_or(0);
        let after = cluster.hedge_beside(open, ranked, request, now)?;
        *self.open.entry(second).or_default() += 1;
        Some((second, after))
    }

    /// A second try is over, or will not come.
    pub fn ended(&mut self, second: HostId) {
        if let Some(open) = self.open.get_mut(&second) {
            *open -= 1;
            if *open == 0 {
                self.open.remove(&second);
            }
        }
    }
}

impl Cluster {
    /// After what time without an answer the second of these hosts gets the request too, where no other second
    /// try was permitted; none where it does not.
    pub fn hedge(&self, ranked: &Ranked, request: &Request, now: Duration) -> Option<Duration> {
        self.hedge_beside(0, ranked, request, now)
    }

    /// The same while so many second tries may come to the second host.
    fn hedge_beside(
        &self,
        open: u32,
        ranked: &Ranked,
        request: &Request,
        now: Duration,
    ) -> Option<Duration> {
        let policy = self.table()?.policy();
        let hedging = policy.hedging;
        if !hedging.is_on() || u32::from(request.rank.class()) >= hedging.classes {
            return None;
        }
        let second = *ranked.as_slice().get(1)?;
        let fresh = self
            .load(second)
            .is_some_and(|load| !load.is_stale(now, policy.stale_after));
        let standing = self.feedback.standing(second)?;
        let clock = Clock::new(now, policy.stale_after);
        if standing.is_suspect(clock) {
            return None;
        }
        if hedging.idle_percent == 0 {
            return Some(hedging.after);
        }
        if !fresh {
            return None;
        }
        let capacity = u64::from(self.table()?.host(second)?.capacity_millicores);
        let busy = (u64::from(standing.in_progress(clock)) + u64::from(open)) * 1000;
        let idle = capacity.saturating_sub(busy);
        let wanted = (capacity * u64::from(hedging.idle_percent) / 100).max(1000);
        (idle >= wanted).then_some(hedging.after)
    }
}
