// SPDX-License-Identifier: Apache-2.0
//! YAML as JSON values.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::needs;

/// The documents of a text.
#[track_caller]
pub(crate) fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

/// The only document of that kind in a file of the repository.
#[track_caller]
pub(crate) fn resource(file: &str, kind: &str) -> Value {
    let path = needs::root().join(file);
    let mut found = documents(&read(&path));
    found.retain(|document| document["kind"] == kind);
    assert_eq!(found.len(), 1, "{kind} in {file}");
    found.remove(0)
}

#[track_caller]
pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
