// SPDX-License-Identifier: Apache-2.0
//! The threat model names tests that exist.

use std::collections::BTreeSet;
use std::path::Path;

/// Names of functions in all Rust files below.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            functions(&path, found);
        } else if name.ends_with(".rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.lines().filter_map(|line| {
                let line = line.trim_start();
                let rest = line
                    .strip_prefix("fn ")
                    .or_else(|| line.strip_prefix("async fn "));
                let quoted = line.strip_prefix('"');
                let name = rest.or(quoted)?;
                let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
                Some(name[..end].to_owned())
            });
            found.extend(names);
        }
    }
}

#[test]
fn every_line_of_the_threat_model_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let model = std::fs::read_to_string(root.join("envoy-config/THREAT_MODEL.md")).unwrap();
    let mut found = BTreeSet::new();
    for folder in ["control-plane", "filters", "node-governor", "deploy"] {
        functions(&root.join(folder), &mut found);
    }
    let rows = model
        .lines()
        .filter(|line| line.starts_with('|') && !line.starts_with("|-"));
    let (mut lines, mut named) = (0, 0);
    for row in rows {
        let shown = row.trim_end_matches('|').rsplit('|').next().unwrap().trim();
        if shown == "shown by" {
            continue;
        }
        lines += 1;
        let tests: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test is named in {row}");
        for test in tests {
            assert!(found.contains(test), "there is no test {test}: {row}");
            named += 1;
        }
    }
    assert!(lines > 20 && named >= lines, "{lines} lines, {named} tests");
}
