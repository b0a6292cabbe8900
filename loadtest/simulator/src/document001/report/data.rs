// SPDX-License-Identifier: Apache-2.0
//! The numbers behind tables and figures, as CSV.

use std::fmt::Write;

use super::{Outcome, PRIORITIES, Quantity, over};
use crate::document001::published::COLUMNS;

/// Tables 4 to 7 and the means and percentiles of figures 4 to 13: a line for each number.
#[must_use]
pub fn tables_csv(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "table,run,priority,statistic,published,simulated_mean,least_seed,most_seed\n",
    );
    let mut line = |table: u32,
                    run: &str,
                    priority: &str,
                    statistic: &str,
                    published: f64,
                    of: (f64, f64, f64)| {
        let (mean, least, most) = of;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{table},\"{run}\",{priority},{statistic},{published},{mean:.6},{least:.6},{most:.6}"
        );
    };
    for outcome in outcomes {
        let run = outcome.name();
        for (quantity, table, _) in Quantity::ALL {
            for (number, priority) in PRIORITIES.into_iter().enumerate() {
                let published = outcome.published(quantity, number);
                for (column, statistic) in COLUMNS.into_iter().enumerate() {
                    let of = outcome.column(quantity, number, column);
                    line(table, run, priority, statistic, published[column], of);
                }
            }
        }
        let Some(spread) = outcome.spread() else {
            continue;
        };
        let variance = |tally: &crate::tally::Tally| tally.variances().0;
        let all = over(outcome.tallies.iter().map(variance));
        line(6, run, "low", "variance", spread.variance, all);
        for (server, published) in spread.variances.into_iter().enumerate() {
            let of = |tally: &crate::tally::Tally| {
                tally.variances().1.get(server).copied().unwrap_or(f64::NAN)
            };
            let statistic = format!("variance of server {server}");
            let of = over(outcome.tallies.iter().map(of));
            line(6, run, "low", &statistic, published, of);
        }
    }
    text
}

/// Figures 14 and 15: every change of a server's state or level, of the first seed.
#[must_use]
pub fn history_csv(outcomes: &[Outcome]) -> String {
    let mut text = String::from("run,server,at_s,up,overloaded,level\n");
    for outcome in outcomes {
        let run = outcome.name();
        let first = outcome.tallies.first();
        let hosts = first.into_iter().flat_map(|tally| tally.history.hosts());
        for (server, changes) in hosts.enumerate() {
            for change in changes {
                let (at, up) = (change.at.as_secs_f64(), change.up);
                let (overloaded, level) = (change.overloaded, change.level);
                let _ = writeln!(text, "\"{run}\",{server},{at:.3},{up},{overloaded},{level}");
            }
        }
    }
    text
}
