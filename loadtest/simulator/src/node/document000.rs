// SPDX-License-Identifier: Apache-2.0
//! Medeiros, *Analysis of Hurry-Up Scheduling Performance*, 2018: do few changes make for short service times?
//!
//! Its scheduler moves threads up and down between big and little cores, every 100 ms or 200 ms. Here cores change their
//! frequency instead, each change for 10 µs.

use weir_report::Table;

use super::cell::{Cell, Costs, Lab};
use super::document002::facts::unchanging;
use super::document002::report::spread;
use super::{Governor, Load, MAX, Outcome, Terms};

/// Between ticks, in milliseconds: 10 is for comparison.
const PERIODS_MS: [u64; 3] = [10, 100, 200];
/// More wait longer until a core is fast, and change less.
const THRESHOLDS_MS: [u64; 4] = [50, 150, 300, 450];

/// *Instrumented* has events and ticks and changes nothing, *Scheduled* is `three_state`.
fn ways(period_ms: u64) -> Vec<(String, Governor)> {
    let instrumented = match unchanging(MAX) {
        Governor::Policy(policy, _) => {
            Governor::Policy(policy, std::time::Duration::from_millis(period_ms))
        }
        other => other,
    };
    let scheduled = |threshold_ms: u64| {
        let name = format!("Scheduled, threshold {threshold_ms} ms");
        (name, Governor::three_state(threshold_ms, period_ms))
    };
    let mut ways = vec![("Instrumented, 2.6 GHz".to_owned(), instrumented)];
    ways.extend(THRESHOLDS_MS.map(scheduled));
    ways
}

fn changes_a_query(outcome: &Outcome) -> f64 {
    outcome.transitions as f64 / outcome.latencies.len().max(1) as f64
}

/// Changes of frequency beside service times.
pub fn table(lab: &mut Lab) -> Table {
    let mut rows = Vec::new();
    for terms in [Terms::Low, Terms::Mixed, Terms::High] {
        for period_ms in PERIODS_MS {
            for (name, governor) in ways(period_ms) {
                let cell = Cell::new(governor, Costs::Document, Load::base(terms, 1));
                let outcomes = lab.outcomes(&cell);
                let each =
                    |of: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(of).collect::<Vec<_>>();
                rows.push(vec![
                    terms.name().to_owned(),
                    name,
                    period_ms.to_string(),
                    spread(&each(&changes_a_query), 2),
                    spread(&each(&|one| one.quantile(0.5)), 3),
                    spread(&each(&Outcome::mean), 3),
                    spread(&each(&|one| one.quantile(0.99)), 3),
                ]);
            }
        }
    }
    let header = [
        "load",
        "way",
        "tick / ms",
        "changes of frequency a query",
        "p50 / s",
        "mean / s",
        "p99 / s",
    ];
    Table::new(header, rows)
}
