// SPDX-License-Identifier: Apache-2.0
//! Requests that wait here for a host, and how they go on.
//!
//! A held request is paused at its headers. Every tick decides anew who waits, most important first
//! (`weir_policy::WaitQueue`), and makes the host act in the context of the request that it lets go.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use proxy_wasm::types::Action;
use weir_policy::{Decision, Patience, Round, Ticket};

use crate::headers::Headers;
use crate::hostcalls::{self, Map};
use crate::in_flight::RouteRequest;
use crate::request::{self, Disposition};
use crate::vm;

/// How long the caller will wait for Envoy; Envoy in front of this one said so.
const EXPECTED: &str = "x-envoy-expected-rq-timeout-ms";
/// How long Envoy is to wait for the host; the caller said so.
const UPSTREAM: &str = "x-envoy-upstream-rq-timeout-ms";

/// A request that is held: known to its exchange and to its queue.
pub(crate) struct HeldRequest {
    context: u32,
    route: RouteRequest,
    patience: Patience,
    disposition: Cell<Option<Disposition>>,
}

/// The exchange's place in the queue.
pub(crate) struct Waiter {
    waiting: Rc<HeldRequest>,
    ticket: Ticket,
}

impl Waiter {
    /// Takes a place in the queue; none where there is none.
    pub(crate) fn take(
        context: u32,
        route: &RouteRequest,
        patience: Patience,
        decision: Decision,
    ) -> Option<Self> {
        let waiting = Rc::new(HeldRequest {
            context,
            route: route.clone(),
            patience,
            disposition: Cell::new(None),
        });
        let ticket = vm::with(|vm| vm.hold(route, patience, decision, Rc::clone(&waiting)));
        let ticket = ticket.flatten()?;
        Some(Self { waiting, ticket })
    }

    /// What became of it, once that is decided.
    pub(crate) fn disposition(&self) -> Option<Disposition> {
        self.waiting.disposition.take()
    }

    /// The caller has gone.
    pub(crate) fn leave(self) {
        vm::with(|vm| vm.left(&self.waiting.route.table, self.ticket));
    }
}

impl HeldRequest {
    /// Lets it go on as decided.
    fn go_on(&self, decision: Decision, now: Duration) {
        if hostcalls::set_effective_context(self.context).is_err() {
            // Gone without a word.
            return;
        }
        self.shorten(now);
        let (action, disposition) = request::dispose(&self.route, decision, now);
        self.disposition.set(Some(disposition));
        if action == Action::Continue {
            let _ = hostcalls::resume_request();
        }
    }

    /// Envoy counts from when it sends: what the caller allowed is less the time that went by here.
    fn shorten(&self, now: Duration) {
        let Some(deadline) = self.patience.deadline else {
            return;
        };
        let headers = hostcalls::headers(Map::Request).unwrap_or_default();
        if headers.get(UPSTREAM).is_some() {
            let left = deadline.saturating_sub(now).as_millis().max(1);
            let _ = hostcalls::set_header(Map::Request, UPSTREAM, &left.to_string());
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

/// Decides anew for all who wait. `here` is the context whose call this is.
pub(crate) fn release(here: u32, now: Duration) {
    let tables = vm::with(|vm| vm.tables_with_held()).unwrap_or_default();
    if tables.is_empty() {
        return;
    }
    for table in tables {
        let mut round = Round::default();
        while let Some((waiting, decision)) =
            vm::with(|vm| vm.next_released(&table, &mut round, now)).flatten()
        {
            waiting.go_on(decision, now);
        }
    }
    let _ = hostcalls::set_effective_context(here);
}
