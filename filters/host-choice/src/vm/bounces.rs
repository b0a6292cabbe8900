// SPDX-License-Identifier: Apache-2.0
//! Requests of this VM that hosts may give back.

use std::rc::Rc;
use std::time::Duration;

use weir_policy::{BounceBudget, HostId, Keys, Load, Ranked};

use super::Vm;
use crate::host::{Host, LogLevel};
use crate::in_flight::RouteRequest;
use crate::record::Ending;
use crate::tries::{Bounce, Tries};

/// So many hosts may give a request back, however many are named: routes retry four times, and two attempts may fail.
const MOST_BOUNCES: usize = 2;

/// For how long nothing is offered after a route did not retry what a host had given back.
const PAUSE: Duration = Duration::from_secs(60);
/// What a host answers that gives a request back.
const GIVEN_BACK: u32 = 429;

/// What is known of one cluster's requests that hosts may give back.
#[derive(Debug, Default)]
pub(super) struct Bounces {
    /// Roots that look after its attempts. Without one nothing is offered, as nobody here would learn of a bounce.
    pub(super) attempts: usize,
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
}

impl<H: Host> Vm<H> {
    /// For how long the request may wait at the first host, and the way on from there; none where all of it is that
    /// host's to wait for.
    pub(crate) fn offer(
        &mut self,
        route: &RouteRequest,
        hosts: &Ranked,
        now: Duration,
    ) -> Option<(Duration, Rc<Tries>)> {
        let id = self.host.random();
        let state = self.clusters.get_mut(&route.table)?;
        if !state.bounces.permits(now) {
            return None;
        }
        let cluster = &state.cluster;
        let ids = hosts.as_slice().iter().map(|host| cluster.id(*host));
        let mut hosts_and_bounds = ids
            .map(|id| Some((id?, None)))
            .collect::<Option<Vec<(HostId, Option<Duration>)>>>()?;
        let mut places = hosts_and_bounds.iter_mut().take(MOST_BOUNCES);
        cluster.may_wait(hosts, &route.request, now, |bound| {
            if let Some((_, place)) = places.next() {
                *place = Some(bound);
            }
        });
        let (first, bound) = *hosts_and_bounds.first()?;
        let bound = bound?;
        let of = (&route.table, &route.request);
        let tries = Tries::new(id, of, hosts_and_bounds, (first, now));
        self.tries.insert(tries.id, Rc::downgrade(&tries));
        Some((bound, tries))
    }

    /// The request's attempts are over.
    #[inline(never)]
    pub(crate) fn forget(&mut self, tries: u64) {
        self.tries.remove(&tries);
    }

    /// The request whose attempts have this name.
    pub(crate) fn tries(&self, id: u64) -> Option<Rc<Tries>> {
        self.tries.get(&id)?.upgrade()
    }

    /// A host gave the request of this attempt back, perhaps with its load: the next one has it. `by` is that host, as
    /// far as Envoy tells. Says whether that was the host's to do.
    #[inline(never)]
    pub(crate) fn bounced(
        &mut self,
        tries: &Tries,
        (attempt, by): (usize, Option<HostId>),
        load: Option<Load>,
    ) -> bool {
        let now = self.host.now();
        let Some(bounce) = tries.bounced(attempt, by, now) else {
            return false;
        };
        let Bounce { from, by, to, .. } = bounce;
        self.metrics.bounces.increment(&self.host);
        if bounce.has_failed {
            self.failed(&tries.table, &Keys::default(), from, now);
        }
        let Some(state) = self.clusters.get_mut(&tries.table) else {
            return true;
        };
        state.bounces.budget.bounced();
        let ending = match from.0 == by {
            true => Ending::Status(GIVEN_BACK),
            false => Ending::NoAnswer,
        };
        state.ended(&self.host, from, ending);
        state.assigned(to, &tries.request, now, (false, true));
        if let Some(load) = load {
            state.counters.observed(by, load.clone());
            state.cluster.observed(by, load, now);
        }
        true
    }

    /// Requests whose attempts are known.
    #[cfg(test)]
    pub(crate) fn known_tries(&self) -> usize {
        self.tries.len()
    }

    /// A bounce was the answer: the route does not retry it.
    pub(crate) fn unretried(&mut self, table: &str) {
        let words = "a host gave a request back and the route did not try the next one, so that is not asked for any more \
             for 60 s: see that its retry policy has retriable-headers with x-weir-bounced and retries enough, and that \
             buffers hold a body, of ";
        self.host.log(LogLevel::Warn, &[words, table].concat());
        let until = self.host.now() + PAUSE;
        if let Some(state) = self.clusters.get_mut(table) {
            state.bounces.paused = until;
        }
    }
}
