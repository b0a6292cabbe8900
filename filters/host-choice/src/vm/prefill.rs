// SPDX-License-Identifier: Apache-2.0
//! Prompts that a host reads for the one that writes the answer.

use std::time::Duration;

use weir_policy::{HostId, Outcome, Ranked, Request};

use super::Vm;
use crate::config::Prefill;
use crate::host::Host;
use crate::in_flight::RouteRequest;
use crate::metrics::PrefillEnd;
use crate::prefill::Prefilling;
use crate::record::Ending;

impl<H: Host> Vm<H> {
    /// The host that is to read the request's prompt for the first of `writers`, or why none is.
    pub(crate) fn reader(
        &mut self,
        route: &RouteRequest,
        prefill: &Prefill,
        writers: &Ranked,
        now: Duration,
    ) -> Result<HostId, PrefillEnd> {
        let keys = &route.request.keys;
        if keys.size() <= prefill.above_blocks {
            return Err(PrefillEnd::Short);
        }
        let cluster = self.cluster(&route.table).zip(writers.first());
        let lacks = cluster.map_or(0, |(cluster, writer)| cluster.lacks(writer, keys, now));
        if lacks <= prefill.above_blocks {
            return Err(PrefillEnd::Cached);
        }
        let state = self.clusters.get_mut(&prefill.table);
        let state = state.ok_or(PrefillEnd::NoHost)?;
        // Its keys say whether it is steered, not chance.
        let table = state.cluster.table();
        if table.is_some_and(|table| !table.policy().steers(keys, 0)) {
            return Err(PrefillEnd::NoHost);
        }
        state.counters.offered(route.request.rank);
        let decision = state.cluster.decide(&route.request, now, &mut self.rng);
        let first = match decision.outcome {
            Outcome::Send(ranked) => ranked.first(),
            _ => None,
        };
        let reader = first.and_then(|first| state.cluster.id(first));
        reader.ok_or(PrefillEnd::NoHost)
    }

    /// The host reads the request's prompt, which counts there until [`Vm::end_prefill`].
    pub(crate) fn prefill(
        &mut self,
        prefill: &Prefill,
        reader: HostId,
        request: &Request,
        now: Duration,
    ) -> Box<Prefilling> {
        if let Some(state) = self.clusters.get_mut(&prefill.table) {
            state.assigned(reader, request, now, (true, true));
        }
        Prefilling::new(&prefill.table, (reader, now), self.abandoned.clone())
    }

    /// The prompt has been read, or will not be.
    #[inline(never)]
    pub(crate) fn end_prefill(&mut self, prefilling: Prefilling, ending: Ending) {
        let (table, sent) = prefilling.disarm();
        self.finish(&table, sent, None, ending);
    }
}
