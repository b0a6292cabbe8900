// SPDX-License-Identifier: Apache-2.0
//! What comes and goes, and when.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};
use weir_policy::{Overload, Selection};

use crate::soak::stage::Stage;

/// What is done again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Policy,
    Host,
    GuestComes,
    GuestLeaves,
    GuestEnds,
    CrashRequest,
    CrashOwner,
}

/// `(seconds of the first, seconds between two, what)`.
const ACTS: [(u64, u64, Act); 7] = [
    (3, 4, Act::Policy),
    (8, 15, Act::Host),
    (5, 30, Act::GuestComes),
    (25, 30, Act::GuestLeaves),
    // Most of what was sent to it has ended by then; else it ends the next time.
    (29, 30, Act::GuestEnds),
    (10, 12, Act::CrashRequest),
    (17, 30, Act::CrashOwner),
];

/// Hosts beside those that stay.
const GUEST_HOSTS: usize = 2;

/// How often what was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Done {
    /// Changes of policy, holding, hedging or shards.
    pub policies: u64,
    /// Hosts that came.
    pub hosts: u64,
    /// Callers that came.
    pub callers: u64,
    /// VMs killed by a request.
    pub requests_killed: u64,
    /// VMs killed that had the stream.
    pub owners_killed: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Churn {
    /// How often each was done.
    times: [u64; ACTS.len()],
    pub(crate) done: Done,
}

impl Churn {
    /// Does one thing that is due. What was missed, because another took long, is not made up for.
    pub(crate) fn step(&mut self, stage: &mut Stage, since: Duration) -> Result<()> {
        let now = since.as_secs();
        for (times, (first, every, act)) in self.times.iter_mut().zip(ACTS) {
            if now < first + *times * every {
                continue;
            }
            *times = (now - first) / every + 1;
            return self.perform(act, stage);
        }
        Ok(())
    }

    fn perform(&mut self, act: Act, stage: &mut Stage) -> Result<()> {
        match act {
            Act::Policy => {
                let (policy, shards) = policy(self.done.policies);
                self.done.policies += 1;
                stage.set_policy(policy, shards)
            }
            Act::Host => {
                self.done.hosts += 1;
                stage.add_host(false)?;
                match stage.hosts.iter().filter(|host| !host.stays).count() {
                    guests if guests > GUEST_HOSTS => stage.remove_host(),
                    _ => Ok(()),
                }
            }
            Act::GuestComes => {
                self.done.callers += 1;
                stage.add_caller(false, false)
            }
            Act::GuestLeaves => {
                stage.leave_caller();
                Ok(())
            }
            Act::GuestEnds => stage.remove_callers(),
            Act::CrashRequest => {
                self.done.requests_killed += 1;
                stage.crash("here");
                Ok(())
            }
            Act::CrashOwner => {
                self.done.owners_killed += 1;
                stage.crash("owner");
                Ok(())
            }
        }
    }
}

/// Those that need no plan.
fn selections() -> Vec<Selection> {
    let plan = |selection: &Selection| *selection == Selection::CachingPlan;
    let all = Selection::ALL.into_iter();
    all.filter(|selection| !plan(selection)).collect()
}

/// Every selection beside every overload policy, and now and then another number of shards.
fn policy(number: u64) -> (Value, u32) {
    let selections = selections();
    let place = number as usize;
    let overload = Overload::ALL[place / selections.len() % Overload::ALL.len()];
    let policy = json!({
        "selection": selections[place % selections.len()].as_str(),
        "overload": overload.as_str(),
        "holding": {"for_eligible": if number.is_multiple_of(5) { "100ms" } else { "0s" }},
        "hedging": {"after": if number.is_multiple_of(7) { "20ms" } else { "0s" }},
    });
    (
        policy,
        if (number / 8).is_multiple_of(2) {
            16
        } else {
            8
        },
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_selection_comes_with_every_overload_policy() {
        let pairs: BTreeSet<(String, String)> = (0..100)
            .map(|number| policy(number).0)
            .map(|policy| {
                (
                    policy["selection"].to_string(),
                    policy["overload"].to_string(),
                )
            })
            .collect();
        assert_eq!(pairs.len(), selections().len() * Overload::ALL.len());
    }

    #[test]
    fn a_minute_has_something_of_each() {
        for (first, every, act) in ACTS {
            assert!(first + every < 60, "{act:?} comes twice");
        }
    }
}
