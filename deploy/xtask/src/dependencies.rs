// SPDX-License-Identifier: Apache-2.0
//! Dependencies: each is named by the sources that may use it. A stranger that nobody needs is compiled, checked for
//! its licence and trusted all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use weir_stage::command::Run;

/// Packages and what only the code needs that their build scripts generate.
const GENERATED: [(&str, &str); 2] = [("weir-tables", "tonic"), ("weir-tables", "tonic-prost")];

/// Kinds of dependencies, and where in the folder of a package those sources are that may use them.
const SOURCES: [(Option<&str>, &[&str]); 3] = [
    (None, &["src"]),
    (Some("dev"), &["src", "tests", "benches", "examples"]),
    (Some("build"), &["build.rs"]),
];

/// Adds every name that a path begins with, as in `name::Type` and `use name`, outside of comments.
fn gather_names(path: &Path, names: &mut BTreeSet<String>) {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap();
        entries.for_each(|entry| gather_names(&entry.unwrap().path(), names));
    } else if path.extension().is_some_and(|extension| extension == "rs") && path.is_file() {
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().map(str::trim_start);
        for line in lines.filter(|line| !line.starts_with("//")) {
            names.extend(names_in(line));
            if let Some(elsewhere) = module_elsewhere(line) {
                gather_names(&path.with_file_name(elsewhere), names);
            }
        }
    }
}

/// The file of a module that packages share.
fn module_elsewhere(line: &str) -> Option<&str> {
    line.strip_prefix("#[path = \"")?.strip_suffix("\"]")
}

fn names_in(line: &str) -> Vec<String> {
    let is_path = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | ':');
    let words: Vec<&str> = line.split(|letter| !is_path(letter)).collect();
    let begins = words.iter().filter_map(|word| word.split_once("::"));
    let used = words.windows(2).filter(|pair| pair[0] == "use");
    let used = used.map(|pair| pair[1].trim_end_matches(':'));
    let names = begins.map(|(first, _)| first).chain(used);
    names.map(str::to_owned).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap()
}

/// Names that no source begins a path with.
fn unused(package: &Value) -> Vec<&str> {
    let folder = Path::new(text(package, "manifest_path")).parent().unwrap();
    let named = SOURCES.map(|(kind, places)| {
        let mut names = BTreeSet::new();
        places
            .iter()
            .for_each(|place| gather_names(&folder.join(place), &mut names));
        (kind, names)
    });
    let named = BTreeMap::from(named);
    let dependencies = package["dependencies"].as_array().unwrap().iter();
    dependencies
        .map(|dependency| (dependency["kind"].as_str(), name(dependency)))
        .filter(|(kind, name)| !named[kind].contains(&name.replace('-', "_")))
        .map(|(_, name)| name)
        .collect()
}

/// As the package's own sources call it.
fn name(dependency: &Value) -> &str {
    let renamed = dependency["rename"].as_str();
    renamed.unwrap_or_else(|| text(dependency, "name"))
}

fn packages() -> Vec<Value> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&command.captured().unwrap()).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

#[test]
fn every_dependency_is_named_where_it_may_be_used() {
    let packages = packages();
    let unused: BTreeSet<(&str, &str)> = packages
        .iter()
        .flat_map(|package| {
            let of = text(package, "name");
            unused(package).into_iter().map(move |name| (of, name))
        })
        .collect();
    assert_eq!(unused, BTreeSet::from(GENERATED));
}

#[test]
fn every_dependency_of_the_workspace_is_one_of_a_package() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let root: toml::Value = toml::from_str(&fs::read_to_string(root).unwrap()).unwrap();
    let packages = packages();
    let used: BTreeSet<&str> = packages
        .iter()
        .flat_map(|package| package["dependencies"].as_array().unwrap())
        .map(name)
        .collect();
    let listed = root["workspace"]["dependencies"].as_table().unwrap();
    let mut unused = listed.keys().filter(|name| !used.contains(&***name));
    assert_eq!(unused.next(), None);
}
