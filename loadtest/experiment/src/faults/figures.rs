// SPDX-License-Identifier: Apache-2.0
//! Records counted.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::faults::executions::Executions;
use crate::faults::load::Sent;
use crate::faults::outcome::Outcome;
use crate::faults::record::{End, Record};

/// An answer that took longer is late, milliseconds.
const LATE_MS: u64 = 1_000;

/// What came of a fault.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Figures {
    /// Of the steady requests.
    pub important: Count,
    /// Of the steady requests.
    pub low: Count,
    /// Steady requests that were not answered, by why.
    pub why: BTreeMap<String, u64>,
    /// Requests without an end, of all loads.
    pub lost: u64,
    /// Requests with more than one end, of all loads.
    pub ended_twice: u64,
    /// Requests that were executed more than once.
    pub doubled: Vec<String>,
    /// That was meant: callers try at a second host what takes long.
    pub hedged: bool,
    /// Those whose other executions ended with a killed host.
    pub executed_again: Vec<String>,
    /// Counters of requests under way that did not come back to zero.
    pub in_flight: Vec<String>,
    /// Of those answered, per cent whose host was chosen by a table that was not stale.
    pub by_table: f64,
}

/// Requests of one importance.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Those that ended.
    pub sent: u64,
    /// With 2xx.
    pub answered: u64,
    /// Of them, after more than a second.
    pub late: u64,
    /// With 429.
    pub refused: u64,
    /// In another way.
    pub failed: u64,
    /// Of them, those that were at a process when it was killed.
    pub died: u64,
}

impl Count {
    /// Per cent answered of those that were at no process when it was killed.
    #[must_use]
    pub fn ok(&self) -> f64 {
        match self.sent - self.died {
            0 => 0.0,
            sent => 100.0 * self.answered as f64 / sent as f64,
        }
    }

    fn add(&mut self, record: &Record, died: bool) {
        self.sent += 1;
        match &record.end {
            End::Answered => {
                self.answered += 1;
                self.late += u64::from(record.took_ms > LATE_MS);
            }
            End::Refused => self.refused += 1,
            End::Failed(_) | End::Abandoned => {
                self.failed += 1;
                self.died += u64::from(died);
            }
        }
    }
}

impl Figures {
    /// Counts.
    #[must_use]
    pub fn of(
        steady: &Sent,
        own: &[Sent],
        executions: &Executions,
        outcome: &Outcome,
        in_flight: Vec<String>,
    ) -> Self {
        let mut figures = Self {
            in_flight,
            hedged: outcome.hedged,
            ..Self::default()
        };
        let (mut answered, mut by_table) = (0_u64, 0_u64);
        let judged = |record: &&Record| outcome.apart != Some(record.caller);
        for record in steady.records.iter().filter(judged) {
            let died = outcome.died(record, executions);
            match record.important {
                true => figures.important.add(record, died),
                false => figures.low.add(record, died),
            }
            if record.end != End::Answered {
                let why = figures.why.entry(why(record, died)).or_default();
                *why += 1;
            }
            if record.end == End::Answered {
                answered += 1;
                // None: the filter was not there, or had no table.
                let reason = record.reason.as_deref().unwrap_or("no_table");
                by_table += u64::from(!reason.ends_with("_table"));
            }
        }
        figures.by_table = 100.0 * by_table as f64 / answered.max(1) as f64;
        for sent in own.iter().chain([steady]) {
            let ids: BTreeSet<_> = sent.records.iter().map(|record| &*record.id).collect();
            figures.lost += sent.sent.saturating_sub(ids.len() as u64);
            figures.ended_twice += (sent.records.len() - ids.len()) as u64;
            let doubled = executions.doubled(ids, &outcome.killed());
            figures.doubled.extend(doubled.doubled);
            figures.executed_again.extend(doubled.died);
        }
        figures
    }

    /// Both.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.important.failed + self.low.failed
    }
}

fn why(record: &Record, died: bool) -> String {
    let told = match &record.end {
        End::Answered => "answered",
        End::Refused => record.reason.as_deref().unwrap_or("429"),
        End::Failed(why) => why,
        End::Abandoned => "abandoned",
    };
    match died {
        true => format!("{told} (it was at a process that was killed)"),
        false => told.to_owned(),
    }
}

