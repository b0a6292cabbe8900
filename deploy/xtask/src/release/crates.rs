// SPDX-License-Identifier: Apache-2.0
//! Crates that are of use without the rest, as a registry takes them.

use anyhow::Result;
use weir_stage::command::Run;

use crate::workspace::Workspace;

const CRATES: [&str; 4] = ["weir-events", "weir-policy", "weir-tables", "weir-testkit"];

/// Packs them together, without building what was packed: one that needs another finds it, though no registry has any.
pub(super) fn package(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo();
    command.args(["package", "--locked", "--allow-dirty", "--no-verify"]);
    for name in CRATES {
        command.args(["--package", name]);
    }
    command.shown()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn packages() -> Vec<Value> {
        let workspace = Workspace::find().unwrap();
        let mut command = workspace.cargo();
        command.args(["metadata", "--no-deps", "--format-version", "1"]);
        let metadata: Value = serde_json::from_str(&command.captured().unwrap()).unwrap();
        metadata["packages"].as_array().unwrap().clone()
    }

    /// An empty list of registries is `publish = false`.
    fn is_published(package: &Value) -> bool {
        package["publish"]
            .as_array()
            .is_none_or(|to| !to.is_empty())
    }

    #[test]
    fn crates_for_a_registry_say_what_they_are_and_need_no_other_of_ours() {
        let packages = packages();
        let published = packages.iter().filter(|package| is_published(package));
        let mut names = Vec::new();
        for package in published {
            let name = package["name"].as_str().unwrap();
            names.push(name);
            for field in ["description", "license", "readme", "rust_version"] {
                assert!(package[field].is_string(), "{name}: {field}");
            }
            for field in ["keywords", "categories"] {
                let some = package[field].as_array().unwrap();
                // As many as a registry takes.
                assert!((1..=5).contains(&some.len()), "{name}: {field}");
            }
            let needed = package["dependencies"].as_array().unwrap().iter();
            // Those for tests are left out where they have no version.
            let needed =
                needed.filter(|needed| needed["path"].is_string() && needed["kind"] != "dev");
            for needed in needed {
                let other = needed["name"].as_str().unwrap();
                assert!(CRATES.contains(&other), "{name} needs {other}");
                assert_ne!(needed["req"], "*", "{name} needs {other} without a version");
            }
        }
        names.sort_unstable();
        assert_eq!(names, CRATES);
    }
}
