// SPDX-License-Identifier: Apache-2.0
//! Files out of Go modules, such as published schemas: `go.sum` pins each module as a whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::tools::go;
use crate::tools::pins::GoFiles;
use crate::tools::temporary::Temporary;
use weir_stage::command::Run;

/// Beside the files: what they were taken from.
const SOURCES: &str = ".sources";

/// What `go mod download -json` says of a module.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    path: String,
    dir: PathBuf,
}

/// The folder of the files, once installed.
pub(super) fn installed_path(name: &str, files: &GoFiles, cache: &Path) -> PathBuf {
    cache.join(format!("{name}-{}", files.version))
}

/// Makes sure that the files are in the cache, as the module and the pins say.
pub(super) fn install(name: &str, files: &GoFiles, root: &Path, cache: &Path) -> Result<PathBuf> {
    let module = root.join(&files.module);
    let folder = installed_path(name, files, cache);
    let sources = format!("{}{:?}\n", go::sources(&module, "-")?, files.files);
    if fs::read_to_string(folder.join(SOURCES)).is_ok_and(|taken| taken == sources) {
        println!("tools: {name} {}: installed", files.version);
        return Ok(folder);
    }
    println!("tools: {name} {}: fetching with go", files.version);
    let said = go::command()
        .current_dir(&module)
        .env("GOFLAGS", "-mod=readonly")
        .args(["mod", "download", "-json"])
        .captured()?;
    let modules = serde_json::Deserializer::from_str(&said).into_iter::<Downloaded>();
    let places: BTreeMap<_, _> = modules
        .map(|module| module.map(|Downloaded { path, dir }| (path, dir)))
        .collect::<Result<_, _>>()
        .context("output of `go mod download -json`")?;
    let temporary = Temporary::new(cache, name)?;
    let taken = temporary.0.join("taken");
    fs::create_dir(&taken)?;
    for file in &files.files {
        let place = places.get(&file.module).with_context(|| {
            let module = module.join("go.mod");
            format!("{} requires no {}", module.display(), file.module)
        })?;
        let from = place.join(&file.path);
        let name = file.path.file_name().context("a file has no name")?;
        // Written, not copied: files of Go's cache may not be written to, and copies would not either.
        let bytes = fs::read(&from).with_context(|| format!("reading {}", from.display()))?;
        let to = taken.join(name);
        ensure!(!to.exists(), "two files are named {}", name.display());
        fs::write(&to, bytes).with_context(|| format!("writing {}", to.display()))?;
    }
    fs::write(taken.join(SOURCES), sources)?;
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::rename(&taken, &folder).with_context(|| format!("installing {}", folder.display()))?;
    Ok(folder)
}
