// SPDX-License-Identifier: Apache-2.0
//! Metrics, of a page in OpenMetrics' text format.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::cell;

#[derive(Default)]
struct Family {
    kind: String,
    unit: String,
    help: String,
    /// Labels and their values, in the order of the page.
    labels: Vec<(String, BTreeSet<String>)>,
}

/// A table of the page's families. Values of labels are shown where the page has them.
///
/// # Panics
/// A family has no type or no help.
pub fn metrics(page: &str) -> String {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for line in page.lines().filter(|line| *line != "# EOF") {
        match line.strip_prefix("# ") {
            Some(about) => describe(&mut families, about),
            None => series(&mut families, line),
        }
    }
    let mut table = String::from("\n| metric | type | labels | meaning |\n|---|---|---|---|\n");
    for (name, family) in &families {
        assert!(!family.kind.is_empty() && !family.help.is_empty(), "{name}");
        let suffix = match family.kind.as_str() {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let _ = writeln!(
            table,
            "| `{name}{suffix}` | {} | {} | {} |",
            match family.unit.as_str() {
                "" => family.kind.clone(),
                unit => format!("{}, {unit}", family.kind),
            },
            labels(&family.labels),
            cell(&family.help)
        );
    }
    table
}

fn describe(families: &mut BTreeMap<String, Family>, about: &str) {
    let mut parts = about.splitn(3, ' ');
    let (Some(what), Some(name), Some(text)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
    let family = families.entry(name.to_owned()).or_default();
    match what {
        "HELP" => family.help = text.trim_end_matches('.').to_owned(),
        "TYPE" => family.kind = text.to_owned(),
        "UNIT" => family.unit = text.to_owned(),
        _ => {}
    }
}

fn series(families: &mut BTreeMap<String, Family>, line: &str) {
    let Some((name, rest)) = line.split_once('{') else {
        return;
    };
    let mut names = families.keys().rev();
    let Some(name) = names
        .find(|family| name.starts_with(family.as_str()))
        .cloned()
    else {
        return;
    };
    let Some(family) = families.get_mut(&name) else {
        return;
    };
    let mut rest = rest;
    while let Some((label, after)) = rest.split_once("=\"") {
        let Some((value, after)) = after.split_once('"') else {
            return;
        };
        let label = label.trim_start_matches(',').to_owned();
        if family.labels.iter().all(|(known, _)| *known != label) {
            family.labels.push((label.clone(), BTreeSet::new()));
        }
        let known = family.labels.iter_mut().find(|(known, _)| *known == label);
        // A number is one of many.
        let is_name = value.parse::<f64>().is_err() && !value.is_empty() && label != "version";
        if let Some((_, values)) = known.filter(|_| is_name) {
            values.insert(value.to_owned());
        }
        rest = after;
    }
}

/// `name`, or `name`: its values.
fn labels(labels: &[(String, BTreeSet<String>)]) -> String {
    let shown = labels.iter().map(|(label, values)| {
        let values: Vec<_> = values
            .iter()
            .map(|value| format!("`{}`", cell(value)))
            .collect();
        match values.is_empty() {
            true => format!("`{label}`"),
            false => format!("`{label}`: {}", values.join(", ")),
        }
    });
    let shown: Vec<_> = shown.collect();
    match shown.is_empty() {
        true => "–".to_owned(),
        false => shown.join("; "),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn families_are_listed_with_type_unit_and_labels() {
        let page = "# HELP a_polls Polls of hosts.\n# TYPE a_polls counter\na_polls_total{source=\"\",result=\"ok\"} 1\n\
            # HELP a_size_bytes Sizes.\n# TYPE a_size_bytes gauge\n# UNIT a_size_bytes bytes\na_size_bytes 0\n# EOF\n";
        let table = super::metrics(page);
        for row in [
            "| `a_polls_total` | counter | `source`; `result`: `ok` | Polls of hosts |",
            "| `a_size_bytes` | gauge, bytes | – | Sizes |",
        ] {
            assert!(table.contains(row), "{table}");
        }
    }
}
