// SPDX-License-Identifier: Apache-2.0
//! The packages of the workspace, and what each says of its tests in `[package.metadata.weir]` of its `Cargo.toml`.
//!
//! | field | meaning | default |
//! | --- | --- | --- |
//! | `needs` | what its tests meet beside crates: see [`Need`] | nothing |
//! | `slow` | test programs that take half a minute or more, mostly waiting: started first | none |
//! | `alone` | test programs that measure the machine's cores, so that nothing may run beside them | none |

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use weir_stage::command::Run;

use crate::workspace::Workspace;

/// What the tests of a package meet that Cargo does not build for them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Need {
    Envoy,
    /// The filter, as Envoy loads it.
    Filter,
    /// The workspace's own programs.
    Programs,
    Consul,
    Prometheus,
    K6,
    /// Rules of accessibility.
    Axe,
    /// A browser.
    Chromium,
    /// A client of language models.
    Openai,
    /// Load on language models.
    Aiperf,
    /// A discovery client that go-control-plane's types make.
    XdsClient,
    Memcached,
    /// Programs that node's batch jobs run.
    Batch,
    /// A QEMU guest with a kernel of its own.
    Guest,
    /// The events agent and the search node.
    Java,
    /// Readers of what users install.
    Readers,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Packages {
    packages: Vec<Written>,
}

#[derive(Debug, Deserialize)]
struct Written {
    name: String,
    manifest_path: PathBuf,
    #[serde(default)]
    metadata: Option<Metadata>,
    #[serde(default)]
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    /// Whether `cargo test` plays it without being told its name.
    test: bool,
    /// Whether it may have examples in its documentation, which are tests.
    doctest: bool,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    weir: Weir,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Weir {
    #[serde(default)]
    needs: BTreeSet<Need>,
    #[serde(default)]
    alone: BTreeSet<String>,
    #[serde(default)]
    slow: BTreeSet<String>,
}

/// One of them.
pub(crate) struct Package<'a> {
    pub(crate) name: &'a str,
    pub(crate) alone: &'a BTreeSet<String>,
    pub(crate) slow: &'a BTreeSet<String>,
}

impl Packages {
    pub(crate) fn find(workspace: &Workspace) -> Result<Self> {
        let mut command = workspace.cargo();
        command.args(["metadata", "--no-deps", "--format-version", "1"]);
        Self::parse(&command.captured()?)
    }

    pub(crate) fn parse(metadata: &str) -> Result<Self> {
        serde_json::from_str(metadata).context("output of `cargo metadata`")
    }

    /// The one with this `Cargo.toml`.
    pub(crate) fn of(&self, manifest: &Path) -> Result<Package<'_>> {
        static NOTHING: Weir = Weir {
            needs: BTreeSet::new(),
            alone: BTreeSet::new(),
            slow: BTreeSet::new(),
        };
        let mut packages = self.packages.iter();
        let package = packages
            .find(|package| package.manifest_path == manifest)
            .with_context(|| format!("{}: not of this workspace", manifest.display()))?;
        let said = package.metadata.as_ref();
        let Weir { alone, slow, .. } = said.map_or(&NOTHING, |metadata| &metadata.weir);
        Ok(Package {
            name: &package.name,
            alone,
            slow,
        })
    }

    /// One, or all.
    fn chosen(&self, package: Option<&str>) -> impl Iterator<Item = &Written> {
        let all = self.packages.iter();
        all.filter(move |written| package.is_none_or(|name| written.name == name))
    }

    /// Test programs of one package, or of all, that `cargo test` leaves out: `test = false` in a manifest.
    pub(crate) fn left_out(&self, package: Option<&str>) -> Vec<&str> {
        let targets = self.chosen(package).flat_map(|written| &written.targets);
        targets
            .filter(|target| !target.test && target.kind.iter().any(|kind| kind == "test"))
            .map(|target| target.name.as_str())
            .collect()
    }

    /// Whether one package, or any, may have examples in its documentation. Without a library to look in, Cargo fails.
    pub(crate) fn has_documentation(&self, package: Option<&str>) -> bool {
        let mut targets = self.chosen(package).flat_map(|written| &written.targets);
        targets.any(|target| target.doctest)
    }

    /// What the tests of one package need, or those of all.
    pub(crate) fn needs(&self, package: Option<&str>) -> Result<BTreeSet<Need>> {
        let mut chosen = self.chosen(package).peekable();
        if let Some(name) = package {
            let none = || format!("--package {name}: the workspace has no such package");
            chosen.peek().with_context(none)?;
        }
        Ok(chosen
            .filter_map(|package| package.metadata.as_ref())
            .flat_map(|metadata| metadata.weir.needs.iter().copied())
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"{"packages": [
        {"name": "plain", "manifest_path": "/p/Cargo.toml", "metadata": null, "targets": [
            {"name": "plain", "kind": ["lib"], "test": false, "doctest": true},
            {"name": "long", "kind": ["test"], "test": false, "doctest": false},
            {"name": "short", "kind": ["test"], "test": true, "doctest": false}]},
        {"name": "meshed", "manifest_path": "/m/Cargo.toml", "metadata": {"weir": {"needs": ["consul", "envoy"]}}}
    ]}"#;

    #[test]
    fn a_package_needs_what_its_manifest_says_and_all_need_all_of_it() {
        let packages = Packages::parse(TWO).unwrap();
        let both = BTreeSet::from([Need::Envoy, Need::Consul]);
        assert_eq!(packages.needs(Some("plain")).unwrap(), BTreeSet::new());
        assert_eq!(packages.needs(Some("meshed")).unwrap(), both);
        assert_eq!(packages.needs(None).unwrap(), both);
        let error = packages.needs(Some("weir")).unwrap_err().to_string();
        assert_eq!(error, "--package weir: the workspace has no such package");
    }

    #[test]
    fn test_programs_that_a_manifest_leaves_out_are_named() {
        let packages = Packages::parse(TWO).unwrap();
        assert_eq!(packages.left_out(None), ["long"]);
        assert_eq!(packages.left_out(Some("plain")), ["long"]);
        assert!(packages.left_out(Some("meshed")).is_empty());
    }

    #[test]
    fn a_package_without_a_library_has_no_examples_in_its_documentation() {
        let packages = Packages::parse(TWO).unwrap();
        assert!(packages.has_documentation(Some("plain")));
        assert!(!packages.has_documentation(Some("meshed")));
        assert!(packages.has_documentation(None));
    }

    #[test]
    fn a_need_that_nobody_can_meet_is_an_error() {
        let text = TWO.replace("consul", "console");
        let error = format!("{:#}", Packages::parse(&text).unwrap_err());
        assert!(error.contains("unknown variant `console`"), "{error}");
    }

    /// A misspelt name would let others run beside it.
    #[test]
    fn programs_that_run_alone_or_first_are_there() {
        let workspace = Workspace::find().unwrap();
        let packages = Packages::find(&workspace).unwrap();
        for package in &packages.packages {
            let folder = package.manifest_path.parent().unwrap();
            let said = packages.of(&package.manifest_path).unwrap();
            for name in said.alone.union(said.slow) {
                let file = folder.join("tests").join(name);
                let found = file.with_extension("rs").is_file() || file.join("main.rs").is_file();
                assert!(found, "{}: {name}", package.name);
            }
        }
    }
}
