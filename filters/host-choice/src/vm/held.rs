// SPDX-License-Identifier: Apache-2.0
//! Who waits for a host in this VM.

use std::rc::Rc;
use std::time::Duration;

use weir_policy::{Decision, Patience, Reason, Round, Ticket};

use super::Vm;
use crate::held::{HeldRequest, Place};
use crate::host::Host;
use crate::metrics::HeldUntil;

impl<H: Host> Vm<H> {
    /// Holds a request, until then and for this reason.
    pub(crate) fn hold(
        &mut self,
        waiting: Rc<HeldRequest>,
        patience: Patience,
        why: (Duration, Reason),
    ) -> Option<Place> {
        let state = self.clusters.get_mut(&waiting.route.table)?;
        state.counters.held();
        self.metrics.holds(&self.host);
        let request = waiting.route.request.clone();
        let what = Rc::clone(&waiting);
        let ticket = state
            .held
            .hold(&state.cluster, request, patience, why, what);
        Some(Place::new(waiting, ticket, self.abandoned.clone()))
    }

    /// The caller of a held request has gone.
    pub(crate) fn leave(&mut self, place: Place) {
        let waiting = Rc::clone(&place.waiting);
        self.leave_queue(&waiting.route.table, place.leave());
    }

    pub(super) fn leave_queue(&mut self, table: &str, ticket: Ticket) {
        let held = self.clusters.get_mut(table).map(|state| &mut state.held);
        if held.and_then(|held| held.remove(ticket)).is_some() {
            self.metrics.held_until(&self.host, HeldUntil::Gone);
        }
    }

    /// Whether it is for this root to look at who waits. Roots share the VM, and a round for each of them
    /// would send that many times too much: one does it, until it has been silent for two ticks.
    pub(crate) fn releases(&mut self, root: u32, tick: Duration, now: Duration) -> bool {
        let other = self.released.filter(|(last, _)| *last != root);
        let is_mine = other.is_none_or(|(_, at)| now.saturating_sub(at) >= 2 * tick);
        if is_mine {
            self.released = Some((root, now));
        }
        is_mine
    }

    /// The clusters for whose hosts somebody waits.
    pub(crate) fn tables_with_held(&self) -> Vec<String> {
        let held = self.clusters.iter();
        let held = held.filter(|(_, state)| !state.held.is_empty());
        held.map(|(table, _)| table.to_string()).collect()
    }

    /// The next that need not or must not wait any longer.
    pub(crate) fn next_released(
        &mut self,
        table: &str,
        round: &mut Round,
        now: Duration,
    ) -> Option<(Rc<HeldRequest>, Decision)> {
        let state = self.clusters.get_mut(table)?;
        let next = state.held.next(&state.cluster, round, now, &mut self.rng);
        let (waiting, _, decision) = next?;
        self.metrics.decided(&self.host, &state.cluster, &decision);
        self.metrics
            .held_until(&self.host, HeldUntil::of(decision.outcome));
        Some((waiting, decision))
    }
}
