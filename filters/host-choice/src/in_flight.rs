// SPDX-License-Identifier: Apache-2.0
//! A request on its way to a host.

use std::rc::Rc;
use std::time::Duration;

use weir_policy::{HostId, Request};

use crate::abandoned::{Abandoned, AbandonedQueue};
use crate::prefill::Prefilling;
use crate::tries::Tries;

/// A request to be routed: its table, key and rank, and what may be done with it.
#[derive(Clone, Debug)]
pub(crate) struct RouteRequest {
    pub(crate) table: Rc<str>,
    pub(crate) request: Request,
    /// It may be tried at two hosts at once.
    pub(crate) may_hedge: bool,
    /// Its caller chose how long it may take.
    pub(crate) has_time_out: bool,
    /// A host may give it back.
    pub(crate) may_bounce: bool,
    /// Its host is asked for credits.
    pub(crate) asks_credits: bool,
}

/// A second try that Envoy may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hedge {
    pub(crate) host: HostId,
    /// How long after the first try Envoy may make it although the first host has not failed.
    pub(crate) after: Duration,
}

impl Hedge {
    /// Whether an answer this long after the first try came too early for a second one that only time asked for.
    /// Envoy's timer counts whole milliseconds from when its loop last looked at the clock, so it may be early by as
    /// long as one turn of the loop: half of the wait is left for that.
    pub(crate) fn is_early(&self, answered_after: Duration) -> bool {
        answered_after < self.after / 2
    }
}

/// An attempt in flight. It counts at its host in the VM that made it ([`crate::vm::Vm::send`]), until that VM ends it
/// ([`crate::vm::Vm::end`]); one that is dropped before is taken back.
pub(crate) struct InFlight {
    pub(crate) table: Rc<str>,
    /// Where it is: the first host named, then the one that answers.
    pub(crate) host: HostId,
    pub(crate) request: Request,
    /// When it went there.
    pub(crate) at: Duration,
    pub(crate) status: Option<u32>,
    /// Its caller chose how long it may take: that this was too short is no host's fault.
    pub(crate) has_time_out: bool,
    /// The answer's headers have a gRPC status: Envoy's own answers too come with `:status` 200 then.
    pub(crate) is_grpc: bool,
    /// Its host was asked for credits.
    pub(crate) asks_credits: bool,
    pub(crate) hedge: Option<Hedge>,
    /// The way that it may go from host to host.
    pub(crate) tries: Option<Rc<Tries>>,
    /// Another host reads its prompt, until the answer begins.
    pub(crate) prefilling: Option<Box<Prefilling>>,
    abandoned: AbandonedQueue,
    is_over: bool,
}

impl InFlight {
    /// An attempt that the VM has counted at `host`. It goes through many hands, so it stays in one place.
    pub(crate) fn new(
        route: &RouteRequest,
        (host, at): (HostId, Duration),
        (hedge, tries): (Option<Hedge>, Option<Rc<Tries>>),
        abandoned: AbandonedQueue,
    ) -> Box<Self> {
        Box::new(Self {
            table: Rc::clone(&route.table),
            host,
            request: route.request.clone(),
            at,
            status: None,
            has_time_out: route.has_time_out,
            is_grpc: false,
            asks_credits: route.asks_credits,
            hedge,
            tries,
            prefilling: None,
            abandoned,
            is_over: false,
        })
    }

    /// Takes over where its attempts have got to.
    pub(crate) fn follow(&mut self) {
        if let Some(tries) = &self.tries {
            (self.host, self.at) = tries.place();
        }
    }

    /// The VM does not count it any more.
    pub(crate) fn disarm(&mut self) {
        self.is_over = true;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.is_over {
            self.follow();
            self.abandoned.push(Abandoned::InFlight {
                table: Rc::clone(&self.table),
                host: self.host,
                at: self.at,
                second: self.hedge.map(|hedge| hedge.host),
                tries: self.tries.as_ref().map(|tries| tries.id),
            });
        }
    }
}
