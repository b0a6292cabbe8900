// SPDX-License-Identifier: Apache-2.0
//! Second tries that Envoy may make for this VM.

use std::time::Duration;

use weir_policy::{HostId, Ranked, Request};

use super::Vm;

impl Vm {
    /// Which host gets a second try, and after what time; it counts there until [`Vm::hedge_ended`].
    pub(crate) fn hedge(
        &mut self,
        table: &str,
        hosts: &Ranked,
        request: &Request,
        now: Duration,
    ) -> Option<(HostId, Duration)> {
        let state = self.clusters.get_mut(table)?;
        state.hedges.permit(&state.cluster, hosts, request, now)
    }

    /// The second try is over, or will not come.
    pub(crate) fn hedge_ended(&mut self, table: &str, second: HostId) {
        if let Some(state) = self.clusters.get_mut(table) {
            state.hedges.ended(second);
        }
    }
}
