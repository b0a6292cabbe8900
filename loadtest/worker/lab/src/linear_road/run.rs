// SPDX-License-Identifier: Apache-2.0
//! One run of the workflow: what all runs have in common.

use std::time::Duration;

use weir_executor::Order;
use weir_executor::scheduler::QuantumSettings;
use weir_executor::workflow::Plan;

use super::actor::{self, ACTORS, Actor, Event, SOURCE, TOLL_NOTIFICATION};
use super::cost::Costs;
use super::reference::Found;
use super::traffic::Report;
use crate::real::Outcome;

/// How reports get to the source.
#[derive(Debug, Clone, Copy)]
pub(super) enum Input {
    /// They are read while the core does something else, each for so long.
    Asynchronous(Duration),
    /// The source reads them, each for so long, and holds its core meanwhile.
    Synchronous(Duration),
}

impl Input {
    /// What the report waits before it is in the source's queue.
    pub(super) fn before(self) -> Duration {
        match self {
            Self::Asynchronous(wait) => wait,
            Self::Synchronous(_) => Duration::ZERO,
        }
    }

    /// What a firing waits on its core.
    pub(super) fn within(self, actor: usize, events: usize) -> Duration {
        match self {
            Self::Synchronous(wait) if actor == SOURCE => wait * events as u32,
            _ => Duration::ZERO,
        }
    }
}

/// What a run works on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) reports: &'a [Report],
    pub(super) costs: Costs,
    pub(super) input: Input,
}

/// The plan of a run. TollNotification, the output, has document 003's priority 5 and all others 10: which actor had
/// which is not printed.
pub(super) fn plan(order: Order, source_batch: usize) -> Plan {
    let mut priorities = [10; ACTORS];
    priorities[TOLL_NOTIFICATION] = 5;
    let classes = priorities.to_vec();
    let order = match order {
        Order::Quantum(settings) => Order::Quantum(QuantumSettings {
            priorities: priorities[1..].iter().copied().map(u32::from).collect(),
            ..settings
        }),
        other => other,
    };
    Plan {
        graph: actor::graph(),
        classes,
        cores: 1,
        order,
        source_batch,
    }
}

/// Fires an actor; returns what it has sent.
pub(super) fn fire(actor: &mut Actor, events: Vec<Event>) -> Vec<(usize, Event)> {
    let mut sent = Vec::new();
    for event in events {
        actor.fire(event, &mut sent);
    }
    sent
}

/// What came of a run.
#[derive(Debug, Default)]
pub(super) struct Results {
    found: Found,
    outcomes: Vec<Outcome>,
}

impl Results {
    /// A result has left the workflow.
    pub(super) fn take(&mut self, now: Duration, event: Event, reports: &[Report]) {
        match event {
            Event::Notified(toll) => {
                let at = reports[toll.report].at;
                self.found.tolls.push(toll);
                self.outcomes.push(Outcome {
                    at,
                    class: 0,
                    response: Some(now.saturating_sub(at)),
                    spent: None,
                });
            }
            Event::Balance(balance) => self.found.balances.push(balance),
            event => unreachable!("{event:?} is no result"),
        }
    }

    /// In the order of the reports.
    pub(super) fn sorted(mut self) -> (Found, Vec<Outcome>) {
        self.found.tolls.sort_by_key(|toll| toll.report);
        self.found.balances.sort_by_key(|balance| balance.report);
        self.outcomes.sort_by_key(|outcome| outcome.at);
        (self.found, self.outcomes)
    }
}
