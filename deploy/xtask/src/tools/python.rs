// SPDX-License-Identifier: Apache-2.0
//! Packages of Python with all that they need: a file of requirements pins the wheel of each by its sum.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::tools::pins::Python;
use crate::tools::temporary::Temporary;
use crate::tools::wheel::Client;
use weir_stage::command::Run;

/// Beside the packages: what they were installed from, and for which Python.
const SOURCES: &str = ".sources";

/// The folder of the packages, once installed, for `PYTHONPATH`.
pub(super) fn installed_path(name: &str, python: &Python, cache: &Path) -> PathBuf {
    cache.join(format!("{name}-{}", python.version))
}

/// Makes sure that the packages are in the cache, as the requirements say and for the machine's Python.
pub(super) fn install(
    name: &str,
    python: &Python,
    client: &Client,
    root: &Path,
    cache: &Path,
) -> Result<PathBuf> {
    let requirements = root.join(&python.requirements);
    let text = fs::read_to_string(&requirements);
    let text = text.with_context(|| format!("reading {}", requirements.display()))?;
    let interpreter = client.command().arg("--version").captured()?;
    let sources = format!("{interpreter}{text}");
    let folder = installed_path(name, python, cache);
    if fs::read_to_string(folder.join(SOURCES)).is_ok_and(|installed| installed == sources) {
        println!("tools: {name} {}: installed", python.version);
        return Ok(folder);
    }
    println!("tools: {name} {}: fetching with pip", python.version);
    let temporary = Temporary::new(cache, name)?;
    let packages = temporary.0.join("packages");
    client
        .command()
        .args(["-m", "pip", "--disable-pip-version-check", "--no-input"])
        // What is loaded is compiled then; all of it takes half as much room again.
        .args(["install", "--quiet", "--no-compile", "--no-deps"])
        .args(["--require-hashes", "--only-binary=:all:"])
        .arg("--requirement")
        .arg(&requirements)
        .arg("--target")
        .arg(&packages)
        .watched()
        .with_context(|| format!("installing what {} lists", requirements.display()))?;
    fs::write(packages.join(SOURCES), sources)?;
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::rename(&packages, &folder).with_context(|| format!("installing {}", folder.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stands in for Python: it "installs" the requirements themselves, but for bad ones.
    const FAKE_PYTHON: &str = r#"
    [ "$1" = --version ] && { cat "${0%/*}/version"; exit; }
    while [ "$1" != --requirement ]; do shift; done
    grep -q bad "$2" && exit 1
    mkdir "$4" && cp "$2" "$4/packages"
    "#;

    #[test]
    fn packages_are_those_of_the_requirements_and_of_the_python_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let fake = folder.path().join("python.sh");
        write("python.sh", FAKE_PYTHON);
        let python = Python {
            version: "1".into(),
            requirements: "requirements.txt".into(),
        };
        let client = Client(vec!["sh".into(), fake.display().to_string()]);
        let cache = folder.path().join("cache");
        let install = || install("it", &python, &client, folder.path(), &cache);
        let installed = |file: &str| fs::read_to_string(cache.join("it-1").join(file));
        write("version", "3.11");
        write("requirements.txt", "one");
        assert_eq!(install().unwrap(), cache.join("it-1"));
        assert_eq!(installed("packages").unwrap(), "one");
        fs::write(cache.join("it-1/kept"), "").unwrap();
        install().unwrap();
        assert!(installed("kept").is_ok(), "nothing had changed");
        write("version", "3.12");
        install().unwrap();
        assert!(installed("kept").is_err(), "it was of another Python");
        write("requirements.txt", "bad");
        let error = format!("{:#}", install().unwrap_err());
        assert!(error.contains("requirements.txt"), "{error}");
        assert_eq!(installed("packages").unwrap(), "one", "the old ones stay");
    }
}
