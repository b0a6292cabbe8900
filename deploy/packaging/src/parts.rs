// SPDX-License-Identifier: Apache-2.0
//! The crates that are linked into a program or module, with their licences.
//!
//! ```text
//! cargo tree ─ which, for this package and target ─┐
//! cargo metadata ─ licence, source, folder ────────┴─> Parts ─> sbom, notices
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// How a crate's file is called that its licence asks to be passed on.
const TEXTS: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "UNLICENSE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
];

/// A crate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Of the package.
    pub name: String,
    /// Of the package.
    pub version: String,
    /// An SPDX expression.
    pub licence: String,
    /// Where its source is kept, if it says so.
    pub repository: Option<String>,
    /// Whether it is of this workspace.
    pub own: bool,
    /// Licences and notices that come with it.
    pub texts: Vec<String>,
}

/// All that are linked, sorted by name and version, and what the toolchain adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Each once.
    pub crates: Vec<Part>,
    /// The release of Rust whose standard library is linked.
    pub rust: String,
    /// Copyright and licences of the standard library, a page as the toolchain brings it.
    pub standard_library: String,
}

/// Reads `cargo tree --prefix none --format {p}` of a package, and `cargo metadata` for the rest. The package itself
/// is left out.
///
/// # Errors
/// A crate of the tree is not in the metadata, or a text of it cannot be read.
pub fn read(tree: &str, metadata: &str, package: &str) -> Result<Vec<Part>> {
    let metadata: Value = serde_json::from_str(metadata).context("output of `cargo metadata`")?;
    let packages = metadata["packages"].as_array();
    let known: BTreeMap<(&str, &str), &Value> = packages
        .into_iter()
        .flatten()
        .filter_map(|known| Some(((known["name"].as_str()?, known["version"].as_str()?), known)))
        .collect();
    let mut parts = BTreeMap::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(version)) = (words.next(), words.next()) else {
            continue;
        };
        let version = version.trim_start_matches('v');
        if name == package || parts.contains_key(&(name, version)) {
            continue;
        }
        let known = known
            .get(&(name, version))
            .with_context(|| format!("`cargo metadata` does not know {name} {version}"))?;
        parts.insert((name, version), part(known)?);
    }
    Ok(parts.into_values().collect())
}

fn part(known: &Value) -> Result<Part> {
    let text = |field: &str| known[field].as_str().map(str::to_owned);
    let name = text("name").unwrap_or_default();
    let own = known["source"].is_null();
    let mut texts = Vec::new();
    // Those of the workspace are under its own licence.
    if !own {
        let manifest = text("manifest_path").map(PathBuf::from);
        let folder = manifest.as_deref().and_then(Path::parent);
        let folder = folder.with_context(|| format!("{name} has no manifest"))?;
        gather(folder, &mut texts)?;
        texts.sort();
        texts.dedup();
    }
    let licence = text("license").unwrap_or_else(|| "NOASSERTION".to_owned());
    Ok(Part {
        version: text("version").unwrap_or_default(),
        // As crates wrote it before there was SPDX.
        licence: licence.replace('/', " OR ").replace("  ", " "),
        repository: text("repository"),
        own,
        texts,
        name,
    })
}

/// Also of folders in it: what a crate took from others keeps its licence beside it.
fn gather(folder: &Path, texts: &mut Vec<String>) -> Result<()> {
    let context = || format!("reading {}", folder.display());
    for entry in folder.read_dir().with_context(context)? {
        let entry = entry.with_context(context)?;
        let (path, kind) = (entry.path(), entry.file_type().with_context(context)?);
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        if kind.is_dir() {
            gather(&path, texts)?;
        } else if kind.is_file() && !is_source && TEXTS.iter().any(|text| name.starts_with(text)) {
            let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
            texts.push(text.trim_end().trim_start_matches('\n').to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_crate_has_its_licence_and_its_texts_once_and_the_package_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("third_party/x")).unwrap();
        for (name, text) in [
            ("LICENSE-MIT", "mit\r\nof b\n"),
            ("license", "mit\nof b"),
            ("third_party/x/NOTICE.md", "of x"),
            ("license.rs", "fn main() {}"),
            ("README.md", "b"),
        ] {
            fs::write(at(name), text).unwrap();
        }
        let metadata = json!({ "packages": [
            { "name": "a", "version": "1.0.0", "license": "Apache-2.0", "source": null, "manifest_path": "/a/Cargo.toml" },
            { "name": "own", "version": "1.0.0", "license": "Apache-2.0", "source": null, "manifest_path": "/o/Cargo.toml" },
            { "name": "b", "version": "2.0.0", "license": "MIT/Apache-2.0", "source": "registry+x",
              "repository": "https://b.example", "manifest_path": at("Cargo.toml") },
        ] });
        let tree = "a v1.0.0 (/a)\nb v2.0.0\nown v1.0.0 (/o)\nb v2.0.0 (*)\n";
        let parts = read(tree, &metadata.to_string(), "a").unwrap();
        let names: Vec<_> = parts.iter().map(|part| (&*part.name, part.own)).collect();
        assert_eq!(names, [("b", false), ("own", true)]);
        assert_eq!(parts[0].licence, "MIT OR Apache-2.0");
        assert_eq!(parts[0].texts, ["mit\nof b", "of x"]);
        let error = read("c v1.0.0", &metadata.to_string(), "a").unwrap_err();
        assert!(error.to_string().contains("c 1.0.0"), "{error}");
    }
}
