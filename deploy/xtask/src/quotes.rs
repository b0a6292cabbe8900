// SPDX-License-Identifier: Apache-2.0
//! Pages that quote figures of others: each has to be where the quoted page has it, so that a run that is done again
//! changes both.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::documents::{figures, value, values_of};
use crate::links::{files, prose, root, targets};

/// The pages that quote in tables whose rows, or heads, link what they quote.
const LINKING: [&str; 2] = ["filters/policy/CHOOSE.md", "envoy-config/LIMITS.md"];

/// The pages that are linked in a text, beside `folder`.
fn linked(text: &str, folder: &Path) -> BTreeSet<u64> {
    let pages = targets(text).into_iter();
    let pages = pages.filter_map(|target| target.split('#').next());
    let pages = pages.filter(|page| page.ends_with(".md"));
    pages
        .flat_map(|page| values_of(&folder.join(page)))
        .collect()
}

/// Without links' targets and code.
fn plain(row: &str) -> String {
    let prose = prose(row);
    let mut parts = prose.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, rest| {
        text + rest.split_once(')').map_or("", |(_, rest)| rest)
    })
}

/// Figures of rows that no page has which the row or its table's head links.
fn strays(page: &Path) -> Vec<String> {
    let folder = page.parent().unwrap();
    let (mut strays, mut head) = (Vec::new(), None);
    for row in fs::read_to_string(page).unwrap().lines() {
        if !row.starts_with('|') {
            head = None;
            continue;
        }
        let mut there = linked(row, folder);
        let head = head.get_or_insert_with(|| there.clone());
        there.extend(head.iter());
        let quoted = figures(&plain(row)).into_iter();
        let stray = |figure: &String| !there.is_empty() && !there.contains(&value(figure));
        strays.extend(
            quoted
                .filter(stray)
                .map(|figure| format!("{figure} in {row:.60}")),
        );
    }
    strays
}

#[test]
fn tables_that_quote_a_page_have_its_figures() {
    for page in LINKING {
        assert_eq!(strays(&root().join(page)), Vec::<String>::new(), "{page}");
    }
}

#[test]
fn figures_of_the_first_page_are_on_a_page_of_results() {
    let results = ["RESULTS.md", "EXPERIMENTS.md", "BENCH.md"];
    let results = results.map(|name| files(&root().join("loadtest"), name));
    let there: BTreeSet<u64> = results
        .iter()
        .flatten()
        .flat_map(|page| values_of(page))
        .collect();
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, table) = text
        .split_once("| question | Weir | beside it | command |")
        .unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let rows = table.lines().map(plain);
    let figures: Vec<_> = rows.flat_map(|row| figures(&row)).collect();
    assert!(figures.len() > 20, "{figures:?}");
    let stray = |figure: &&String| !there.contains(&value(figure));
    let strays: Vec<_> = figures.iter().filter(stray).collect();
    assert!(strays.is_empty(), "{strays:?}");
}
