// SPDX-License-Identifier: Apache-2.0
//! A request that waits here for a host, paused at its headers.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use weir_policy::{Patience, Ticket};

use crate::abandoned::{Abandoned, AbandonedQueue};
use crate::config::Prefill;
use crate::disposition::Disposition;
use crate::headers::Headers;
use crate::host::{Map, RequestHost};
use crate::in_flight::RouteRequest;
use crate::watch::Watch;

/// How long the caller will wait for Envoy; Envoy in front of this one said so.
const EXPECTED: &str = "x-envoy-expected-rq-timeout-ms";
/// How long Envoy is to wait for the host; the caller said so.
const UPSTREAM: &str = "x-envoy-upstream-rq-timeout-ms";

/// A request that is held: known to its exchange and to its queue.
pub(crate) struct HeldRequest {
    pub(crate) context: u32,
    pub(crate) route: RouteRequest,
    patience: Patience,
    /// Where its prompt may be read, if its host only writes.
    pub(crate) prefill: Option<Rc<Prefill>>,
    /// Over this request, until it is decided.
    pub(crate) watch: Cell<Option<Box<Watch>>>,
    /// What became of it, until its exchange takes that over.
    pub(crate) disposition: Cell<Option<Disposition>>,
}

impl HeldRequest {
    pub(crate) fn new(
        context: u32,
        route: RouteRequest,
        patience: Patience,
        (prefill, watch): (&Option<Rc<Prefill>>, Option<Box<Watch>>),
    ) -> Rc<Self> {
        Rc::new(Self {
            context,
            route,
            patience,
            prefill: prefill.clone(),
            watch: Cell::new(watch),
            disposition: Cell::new(None),
        })
    }

    /// Envoy counts from when it sends: what the caller allowed is less the time that went by here.
    pub(crate) fn shorten(&self, host: &impl RequestHost, now: Duration) {
        let Some(deadline) = self.patience.deadline else {
            return;
        };
        let headers = host.headers(Map::Request).unwrap_or_default();
        if headers.get(UPSTREAM).is_some() {
            let left = deadline.saturating_sub(now).as_millis().max(1);
            let _ = host.set_header(Map::Request, UPSTREAM, Some(&left.to_string()));
        }
    }
}

/// A held request's place in the queue of the VM that gave it ([`crate::vm::Vm::hold`]). One that is dropped is taken
/// back.
pub(crate) struct Place {
    pub(crate) waiting: Rc<HeldRequest>,
    ticket: Ticket,
    abandoned: AbandonedQueue,
    is_left: bool,
}

impl Place {
    pub(crate) fn new(waiting: Rc<HeldRequest>, ticket: Ticket, abandoned: AbandonedQueue) -> Self {
        Self {
            waiting,
            ticket,
            abandoned,
            is_left: false,
        }
    }

    /// What became of the request, once that is decided; the place is another's then.
    pub(crate) fn disposition(&mut self) -> Option<Disposition> {
        let disposition = self.waiting.disposition.take();
        self.is_left |= disposition.is_some();
        disposition
    }

    /// Gives the place up, for the queue to take it back.
    pub(crate) fn leave(mut self) -> Ticket {
        self.is_left = true;
        self.ticket
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_left {
            self.abandoned.push(Abandoned::Held {
                table: Rc::clone(&self.waiting.route.table),
                ticket: self.ticket,
            });
        }
    }
}

/// When the caller gives up, as far as headers tell.
pub(crate) fn deadline(headers: Option<&Headers>, now: Duration) -> Option<Duration> {
    let told = [EXPECTED, UPSTREAM].into_iter().filter_map(|name| {
        let text = std::str::from_utf8(headers?.get(name)?).ok()?;
        // 0 is no time-out.
        text.parse::<u32>().ok().filter(|ms| *ms > 0)
    });
    let shortest = told.min()?;
    Some(now + Duration::from_millis(shortest.into()))
}
