// SPDX-License-Identifier: Apache-2.0
//! The index that is searched: made once, kept, and copied for each engine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use weir_stage::processes::Processes;

/// To be raised with every change to what the documents of a seed are.
const EDITION: u32 = 1;

/// What is in it.
pub struct Index<'a> {
    /// The program that makes and serves it.
    pub node: &'a Path,
    /// How often each term occurs.
    pub counts: &'a Path,
    /// How many documents.
    pub documents: usize,
    /// Of what they are made of.
    pub seed: u64,
}

impl Index<'_> {
    /// The kept index in `cache`, made now if it is not there.
    ///
    /// # Errors
    /// The program fails, or the folder cannot be written.
    pub fn kept(&self, cache: &Path, processes: &mut Processes) -> Result<PathBuf> {
        let name = format!("index-{EDITION}-{}-{}", self.documents, self.seed);
        let kept = cache.join(name);
        if kept.is_dir() {
            return Ok(kept);
        }
        println!("search: indexing {} documents, once", self.documents);
        let unfinished = kept.with_extension(format!("part-{}", std::process::id()));
        fs::create_dir_all(&unfinished)
            .with_context(|| format!("creating {}", unfinished.display()))?;
        let mut command = java(&["-Xms1g", "-Xmx1g"]);
        command
            .arg("-jar")
            .arg(self.node)
            .arg("index")
            .args([&unfinished, self.counts])
            .args([self.documents.to_string(), self.seed.to_string()]);
        processes.run("index", command, |_| ())?;
        fs::rename(&unfinished, &kept).with_context(|| format!("keeping {}", kept.display()))?;
        Ok(kept)
    }
}

/// Copies a kept index for an engine, which writes into its folder.
///
/// # Errors
/// A file cannot be read or written.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("creating {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target).with_context(|| format!("copying {}", path.display()))?;
        }
    }
    Ok(())
}

/// The JVM of `JAVA_HOME`, or that on the path. One collector thread: those of the engines that
/// are not being asked shall not disturb.
pub(crate) fn java(options: &[&str]) -> Command {
    let home = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let program = home.map_or_else(|| "java".into(), |home| home.join("bin/java"));
    let mut command = Command::new(program);
    command.arg("-XX:+UseSerialGC").args(options);
    command
}
