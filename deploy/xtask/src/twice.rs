// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask image --twice`: the same images, made again from a copy of the checkout at another path and with a
//! Cargo home of its own, must have the same digests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use weir_stage::command::Run;

use crate::workspace::Workspace;

/// Digests by what they are of.
pub(crate) type Digests = BTreeMap<String, String>;

/// Makes them again elsewhere, and fails where one is not the same.
pub(crate) fn check(
    workspace: &Workspace,
    made: &Digests,
    make: impl Fn(&Workspace) -> Result<Digests>,
) -> Result<()> {
    let folder = Folder::new()?;
    let again = make(&copy(workspace, &folder.0)?)?;
    let different = different(made, &again);
    ensure!(
        different.is_empty(),
        "what is built depends on where it is built:\n{}",
        different.join("\n")
    );
    println!("twice: the same {} digests at two paths", made.len());
    Ok(())
}

fn different(made: &Digests, again: &Digests) -> Vec<String> {
    let line = |(name, digest): (&String, &String)| {
        let other = again.get(name).map_or("nothing", String::as_str);
        (other != digest).then(|| format!("{name}: {digest} here, {other} there"))
    };
    made.iter().filter_map(line).collect()
}

/// The checkout as it is, committed or not, and a Cargo home with the crates but without their unpacked sources.
fn copy(workspace: &Workspace, folder: &Path) -> Result<Workspace> {
    let copy = Workspace {
        root: folder.join("a longer path").join("weir"),
        target: folder.join("target"),
        cargo_home: folder.join("cargo"),
    };
    let listed = Command::new("git")
        .current_dir(&workspace.root)
        .args(["ls-files", "-z", "--cached", "--others"])
        .arg("--exclude-standard")
        .captured()?;
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        let from = workspace.root.join(name);
        // Deleted, but not yet from the index.
        if from.is_file() {
            file(&from, &copy.root.join(name))?;
        }
    }
    for part in ["registry/cache", "registry/index"] {
        tree(
            &workspace.cargo_home.join(part),
            &copy.cargo_home.join(part),
        )?;
    }
    let configuration = workspace.cargo_home.join("config.toml");
    if configuration.is_file() {
        file(&configuration, &copy.cargo_home.join("config.toml"))?;
    }
    // Unpacks the sources, which are named when the compiler's flags are made.
    copy.cargo().args(["fetch", "--locked"]).shown()?;
    Ok(copy)
}

fn tree(from: &Path, to: &Path) -> Result<()> {
    let context = || format!("reading {}", from.display());
    for entry in from.read_dir().with_context(context)? {
        let entry = entry.with_context(context)?;
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => tree(&path, &place)?,
            false => file(&path, &place)?,
        }
    }
    Ok(())
}

fn file(from: &Path, to: &Path) -> Result<()> {
    let context = || format!("copying {} to {}", from.display(), to.display());
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(context)?;
    }
    fs::copy(from, to).with_context(context)?;
    Ok(())
}

/// Goes away with the value. Outside the checkout, where Cargo finds none of its settings.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("weir-twice-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(of: &[(&str, &str)]) -> Digests {
        let owned = |(name, digest): &(&str, &str)| ((*name).to_owned(), (*digest).to_owned());
        of.iter().map(owned).collect()
    }

    #[test]
    fn another_digest_and_a_missing_one_are_told() {
        let made = digests(&[("a", "1"), ("b", "2"), ("c", "3")]);
        assert_eq!(different(&made, &made), Vec::<String>::new());
        assert_eq!(
            different(&made, &digests(&[("a", "1"), ("b", "x")])),
            ["b: 2 here, x there", "c: 3 here, nothing there"]
        );
    }
}
