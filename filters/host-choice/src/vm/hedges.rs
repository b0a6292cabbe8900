// SPDX-License-Identifier: Apache-2.0
//! Second tries that Envoy may make for this VM.

use std::time::Duration;

use weir_policy::{HostId, Ranked};

use super::Vm;
use crate::host::Host;
use crate::in_flight::{Hedge, RouteRequest};

impl<H: Host> Vm<H> {
    /// Which host gets a second try, and when; it counts there until [`Vm::hedge_ended`].
    pub(crate) fn hedge(
        &mut self,
        route: &RouteRequest,
        hosts: &Ranked,
        now: Duration,
    ) -> Option<Hedge> {
        let state = self.clusters.get_mut(&route.table)?;
        let hedge = state
            .hedges
            .permit(&state.cluster, hosts, &route.request, now);
        let (host, after) = hedge?;
        Some(Hedge { host, after })
    }

    /// The second try is over, or will not come.
    pub(crate) fn hedge_ended(&mut self, table: &str, second: HostId) {
        if let Some(state) = self.clusters.get_mut(table) {
            state.hedges.ended(second);
        }
    }

    /// Second tries that count at their hosts.
    #[cfg(test)]
    pub(crate) fn hedges(&self, table: &str) -> weir_policy::Hedges {
        self.clusters
            .get(table)
            .map_or_else(Default::default, |state| state.hedges.clone())
    }
}
