// SPDX-License-Identifier: Apache-2.0
//! The table that the command prints, for a page.

use weir_report::{Report, Table};

use crate::demo::kept::Told;
use crate::demo::report::answer::percent;
use crate::demo::report::story::Story;
use crate::demo::table::{Row, Spread, milliseconds};

pub(super) fn add(page: &mut Report, story: &Story<'_>) {
    page.heading("All figures");
    let table = |header: &[&str], cells: fn(&Row) -> Vec<String>| Table {
        header: header.iter().map(|name| (*name).to_owned()).collect(),
        rows: rows(story, cells),
    };
    page.text("Duration in ms: of all requests, from the offset in the workload to the last answer or the giving up, back-off and retries included.");
    page.table(&table(&SPREAD, |row| {
        let mut cells = vec![row.requests.to_string()];
        cells.extend(spread(&row.duration));
        cells
    }));
    page.text("Wait in the host in ms: of those served, time in which nothing ran for them.");
    page.table(&table(&SPREAD, |row| {
        let mut cells = vec![(row.requests - row.failed).to_string()];
        cells.extend(spread(&row.wait));
        cells
    }));
    page.text("Hit: served requests that found their data. Shed: attempts refused, each tried again. Failed: requests without a good answer. Uneven: deviation over mean of the hosts' mean waits; 0 is even.");
    let header = ["way", "priority", "hit", "shed", "failed", "uneven"];
    page.table(&table(&header, |row| {
        let uneven = match row.unevenness.is_finite() {
            true => format!("{:.2}", row.unevenness),
            false => "–".to_owned(),
        };
        vec![
            percent(row.hits),
            row.shed.to_string(),
            row.failed.to_string(),
            uneven,
        ]
    }));
    page.text("What the Envoys did; they, their connections and their CPU time are real. Outside: of requests answered at their first attempt, time in ms that was not in the host, the replayer's own lag left out. CPU in ms a request. Connections to hosts: opened, and open at the end. Given back: requests that hosts gave back, and the same a request. Runs: jobs begun by hosts, a request.");
    page.table(&Table {
        header: ENVOYS.map(str::to_owned).to_vec(),
        rows: story.ways.iter().map(envoys).collect(),
    });
}

const ENVOYS: [&str; 10] = [
    "way",
    "outside p50",
    "p90",
    "callers' CPU",
    "opened",
    "open",
    "hosts' CPU",
    "given back",
    "a request",
    "runs",
];

fn envoys(told: &Told) -> Vec<String> {
    let name = [told.name.clone()];
    name.into_iter().chain(told.envoys().cells()).collect()
}

const SPREAD: [&str; 8] = [
    "way", "priority", "requests", "mean", "p50", "p90", "p95", "p99",
];

fn spread(spread: &Spread) -> [String; 5] {
    [spread.mean, spread.p50, spread.p90, spread.p95, spread.p99].map(milliseconds)
}

/// A line for each way and priority.
fn rows(story: &Story<'_>, cells: fn(&Row) -> Vec<String>) -> Vec<Vec<String>> {
    let rows = story.figures().flat_map(|way| &way.by_priority);
    let row = |row: &Row| {
        let names = [row.way.clone(), row.priority.clone()];
        names.into_iter().chain(cells(row)).collect()
    };
    rows.map(row).collect()
}
