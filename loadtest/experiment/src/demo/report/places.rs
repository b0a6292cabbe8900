// SPDX-License-Identifier: Apache-2.0
//! Where each key's requests went.

use std::collections::HashMap;

use weir_report::{Figure, Heat, HeatRow, Panels, Report};

use crate::demo::kept::Told;
use crate::demo::report::story::Story;
use crate::replay::Record;

/// Keys with a row of their own.
const KEYS: usize = 10;

pub(super) fn add(page: &mut Report, story: &Story<'_>) {
    // The workload is the same for every way.
    let records = &story.ways[0].records;
    let top = top(records);
    let covered: usize = top.iter().map(|(_, count)| count).sum();
    page.heading("Where each key's requests went");
    if top.is_empty() {
        page.text("No request had a key.");
        return;
    }
    page.panels(&Panels {
        title: format!("The {} most wanted keys and all others", top.len()),
        figures: story
            .ways
            .iter()
            .map(|told| Figure::Heat(heat(told, &top, records.len())))
            .collect(),
        caption: format!(
            "Of a key's served requests, how many per cent each host answered; the number after the key is its share of \
             all requests. The keys with rows have {:.0} % of them. One strong cell in a row: the key stays with one \
             host and its cache. A strong column: a host that has more than its part.",
            100.0 * covered as f64 / records.len() as f64
        ),
    });
}

/// The keys with most requests, and how many; by name where these are equal.
fn top(records: &[Record]) -> Vec<(&str, usize)> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for record in records.iter().filter(|record| !record.key.is_empty()) {
        *counts.entry(&record.key).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    counts.truncate(KEYS);
    counts
}

fn heat(told: &Told, top: &[(&str, usize)], requests: usize) -> Heat {
    let part = |count: usize| format!("{:.1} %", 100.0 * count as f64 / requests as f64);
    let mut rows: Vec<HeatRow> = top
        .iter()
        .map(|(key, count)| HeatRow {
            label: format!("{} · {}", short(key), part(*count)),
            shares: shares(told, |record| record.key == *key),
        })
        .collect();
    rows.push(HeatRow {
        label: "all others".to_owned(),
        shares: shares(told, |record| top.iter().all(|(key, _)| record.key != *key)),
    });
    rows.push(HeatRow {
        label: "all".to_owned(),
        shares: shares(told, |_| true),
    });
    let hosts = (1..=told.hosts.len()).map(|host| host.to_string());
    Heat {
        title: told.name.clone(),
        header: std::iter::once("key · share, host".to_owned())
            .chain(hosts)
            .collect(),
        rows,
        caption: String::new(),
    }
}

/// Each host's part of the served requests; not numbers if none was.
fn shares(told: &Told, of: impl Fn(&Record) -> bool) -> Vec<f64> {
    let names: Vec<String> = told.hosts.iter().map(ToString::to_string).collect();
    let mut counts = vec![0.0; names.len()];
    for served in told
        .records
        .iter()
        .filter(|r| of(r))
        .flat_map(|r| &r.served)
    {
        if let Some(host) = names.iter().position(|name| *name == served.host) {
            counts[host] += 1.0;
        }
    }
    let all: f64 = counts.iter().sum();
    counts.iter().map(|count| count / all).collect()
}

/// What fits beside numbers on a phone.
fn short(key: &str) -> String {
    const LONGEST: usize = 12;
    if key.chars().count() <= LONGEST {
        return key.to_owned();
    }
    let start: String = key.chars().take(LONGEST - 1).collect();
    start + "…"
}
