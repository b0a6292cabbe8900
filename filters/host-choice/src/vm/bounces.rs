// SPDX-License-Identifier: Apache-2.0
//! Requests of this VM that hosts may give back.

use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::time::Duration;

use weir_policy::{BounceBudget, HostId, Keys, Load, Ranked};

use super::Vm;
use crate::host::{Host, LogLevel};
use crate::in_flight::RouteRequest;
use crate::tries::{Bounce, Tries};

/// For how long nothing is offered after a route did not retry what a host had given back.
const PAUSE: Duration = Duration::from_secs(60);

/// What this VM knows of its requests that hosts may give back.
#[derive(Default)]
pub(super) struct Bounces {
    /// Roots of attempts. Without one nothing is offered, as nobody here would learn of a bounce.
    pub(super) attempts: usize,
    tries: BTreeMap<u64, Weak<Tries>>,
    budget: BounceBudget,
    /// Nothing is offered until then.
    paused: Duration,
}

impl Bounces {
    /// Whether a request that is sent now may be given back.
    fn permits(&mut self, now: Duration) -> bool {
        let is_offered = self.attempts > 0 && now >= self.paused;
        is_offered && self.budget.sent(now)
    }

    /// Its attempts are over.
    pub(super) fn forget(&mut self, id: Option<u64>) {
        if let Some(id) = id {
            self.tries.remove(&id);
        }
    }
}

impl<H: Host> Vm<H> {
    /// Whether this proxy's attempts are looked at.
    pub(crate) fn sees_attempts(&self) -> bool {
        self.bounces.attempts > 0
    }

    /// For how long the request may wait at the first host, and the way on from there; none where all of it is that
    /// host's to wait for.
    pub(crate) fn offer(
        &mut self,
        route: &RouteRequest,
        hosts: &Ranked,
        now: Duration,
    ) -> Option<(Duration, Rc<Tries>)> {
        if !self.bounces.permits(now) {
            return None;
        }
        let cluster = &self.clusters.get(&*route.table)?.cluster;
        let ids = hosts.as_slice().iter().map(|host| cluster.id(*host));
        let mut hosts_and_bounds = ids
            .map(|id| Some((id?, None)))
            .collect::<Option<Vec<(HostId, Option<Duration>)>>>()?;
        let mut places = hosts_and_bounds.iter_mut();
        cluster.may_wait(hosts, &route.request, now, |bound| {
            if let Some((_, place)) = places.next() {
                *place = Some(bound);
            }
        });
        let (first, bound) = *hosts_and_bounds.first()?;
        let bound = bound?;
        let of = (&route.table, &route.request);
        let tries = Tries::new(self.random(), of, hosts_and_bounds, (first, now));
        self.bounces.tries.insert(tries.id, Rc::downgrade(&tries));
        Some((bound, tries))
    }

    /// The request's attempts are over.
    pub(super) fn forget(&mut self, tries: Option<Rc<Tries>>) {
        self.bounces.forget(tries.map(|tries| tries.id));
    }

    /// The request whose attempts have this name.
    pub(crate) fn tries(&self, id: u64) -> Option<Rc<Tries>> {
        self.bounces.tries.get(&id)?.upgrade()
    }

    /// A host gave the request of the attempt that began last back, perhaps with its load: the next one has it. Says
    /// whether that was the host's to do.
    pub(crate) fn bounced(&mut self, tries: &Tries, load: Option<Load>) -> bool {
        let now = self.host.now();
        let Some(Bounce { from, by, to }) = tries.bounced(now) else {
            return false;
        };
        self.bounces.budget.bounced();
        self.metrics.bounces.increment(&self.host);
        if from.0 != by {
            self.failed(&tries.table, &Keys::default(), from, now);
        }
        self.goes_on(&tries.table, &tries.request, from, (to, now));
        if let (Some(load), Some(state)) = (load, self.clusters.get_mut(&*tries.table)) {
            state.counters.observed(by, load.clone());
            state.cluster.observed(by, load, now);
        }
        true
    }

    /// Requests whose attempts are known.
    #[cfg(test)]
    pub(crate) fn known_tries(&self) -> usize {
        self.bounces.tries.len()
    }

    /// A bounce was the answer: the route does not retry it.
    pub(crate) fn unretried(&mut self, table: &str) {
        let words = "a host gave a request back and the route did not try the next one, so that is not asked for any more \
             for 60 s: see that its retry policy has retriable-headers with x-weir-bounced, and retries enough, of ";
        self.host.log(LogLevel::Warn, &[words, table].concat());
        self.bounces.paused = self.host.now() + PAUSE;
    }
}
