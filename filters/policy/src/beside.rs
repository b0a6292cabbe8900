// SPDX-License-Identifier: Apache-2.0
//! What a second selection would have chosen at the same moment, beside the choice that was made.

use std::time::Duration;

use rand::Rng;

use crate::selection::Candidates;
use crate::{Cluster, Outcome, Ranked, Reason, Request, Selection, Terms};

/// The choice that was only made, and what is to be expected of both by `estimate`.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// How it was made.
    pub selection: Selection,
    /// Hosts, best first.
    pub ranked: Ranked,
    /// Why its first host.
    pub reason: Reason,
    /// Its first host.
    pub first: Option<Terms>,
    /// The first host of the choice that it stands beside.
    pub made: Option<Terms>,
}

impl Cluster {
    /// The second choice for a request of which the first one is the host with the table index `made`; none where the
    /// policy has no second selection, or no host would be chosen.
    pub fn beside(
        &self,
        request: &Request,
        made: u32,
        now: Duration,
        rng: &mut impl Rng,
    ) -> Option<Beside> {
        let table = self.table()?;
        let selection = table.policy().beside?;
        let decision = self.decide_by(selection, request, now, rng);
        let Outcome::Send(ranked) = decision.outcome else {
            return None;
        };
        let candidates = Candidates::new(self, table, (self.admission.up(), request), now);
        Some(Beside {
            selection,
            ranked,
            reason: decision.reason,
            first: ranked.first().and_then(|first| candidates.judged(first)),
            made: candidates.judged(made),
        })
    }
}
