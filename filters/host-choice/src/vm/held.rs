// SPDX-License-Identifier: Apache-2.0
//! Who waits for a host in this VM.

use std::rc::Rc;
use std::time::Duration;

use weir_policy::{Decision, Outcome, Patience, Round, Ticket};

use super::Vm;
use crate::held::Waiting;
use crate::metrics::HeldUntil;
use crate::sent::Asked;

impl Vm {
    /// Holds a request, if that was decided.
    pub(crate) fn hold(
        &mut self,
        asked: &Asked,
        patience: Patience,
        decision: Decision,
        waiting: Rc<Waiting>,
    ) -> Option<Ticket> {
        let Outcome::Hold { until } = decision.outcome else {
            return None;
        };
        let state = self.clusters.get_mut(&*asked.table)?;
        state.counters.held();
        self.metrics.holds();
        let why = (until, decision.reason);
        Some(
            state
                .held
                .hold(asked.request.clone(), patience, why, waiting),
        )
    }

    /// The caller of a held request has gone.
    pub(crate) fn left(&mut self, table: &str, ticket: Ticket) {
        let held = self.clusters.get_mut(table).map(|state| &mut state.held);
        if held.and_then(|held| held.remove(ticket)).is_some() {
            self.metrics.held_until(HeldUntil::Gone);
        }
    }

    /// The clusters for whose hosts somebody waits.
    pub(crate) fn tables_with_held(&self) -> Vec<String> {
        let held = self.clusters.iter();
        let held = held.filter(|(_, state)| !state.held.is_empty());
        held.map(|(table, _)| table.clone()).collect()
    }

    /// The next that need not or must not wait any longer.
    pub(crate) fn next_released(
        &mut self,
        table: &str,
        round: &mut Round,
        now: Duration,
    ) -> Option<(Rc<Waiting>, Decision)> {
        let state = self.clusters.get_mut(table)?;
        let next = state.held.next(&state.cluster, round, now, &mut self.rng);
        let (waiting, _, decision) = next?;
        self.metrics.decided(decision.reason);
        self.metrics.held_until(HeldUntil::of(decision.outcome));
        Some((waiting, decision))
    }
}
