// SPDX-License-Identifier: Apache-2.0
//! What a fault did and measured.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;
use weir_mesh::Host;

use crate::faults::executions::Executions;
use crate::faults::figures;
use crate::faults::load::{Sent, millis};
use crate::faults::record::{End, Record};

/// What Envoy says of a request whose connection ended after it was passed on.
const CUT: &str = "connection termination";

/// What a fault did and measured.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Outcome {
    /// Figures of the fault itself.
    pub measured: Vec<Measured>,
    /// Hosts that were killed, or parts of them.
    pub killed: Vec<Killed>,
    /// When the harm began and ended, milliseconds since the load began.
    pub harm_ms: Option<(u64, u64)>,
    /// A caller whose requests are no part of the percentages: it is the one that is harmed.
    pub apart: Option<usize>,
    /// Callers try at a second host what takes long, so that a request may be executed twice.
    pub hedged: bool,
    /// Shares to be measured when all requests have ended.
    #[serde(skip)]
    pub(crate) shares: Vec<Share>,
}

/// A figure that a fault measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// What it is.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of what: `s`, `%`.
    pub unit: &'static str,
    /// More than this falls short.
    pub at_most: Option<f64>,
}

/// A host of which a process was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Killed {
    /// The address of its application.
    pub application: String,
    /// That of its sidecar.
    pub sidecar: String,
    /// When it was about to be killed, milliseconds since the load began.
    pub from_ms: u64,
    /// When it was dead.
    pub at_ms: u64,
}

/// What is asked of a host's share of the requests.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    pub(crate) host: Host,
    /// From so long after the harm began, to its end.
    pub(crate) after: Duration,
    pub(crate) at_most: Option<f64>,
}

impl Outcome {
    /// Applications that were killed, or whose sidecars were.
    #[must_use]
    pub fn killed(&self) -> BTreeSet<String> {
        let killed = self.killed.iter();
        killed.map(|host| host.application.clone()).collect()
    }

    /// Whether a request failed because it was at a process when that was killed. Nobody may send it again then:
    /// its work may have begun. What is sent later, or was never passed on, is sent to another host instead.
    #[must_use]
    pub fn died(&self, record: &Record, executions: &Executions) -> bool {
        let End::Failed(why) = &record.end else {
            return false;
        };
        let there = |host: &Killed| {
            record.chosen.as_deref() == Some(&*host.sidecar)
                && record.due_ms <= host.at_ms
                && host.from_ms <= record.due_ms + record.took_ms
                && why.contains(CUT)
        };
        self.killed.iter().any(there) || executions.died(&record.id, &self.killed())
    }

    /// Measures what can be measured only when all requests have ended.
    pub(crate) fn measure(&mut self, steady: &Sent, own: &[Sent]) {
        let shares = std::mem::take(&mut self.shares);
        if let Some((began, ended)) = self.harm_ms {
            for Share {
                host,
                after,
                at_most,
            } in shares
            {
                let (application, sidecar) =
                    (host.application.to_string(), host.address.to_string());
                let from = began + millis(after);
                let records = &steady.records;
                let value = figures::share(records, &application, &sidecar, from, ended);
                let seconds = after.as_secs();
                self.measured.push(Measured {
                    name: format!("to {} from {seconds} s on", host.name),
                    value,
                    unit: "%",
                    at_most,
                });
            }
        }
        if let Some(apart) = self.apart {
            let there = steady.records.iter();
            let there = there.filter(|record| record.caller == apart);
            let answered = there.clone().filter(|record| record.end == End::Answered);
            self.measured.push(Measured {
                name: "answered at the harmed caller".to_owned(),
                value: 100.0 * answered.count() as f64 / there.count().max(1) as f64,
                unit: "%",
                at_most: None,
            });
        }
        for sent in own {
            for (name, ended) in [
                ("more sent", None),
                ("more abandoned", Some(End::Abandoned)),
                ("more answered", Some(End::Answered)),
            ] {
                let wanted = |end: &End| ended.as_ref().is_none_or(|ended| end == ended);
                let count = sent.records.iter().filter(|record| wanted(&record.end));
                self.measured.push(Measured {
                    name: name.to_owned(),
                    value: count.count() as f64,
                    unit: "requests",
                    at_most: None,
                });
            }
        }
    }
}