/// Per cent of the steady requests due in a span of time, in milliseconds, that went to this host.
#[must_use]
pub fn share(records: &[Record], application: &str, sidecar: &str, from: u64, to: u64) -> f64 {
    let due = |record: &&Record| (from..to).contains(&record.due_ms);
    let there = |record: &&Record| match (&record.answered_by, &record.chosen) {
        (Some(host), _) => host == application,
        (None, chosen) => chosen.as_deref() == Some(sidecar),
    };
    let all = records.iter().filter(due);
    let here = all.clone().filter(there);
    100.0 * here.count() as f64 / all.count().max(1) as f64
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::faults::outcome::Killed;

    pub(crate) fn record(number: u64, end: End) -> Record {
        Record {
            id: format!("t-{number}"),
            caller: 0,
            important: number.is_multiple_of(5),
            due_ms: 10 * number,
            took_ms: 20,
            end,
            answered_by: Some("app-1".to_owned()),
            chosen: Some("sidecar-1".to_owned()),
            reason: Some("known_cached".to_owned()),
        }
    }

    pub(crate) fn all_answered(count: u64) -> Sent {
        Sent {
            sent: count,
            records: (0..count).map(|n| record(n, End::Answered)).collect(),
        }
    }

    fn count(steady: &Sent, executions: &Executions, outcome: &Outcome) -> Figures {
        Figures::of(steady, &[], executions, outcome, Vec::new())
    }

    #[test]
    fn answers_are_counted_by_importance_and_late_ones_are_told() {
        let mut steady = all_answered(100);
        steady.records[1].took_ms = 1_001;
        let figures = count(&steady, &Executions::default(), &Outcome::default());
        assert_eq!((figures.important.answered, figures.low.answered), (20, 80));
        assert_eq!((figures.important.late, figures.low.late), (0, 1));
        assert_eq!((figures.important.ok(), figures.by_table), (100.0, 100.0));
        assert_eq!((figures.lost, figures.ended_twice), (0, 0));
        for (record, reason) in steady.records.iter_mut().zip([None, Some("stale_table")]) {
            record.reason = reason.map(str::to_owned);
        }
        let figures = count(&steady, &Executions::default(), &Outcome::default());
        assert_eq!(figures.by_table, 98.0);
    }

    #[test]
    fn a_request_without_an_end_is_lost_and_one_with_two_is_told() {
        let mut steady = all_answered(100);
        steady.records.pop();
        let figures = count(&steady, &Executions::default(), &Outcome::default());
        assert_eq!((figures.lost, figures.ended_twice), (1, 0));
        let mut steady = all_answered(100);
        steady.records.push(record(7, End::Answered));
        let figures = count(&steady, &Executions::default(), &Outcome::default());
        assert_eq!((figures.lost, figures.ended_twice), (0, 1));
    }

    #[test]
    fn a_request_that_two_hosts_executed_is_doubled_also_if_it_belongs_to_the_fault() {
        let mut executions = Executions::default();
        executions.add("a", "began t-3\nended t-3\n");
        executions.add("b", "began t-3\nended t-3\n");
        let figures = count(&all_answered(10), &executions, &Outcome::default());
        assert_eq!(figures.doubled, ["t-3"]);
        let (none, own) = (all_answered(0), [all_answered(10)]);
        let figures = Figures::of(&none, &own, &executions, &Outcome::default(), Vec::new());
        assert_eq!(figures.doubled, ["t-3"]);
    }

    #[test]
    fn only_failures_of_what_was_at_a_killed_process_are_set_apart() {
        let mut steady = all_answered(100);
        // The host is killed at 200 ms. The fourth is sent later, the fifth is not cut off, the last goes elsewhere.
        for (number, why) in [
            (5, "503"),
            (10, "503"),
            (20, "503: connection termination"),
            (25, "503: connection termination"),
            (19, "503: no healthy upstream"),
            (18, "503: connection termination"),
        ] {
            steady.records[number].end = End::Failed(why.to_owned());
        }
        steady.records[18].chosen = Some("sidecar-2".to_owned());
        let mut executions = Executions::default();
        executions.add("a", "began t-5\nbegan t-15\n");
        let outcome = Outcome {
            killed: vec![Killed {
                application: "a".to_owned(),
                sidecar: "sidecar-1".to_owned(),
                from_ms: 200,
                at_ms: 200,
            }],
            ..Outcome::default()
        };
        let figures = count(&steady, &executions, &outcome);
        assert_eq!((figures.important.failed, figures.important.died), (4, 2));
        assert_eq!((figures.low.failed, figures.low.died), (2, 0));
        assert!((figures.important.ok() - 100.0 * 16.0 / 18.0).abs() < 1e-9);
    }

    #[test]
    fn a_caller_that_is_harmed_itself_is_set_apart_but_loses_nothing_either() {
        let mut steady = all_answered(100);
        for number in [5, 7] {
            steady.records[number].caller = 1;
            steady.records[number].end = End::Failed("503".to_owned());
        }
        steady.records.pop();
        let outcome = Outcome {
            apart: Some(1),
            ..Outcome::default()
        };
        let figures = count(&steady, &Executions::default(), &outcome);
        assert_eq!((figures.important.ok(), figures.low.ok()), (100.0, 100.0));
        assert_eq!((figures.important.sent, figures.lost), (19, 1));
    }

    #[test]
    fn a_share_is_of_the_requests_due_in_its_span() {
        let mut steady = all_answered(100).records;
        for record in &mut steady[50..] {
            record.answered_by = None;
            record.chosen = Some("sidecar-2".to_owned());
        }
        assert_eq!(share(&steady, "app-1", "sidecar-1", 0, 1_000), 50.0);
        assert_eq!(share(&steady, "app-2", "sidecar-2", 500, 1_000), 100.0);
        assert_eq!(share(&steady, "app-1", "sidecar-1", 500, 1_000), 0.0);
    }
}
