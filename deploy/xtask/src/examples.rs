// SPDX-License-Identifier: Apache-2.0
//! Examples in the documentation of libraries: run where there are some. Where there are none, nothing looks for them:
//! that takes a second or two a library, in each run of the tests.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use weir_stage::command::Run;

use crate::workspace::Workspace;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
    doctest: bool,
}

/// The text has an example that would be run.
fn has_example(text: &str) -> bool {
    let lines = text.lines().map(str::trim_start);
    let documentation = lines
        .filter_map(|line| {
            line.strip_prefix("///")
                .or_else(|| line.strip_prefix("//!"))
        })
        .map(str::trim);
    let mut fences = documentation.filter_map(|line| line.strip_prefix("```"));
    // Every second one ends what the one before has begun.
    while let Some(language) = fences.next() {
        if !["text", "sh", "json", "yaml", "toml", "c"].contains(&language) {
            return true;
        }
        fences.next();
    }
    false
}

fn any_has_example(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            return any_has_example(&path);
        }
        let is_code = path.extension().is_some_and(|kind| kind == "rs");
        is_code && has_example(&fs::read_to_string(&path).unwrap())
    })
}

#[test]
fn libraries_are_searched_for_examples_where_they_have_some() {
    let workspace = Workspace::find().unwrap();
    let mut command = workspace.cargo();
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Metadata = serde_json::from_str(&command.captured().unwrap()).unwrap();
    let targets = metadata
        .packages
        .iter()
        .flat_map(|package| &package.targets);
    let libraries = targets.filter(|target| target.kind.iter().any(|kind| kind.ends_with("lib")));
    for library in libraries {
        let folder = library.src_path.parent().unwrap();
        let says = "of its Cargo.toml: `doctest = false` in [lib], but where the documentation has examples";
        assert_eq!(
            library.doctest,
            any_has_example(folder),
            "{folder:?}, {says}"
        );
    }
}

#[test]
fn pictures_and_commands_are_no_examples() {
    assert!(has_example("/// ```\n/// let x = 1;\n/// ```\n"));
    assert!(has_example(
        "//! ```text\n//! a\n//! ```\n//! ```no_run\n//! b\n//! ```\n"
    ));
    assert!(!has_example(
        "//! ```text\n//! a ``` b\n//! ```\n// ```\nlet x = \"```\";\n"
    ));
    assert!(!has_example("/// ```sh\n/// ls\n/// ```\n"));
}
