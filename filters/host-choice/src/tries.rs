// SPDX-License-Identifier: Apache-2.0
//! The hosts that a request is tried at, one after the other: known to its exchange, and to the VM for its attempts.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use weir_policy::{HostId, Request};

/// A request that hosts may bounce.
pub(crate) struct Tries {
    /// Unlike that of any other request, and not to be guessed by its caller.
    pub(crate) id: u64,
    pub(crate) table: Rc<str>,
    pub(crate) request: Request,
    /// As they were named, and for how long the request may wait there; none: for as long as need be.
    hosts: Vec<(HostId, Option<Duration>)>,
    /// Attempts that have begun.
    begun: Cell<usize>,
    /// Where the request counts as in flight, and since when.
    place: Cell<(HostId, Duration)>,
}

/// A host gave a request back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounce {
    /// Where it counted as in flight.
    pub(crate) from: (HostId, Duration),
    /// That host did not take it before: it is another one than `by`.
    pub(crate) has_failed: bool,
    pub(crate) by: HostId,
    /// Who gets it next.
    pub(crate) to: HostId,
}

impl Tries {
    pub(crate) fn new(
        id: u64,
        (table, request): (&Rc<str>, &Request),
        hosts: Vec<(HostId, Option<Duration>)>,
        place: (HostId, Duration),
    ) -> Rc<Self> {
        Rc::new(Self {
            id,
            table: Rc::clone(table),
            request: request.clone(),
            hosts,
            begun: Cell::new(0),
            place: Cell::new(place),
        })
    }

    /// An attempt begins. Says which it is, from 0, and for how long the request may wait at its host.
    pub(crate) fn begin(&self) -> (usize, Option<Duration>) {
        let at = self.begun.get();
        self.begun.set(at.saturating_add(1));
        let host = self.hosts.get(at);
        (at, host.and_then(|(_, bound)| *bound))
    }

    /// An attempt was bounced at `now`, by this host if Envoy tells: it may have left out names that it does not have.
    /// None where that was not its host's to do.
    pub(crate) fn bounced(
        &self,
        attempt: usize,
        by: Option<HostId>,
        now: Duration,
    ) -> Option<Bounce> {
        let (_, bound) = self.hosts.get(attempt)?;
        (*bound)?;
        let known = |by| self.hosts.iter().position(|(host, _)| *host == by);
        let at = by.and_then(known).unwrap_or(attempt);
        let (by, _) = *self.hosts.get(at)?;
        // The last one was not offered this, but had the bound of another.
        let (to, _) = *self.hosts.get(at.saturating_add(1)).or(self.hosts.last())?;
        let from = self.place.replace((to, now));
        // A name that Envoy leaves out has had no attempt.
        let has_failed = from.0 != by && at <= attempt;
        Some(Bounce {
            from,
            has_failed,
            by,
            to,
        })
    }

    /// Where the request counts as in flight, and since when.
    pub(crate) fn place(&self) -> (HostId, Duration) {
        self.place.get()
    }
}

#[cfg(test)]
mod tests {
    use weir_policy::{Keys, Rank};

    use super::*;

    const A: HostId = HostId(1);
    const B: HostId = HostId(2);
    const C: HostId = HostId(3);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn tries() -> Rc<Tries> {
        let request = Request {
            keys: Keys::default(),
            rank: Rank::new(0, 0),
        };
        let hosts = vec![(A, Some(ms(10))), (B, Some(ms(20))), (C, None)];
        Tries::new(1, (&"rules".into(), &request), hosts, (A, ms(0)))
    }

    fn bounce(from: (HostId, Duration), has_failed: bool, [by, to]: [HostId; 2]) -> Option<Bounce> {
        Some(Bounce {
            from,
            has_failed,
            by,
            to,
        })
    }

    #[test]
    fn a_request_goes_from_host_to_host_and_the_last_has_no_bound() {
        let tries = tries();
        assert_eq!(tries.begin(), (0, Some(ms(10))));
        let first = bounce((A, ms(0)), false, [A, B]);
        assert_eq!(tries.bounced(0, Some(A), ms(1)), first);
        assert_eq!(tries.begin(), (1, Some(ms(20))));
        let second = bounce((B, ms(1)), false, [B, C]);
        assert_eq!(tries.bounced(1, None, ms(2)), second);
        assert_eq!(tries.begin(), (2, None));
        assert_eq!(tries.bounced(2, Some(C), ms(3)), None, "it was not offered");
        assert_eq!(tries.place(), (C, ms(2)));
        assert_eq!(tries.begin(), (3, None), "the route retries on");
        assert_eq!(tries.bounced(3, None, ms(4)), None);
    }

    #[test]
    fn a_host_that_failed_before_still_counts_the_request_when_the_next_gives_it_back() {
        let tries = tries();
        tries.begin();
        tries.begin();
        let bounce = bounce((A, ms(0)), true, [B, C]);
        assert_eq!(tries.bounced(1, Some(B), ms(5)), bounce);
    }

    #[test]
    fn a_bounce_is_the_hosts_that_answers_and_not_the_one_that_envoy_left_out() {
        let tries = tries();
        tries.begin();
        let bounce = bounce((A, ms(0)), false, [B, C]);
        assert_eq!(tries.bounced(0, Some(B), ms(5)), bounce);
    }
}
