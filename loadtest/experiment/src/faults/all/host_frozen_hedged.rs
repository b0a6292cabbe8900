// SPDX-License-Identifier: Apache-2.0
//! The same where callers try at a second host what takes long.

use serde_json::json;

use super::host_frozen;
use crate::faults::fault::{Expectation, Fault, Length};

pub(crate) const FAULT: Fault = Fault {
    name: "host-frozen-hedged",
    expectation: Expectation::capacity_remains(
        "what the frozen host does not answer in 0.5 s another one does, where it has a core to spare; the frozen one may \
         execute it too when it goes on",
    ),
    own: Some(|plan, _| {
        plan.cluster = json!({"policy": {"hedging": {"after": "500ms"}}});
        Ok(())
    }),
    full: Length::full(10, 30, 20),
    short: Some(Length::short(2, 5, 3)),
    run: |stage| {
        stage.hedges();
        let host = stage.busiest()?;
        host_frozen::freeze(stage, &host)
    },
    known_gap: None,
};
