// SPDX-License-Identifier: Apache-2.0
//! Tables 4 to 7, each number beside the published one.

use std::fmt::Write;

use weir_report::{Report, Table};

use super::{Made, Outcome, PRIORITIES, Quantity};
use crate::document001::history::Change;
use crate::document001::published::COLUMNS;
use crate::tally::Tally;

/// Two or three digits that count; what is below a millisecond is below what is modelled.
fn short(value: f64) -> String {
    match value {
        value if !value.is_finite() => "–".to_owned(),
        value if value < 0.001 => "<0.001".to_owned(),
        value if value < 0.1 => format!("{value:.3}"),
        value if value < 100.0 => format!("{value:.2}"),
        value => format!("{value:.0}"),
    }
}

/// All tables with their titles.
fn tables(outcomes: &[Outcome], made: Made) -> Vec<(String, Table)> {
    let mut tables = Vec::new();
    for (quantity, number, name) in Quantity::ALL {
        for (priority, of) in PRIORITIES.into_iter().enumerate() {
            let title = format!("Table {number}, priority {of}: {name}");
            tables.push((title, statistics(outcomes, made, quantity, priority)));
        }
        if quantity == Quantity::Wait {
            let title = "Table 6: variance of low waits / s², of all servers and of each";
            tables.push((title.to_owned(), variances(outcomes, made)));
        }
    }
    let title = "Order by the mean of priority low".to_owned();
    tables.push((title, orders(outcomes, made)));
    let title = "What document 001 does not print".to_owned();
    tables.push((title, others(outcomes)));
    tables
}

fn statistics(outcomes: &[Outcome], made: Made, quantity: Quantity, priority: usize) -> Table {
    let mut header = vec!["run".to_owned()];
    for statistic in COLUMNS {
        header.push(format!("{statistic} {made}"));
        header.push("published".to_owned());
    }
    header.push("mean of each seed, least–most".to_owned());
    let row = |outcome: &Outcome| {
        let mut row = vec![outcome.name().to_owned()];
        let published = outcome.published(quantity, priority);
        for (column, published) in published.into_iter().enumerate() {
            row.push(short(outcome.column(quantity, priority, column).0));
            row.push(short(published));
        }
        let (_, least, most) = outcome.column(quantity, priority, 0);
        row.push(format!("{}–{}", short(least), short(most)));
        row
    };
    Table {
        header,
        rows: outcomes.iter().map(row).collect(),
    }
}

fn variances(outcomes: &[Outcome], made: Made) -> Table {
    let of_made = format!("{made} (servers: first seed)");
    let mut header = vec!["run".to_owned(), String::new(), "all".to_owned()];
    header.extend((0..14).map(|server| server.to_string()));
    let mut rows = Vec::new();
    for outcome in outcomes {
        let all = outcome.mean(|tally| tally.variances().0);
        let first = outcome.tallies.first().map(Tally::variances);
        let each = first.map(|(_, each)| each).unwrap_or_default();
        let row = |of: &str, all: f64, each: &[f64]| {
            let mut row = vec![outcome.name().to_owned(), of.to_owned(), short(all)];
            row.extend(each.iter().map(|variance| short(*variance)));
            row
        };
        rows.push(row(&of_made, all, &each));
        if let Some(spread) = outcome.spread() {
            rows.push(row("published", spread.variance, &spread.variances));
        }
    }
    Table { header, rows }
}

fn orders(outcomes: &[Outcome], made: Made) -> Table {
    let order = |of: &dyn Fn(&Outcome) -> f64| {
        let mut sorted: Vec<_> = outcomes.iter().collect();
        sorted.sort_by(|a, b| of(a).total_cmp(&of(b)));
        let named = sorted
            .into_iter()
            .map(|one| format!("{} {}", one.name(), short(of(one))));
        named.collect::<Vec<_>>().join(" < ")
    };
    let row = |name: &str, quantity: Quantity| {
        vec![
            name.to_owned(),
            order(&|one| one.column(quantity, 1, 0).0),
            order(&|one| one.published(quantity, 1)[0]),
        ]
    };
    Table {
        header: vec![String::new(), made.to_string(), "published".to_owned()],
        rows: vec![
            row("wait", Quantity::Wait),
            row("duration", Quantity::Duration),
        ],
    }
}

fn others(outcomes: &[Outcome]) -> Table {
    let header = [
        "run",
        "requests",
        "failed",
        "shed attempts a request",
        "first server connected",
        "connection time-outs",
        "queue time-outs",
        "hit ratio",
        "all-in mean, high / s",
        "all-in mean, low / s",
        "servers' time down",
        "with more than 100 stalled joblets",
        "level reversals an hour",
    ];
    let row = |outcome: &Outcome| {
        let share =
            |of: fn(&Tally) -> u64| format!("{:.4}", outcome.mean(|tally| tally.share(of(tally))));
        let time = |of: fn(&Change) -> bool| format!("{:.4}", outcome.mean(|tally| tally.time(of)));
        vec![
            outcome.name().to_owned(),
            format!("{:.0}", outcome.mean(|tally| tally.requests as f64)),
            share(|tally| tally.failed),
            share(|tally| tally.shed),
            share(|tally| tally.first_connected),
            share(|tally| tally.connect_timeouts),
            share(|tally| tally.queue_timeouts),
            format!(
                "{:.3}",
                outcome.mean(|t| t.hits as f64 / t.answers.max(1) as f64)
            ),
            short(outcome.mean(|tally| tally.all_in()[0][0])),
            short(outcome.mean(|tally| tally.all_in()[1][0])),
            time(|change| !change.up),
            time(|change| change.overloaded),
            format!(
                "{:.1}",
                outcome.mean(|t| t.history.reversals() as f64 / t.hours)
            ),
        ]
    };
    Table {
        header: header.map(str::to_owned).to_vec(),
        rows: outcomes.iter().map(row).collect(),
    }
}

/// All tables as Markdown, under headings of the third level.
#[must_use]
pub fn markdown(outcomes: &[Outcome], made: Made) -> String {
    let mut text = String::new();
    for (title, table) in tables(outcomes, made) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "### {title}\n\n| {} |", table.header.join(" | "));
        let _ = writeln!(text, "|{}", "---|".repeat(table.header.len()));
        for row in &table.rows {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        text.push('\n');
    }
    text
}

/// All tables, onto a page.
pub fn add_tables(report: &mut Report, outcomes: &[Outcome], made: Made) {
    for (title, table) in tables(outcomes, made) {
        report.heading(&title);
        report.table(&table);
    }
}
