// SPDX-License-Identifier: Apache-2.0
//! Documents: their links lead somewhere, and READMEs stay short.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::commands::commands_named_in;

/// Words of a README: what is longer belongs into DESIGN.md, RESULTS.md or a generated reference.
const WORDS: usize = 1000;
/// Lines of the project's own.
const LINES: usize = 150;

/// Of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below whose name ends so, but those of builds and of what is installed.
pub(crate) fn files(folder: &Path, ends: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_other = name.starts_with('.') || name == "target" || name == "node_modules";
        if path.is_dir() && !is_other {
            found.extend(files(&path, ends));
        } else if name.ends_with(ends) {
            found.push(path);
        }
    }
    found
}

fn all() -> Vec<PathBuf> {
    let found = files(&root(), ".md");
    assert!(found.len() > 50, "{found:?}");
    found
}

/// Lines outside of code blocks, without inline code.
pub(crate) fn prose(text: &str) -> String {
    let mut within = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            within = !within;
        } else if !within {
            let parts = line.split('`').enumerate();
            let parts = parts.filter(|(index, _)| index % 2 == 0);
            prose.extend(parts.map(|(_, part)| part));
            prose.push('\n');
        }
    }
    prose
}

/// Targets of `[text](target)`.
pub(crate) fn targets(text: &str) -> Vec<&str> {
    let ends = text.split("](").skip(1);
    ends.filter_map(|rest| rest.split(')').next()).collect()
}

/// Names by which GitHub knows the headings of a document.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut within = false;
    for line in text.lines() {
        within ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if within || title == line || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().to_lowercase();
        let kept = kept.replace(' ', "-");
        let kept = kept
            .chars()
            .filter(|c| c.is_alphanumeric() || "-_".contains(*c));
        let name: String = kept.collect();
        let same = |name: &str| match found.contains(name) {
            true => (1..)
                .map(|n| format!("{name}-{n}"))
                .find(|n| !found.contains(n)),
            false => Some(name.to_owned()),
        };
        let name = same(&name).unwrap_or(name);
        found.insert(name);
    }
    found
}

/// The path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// Why a link leads nowhere.
fn broken(document: &Path, text: &str, target: &str) -> Option<String> {
    let is_other = target.contains("://") || target.starts_with("mailto:");
    if is_other {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let mut file = match path {
        "" => document.to_owned(),
        path => plain(&document.parent()?.join(path)),
    };
    if !file.exists() {
        return Some(format!("{}: no file {target}", document.display()));
    }
    if file.is_dir() {
        file.push("README.md");
    }
    if anchor.is_empty() || file.extension().is_none_or(|kind| kind != "md") {
        return None;
    }
    let there = match path {
        "" => text.to_owned(),
        _ => fs::read_to_string(&file).unwrap_or_default(),
    };
    let found = anchors(&there).contains(anchor);
    (!found).then(|| format!("{}: no heading {target}", document.display()))
}

#[test]
fn every_link_of_every_document_leads_somewhere() {
    let mut wrong = Vec::new();
    for document in all() {
        let document = plain(&document);
        let text = fs::read_to_string(&document).unwrap();
        let prose = prose(&text);
        let targets = targets(&prose).into_iter();
        wrong.extend(targets.filter_map(|target| broken(&document, &text, target)));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn readmes_are_short() {
    let mut long = Vec::new();
    for document in all() {
        if document.file_name().is_some_and(|name| name == "README.md") {
            let words = fs::read_to_string(&document).unwrap();
            let words = words.split_whitespace().count();
            if words > WORDS {
                long.push(format!("{}: {words} words", plain(&document).display()));
            }
        }
    }
    assert!(long.is_empty(), "{long:#?}");
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= LINES);
}

#[test]
fn every_command_that_a_document_names_exists() {
    for document in all() {
        // The changelog names those of their time.
        if document
            .file_name()
            .is_some_and(|name| name == "CHANGELOG.md")
        {
            continue;
        }
        let text = fs::read_to_string(&document).unwrap();
        commands_named_in(&document, &text);
    }
}

#[test]
fn a_link_to_nowhere_is_found() {
    let readme = root().join("README.md");
    let text = "# A `b` c\n\n## A b c\n";
    assert_eq!(
        anchors(text).into_iter().collect::<Vec<_>>(),
        ["a-b-c", "a-b-c-1"]
    );
    for (target, is_broken) in [
        ("LICENSE", false),
        ("LICENCE", true),
        ("#a-b-c-1", false),
        ("#d", true),
        ("filters#glossary", false),
        ("filters/README.md#no-such", true),
        ("https://example.com/x", false),
    ] {
        assert_eq!(
            broken(&readme, text, target).is_some(),
            is_broken,
            "{target}"
        );
    }
    assert_eq!(prose("a `[b](c)` d\n```\n[e](f)\n```\n"), "a  d\n");
}
