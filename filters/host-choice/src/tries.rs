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
    /// Where it counted as in flight: another host than `by` where that one had failed.
    pub(crate) from: (HostId, Duration),
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

    /// An attempt begins. Says whether it is the first, and for how long the request may wait at its host.
    pub(crate) fn begin(&self) -> (bool, Option<Duration>) {
        let at = self.begun.get();
        self.begun.set(at.saturating_add(1));
        let host = self.hosts.get(at);
        (at == 0, host.and_then(|(_, bound)| *bound))
    }

    /// The attempt that began last was bounced at `now`; none where that was not its host's to do.
    pub(crate) fn bounced(&self, now: Duration) -> Option<Bounce> {
        let at = self.begun.get().checked_sub(1)?;
        let (by, bound) = *self.hosts.get(at)?;
        let (to, _) = *self.hosts.get(at.checked_add(1)?)?;
        bound?;
        let from = self.place.replace((to, now));
        Some(Bounce { from, by, to })
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

    #[test]
    fn a_request_goes_from_host_to_host_and_the_last_has_no_bound() {
        let tries = tries();
        assert_eq!(tries.begin(), (true, Some(ms(10))));
        let (from, by, to) = ((A, ms(0)), A, B);
        assert_eq!(tries.bounced(ms(1)), Some(Bounce { from, by, to }));
        assert_eq!(tries.begin(), (false, Some(ms(20))));
        let (from, by, to) = ((B, ms(1)), B, C);
        assert_eq!(tries.bounced(ms(2)), Some(Bounce { from, by, to }));
        assert_eq!(tries.begin(), (false, None));
        assert_eq!(tries.bounced(ms(3)), None, "it was not offered");
        assert_eq!(tries.place(), (C, ms(2)));
        assert_eq!(tries.begin(), (false, None), "the route retries on");
        assert_eq!(tries.bounced(ms(4)), None);
    }

    #[test]
    fn a_host_that_failed_before_still_counts_the_request_when_the_next_gives_it_back() {
        let tries = tries();
        tries.begin();
        tries.begin();
        let (from, by, to) = ((A, ms(0)), B, C);
        assert_eq!(tries.bounced(ms(5)), Some(Bounce { from, by, to }));
    }

    #[test]
    fn nothing_is_bounced_before_it_was_tried() {
        assert_eq!(tries().bounced(ms(1)), None);
    }
}
