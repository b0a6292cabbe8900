// SPDX-License-Identifier: Apache-2.0
//! Attempts in flight, as they count at the hosts of this VM: each begins with a guard and ends once.

use std::rc::Rc;
use std::time::Duration;

use weir_policy::{HostId, Overload, Request};

use super::Vm;
use super::cluster::ClusterState;
use crate::abandoned::Abandoned;
use crate::host::Host;
use crate::in_flight::{Hedge, InFlight, RouteRequest};
use crate::record::Ending;
use crate::tries::Tries;

impl<H: Host> Vm<H> {
    /// A request goes to a host, and counts there until [`Vm::end`]. `reads` says whether the host reads its prompt
    /// itself.
    pub(crate) fn send(
        &mut self,
        route: &RouteRequest,
        (host, now): (HostId, Duration),
        second: (Option<Hedge>, Option<Rc<Tries>>),
        reads: bool,
    ) -> Box<InFlight> {
        if let Some(state) = self.clusters.get_mut(&route.table) {
            state.assigned(host, &route.request, now, (true, reads));
        }
        InFlight::new(route, (host, now), second, self.abandoned.clone())
    }

    /// A request that was left to Envoy has an answer of this host; none where the table does not have it.
    pub(crate) fn left(&mut self, route: &RouteRequest, host: HostId) -> Option<Box<InFlight>> {
        let table = self.cluster(&route.table)?.table()?;
        table.index_of(host)?;
        let now = self.host.now();
        Some(self.send(route, (host, now), (None, None), true))
    }

    /// Another host has the request from now on.
    #[inline(never)]
    pub(crate) fn moved(&mut self, in_flight: &mut InFlight, host: HostId, now: Duration) {
        if let Some(state) = self.clusters.get_mut(&in_flight.table) {
            let sent = (in_flight.host, in_flight.at);
            state.ended(&self.host, sent, Ending::NoAnswer);
            let reads = in_flight.prefilling.is_none();
            state.assigned(host, &in_flight.request, now, (true, reads));
        }
        (in_flight.host, in_flight.at) = (host, now);
        if let Some(tries) = in_flight.tries.take() {
            self.forget(tries.id);
        }
    }

    /// An attempt has ended for good, so that its host has a place for another.
    pub(crate) fn end(&mut self, in_flight: &mut InFlight, ending: Ending) {
        if let Some(tries) = in_flight.tries.take() {
            self.forget(tries.id);
        }
        if let Some(prefilling) = in_flight.prefilling.take() {
            self.end_prefill(*prefilling, Ending::NoAnswer);
        }
        let sent = (in_flight.host, in_flight.at);
        let second = in_flight.hedge.map(|hedge| hedge.host);
        self.finish(&in_flight.table, sent, second, ending);
        in_flight.disarm();
    }

    /// Takes back what exchanges have left that went away without an end.
    pub(super) fn take_back(&mut self) {
        if self.abandoned.is_empty() {
            return;
        }
        for abandoned in self.abandoned.take() {
            match abandoned {
                Abandoned::InFlight {
                    table,
                    host,
                    at,
                    second,
                    tries,
                } => {
                    if let Some(tries) = tries {
                        self.forget(tries);
                    }
                    self.finish(&table, (host, at), second, Ending::NoAnswer);
                }
                Abandoned::Held { table, ticket } => self.leave_queue(&table, ticket),
            }
        }
    }

    pub(super) fn finish(
        &mut self,
        table: &str,
        sent: (HostId, Duration),
        second: Option<HostId>,
        ending: Ending,
    ) {
        if let Some(state) = self.clusters.get_mut(table) {
            state.ended(&self.host, sent, ending);
            state.held.answered();
            if let Some(second) = second {
                state.hedges.ended(second);
            }
        }
    }
}

impl ClusterState {
    /// A request goes to a host; `is_new` says whether it has just been admitted, `reads` whether the host reads its
    /// prompt itself.
    pub(super) fn assigned(
        &mut self,
        host: HostId,
        request: &Request,
        now: Duration,
        (is_new, reads): (bool, bool),
    ) {
        if let Some(table) = self.cluster.table()
            && let Some(row) = table.index_of(host).and_then(|index| table.host(index))
        {
            let ranks = is_new && table.policy().overload == Overload::Dagor;
            let rank = ranks.then_some(request.rank);
            self.counters.assigned(host, &row.address, rank);
        }
        let reading = self.cluster.assigned_to(host, request, reads, now);
        if !reading.is_zero() {
            self.counters.reads(host, reading);
        }
    }

    pub(super) fn ended(
        &mut self,
        vm: &impl Host,
        (host, sent): (HostId, Duration),
        ending: Ending,
    ) {
        let now = match self.cluster.times_ends() {
            true => vm.now(),
            false => sent,
        };
        self.cluster.finished(host, sent, now);
        self.counters.ended(host, ending);
    }
}
