// SPDX-License-Identifier: Apache-2.0
//! Fields of a configuration file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use weir_settings::{Entry, Seen, Shape};

use crate::{cell, code};

/// A table of every field that `File` may have, with what was seen of it when files were read.
///
/// # Panics
/// A field has no meaning or was not read, or one was read that the file may not have.
pub fn fields<File: Shape>(seen: &[Seen]) -> String {
    let mut entries = Vec::new();
    File::entries("", "", &mut entries);
    let known: BTreeSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let mut by_name: BTreeMap<&str, Vec<&Seen>> = BTreeMap::new();
    for seen in seen {
        assert!(
            known.contains(&*seen.name),
            "{} was read and is no field",
            seen.name
        );
        by_name.entry(&seen.name).or_default().push(seen);
    }
    let mut page = String::from(
        "\n| field | written as | default | range | meaning |\n|---|---|---|---|---|\n",
    );
    let mut unread = Vec::new();
    for entry in &entries {
        let seen = by_name.get(&*entry.name).map_or(&[][..], |seen| seen);
        let inside = format!("{}.", entry.name);
        let is_group = known.iter().any(|name| name.starts_with(&inside));
        if seen.is_empty() && !is_group {
            unread.push(&entry.name);
        }
        row(&mut page, entry, seen);
    }
    assert!(
        unread.is_empty(),
        "read files that have these fields, too: {unread:?}"
    );
    page
}

fn row(page: &mut String, entry: &Entry, seen: &[&Seen]) {
    let Entry { name, meaning } = entry;
    assert!(!meaning.is_empty(), "{name}: nothing is said of it");
    let kind = seen.first().map_or("section", |seen| seen.kind.as_str());
    let default = seen.iter().find_map(|seen| seen.default.as_deref());
    let default = match meaning {
        _ if meaning.starts_with("Required") => "required".to_owned(),
        // Said in words, because it is no value or depends on another field.
        _ if meaning.contains("Default:") || meaning.contains("Absent:") => "–".to_owned(),
        _ => code(default),
    };
    let range = seen.iter().find_map(|seen| seen.range.as_deref());
    let range = range.map_or_else(|| "–".to_owned(), cell);
    let _ = writeln!(
        page,
        "| `{name}` | {kind} | {} | {range} | {} |",
        default,
        cell(meaning)
    );
}
