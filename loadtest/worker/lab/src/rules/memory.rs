// SPDX-License-Identifier: Apache-2.0
//! Memory that a decoded feed takes, in a process that does nothing else.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use weir_feeds::Format;

use super::engine;
use super::items::{self, Project};
use super::samples::{Figure, Samples};

const PART: &str = "memory";

/// What a reader of the rows has to know.
pub(super) const NOTE: &str = "memory: for a million items, scaled from the items that were loaded \
    on one core; the peak includes the object as it was read.";

/// What loading an object took, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Loaded {
    items: u64,
    /// As [`weir_rules::Feed::bytes`] has it.
    feed: u64,
    /// Resident afterwards, more than before.
    grown: u64,
    /// Resident at most, more than before.
    peak: u64,
}

/// The same items in both formats.
pub(super) struct Memory {
    _folder: TempDir,
    projects: Vec<(Format, Project)>,
}

impl Memory {
    pub(super) fn make(items: u64, seed: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let make = |format: Format| {
            eprintln!("making {items} items as {}", format.suffix());
            let project = items::project(folder.path(), format.suffix(), items, seed, format)?;
            Ok((format, project))
        };
        let projects = [Format::Ndjson, Format::Parquet].map(make);
        let projects = projects.into_iter().collect::<Result<_>>()?;
        Ok(Self {
            _folder: folder,
            projects,
        })
    }

    pub(super) fn measure(&self, samples: &mut Samples) -> Result<()> {
        for (format, project) in &self.projects {
            eprintln!("  memory: {}", format.suffix());
            let loaded = in_child(&project.object)?;
            let object = fs::metadata(&project.object)?.len();
            let mut add = |what: &str, bytes: u64| {
                let million = bytes as f64 / loaded.items as f64 * 1e6;
                let row = format!("{}: {what}", format.suffix());
                let to = format!("{}: feed", format.suffix());
                samples.add(PART, row, (0, Some(&to)), Figure::Bytes(million));
            };
            add("object", object);
            add("feed", loaded.feed);
            add("resident after decoding", loaded.grown);
            add("resident at most while decoding", loaded.peak);
        }
        Ok(())
    }
}

fn in_child(object: &Path) -> Result<Loaded> {
    let output = Command::new(std::env::current_exe()?)
        .args(["rules", "--memory-child"])
        .arg(object)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(
        output.status.success(),
        "loading {}: {}",
        object.display(),
        output.status
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Loads an object and prints what that took.
pub(super) fn child(object: &Path) -> Result<()> {
    println!("{}", serde_json::to_string(&load(object)?)?);
    Ok(())
}

fn load(object: &Path) -> Result<Loaded> {
    let store = items::open(object.parent().context("an object outside any folder")?)?;
    let project = object.file_stem().and_then(|name| name.to_str());
    let runtime = engine::runtime()?;
    let (before, _) = resident()?;
    let feed = engine::fetch(
        &runtime,
        &store,
        project.context("an object without a name")?,
    )?;
    let (after, most) = resident()?;
    Ok(Loaded {
        items: feed.items() as u64,
        feed: feed.bytes() as u64,
        grown: after.saturating_sub(before),
        peak: most.saturating_sub(before),
    })
}

/// Bytes resident now and at most so far (proc(5), `VmRSS` and `VmHWM`).
fn resident() -> Result<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kilobytes: u64 = number.and_then(|number| number.trim().parse().ok())?;
        Some(kilobytes * 1024)
    };
    bytes("VmRSS:")
        .zip(bytes("VmHWM:"))
        .context("/proc/self/status has no VmRSS")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loaded_feed_takes_at_least_its_bytes_at_the_peak() {
        let memory = Memory::make(20_000, 1).unwrap();
        for (format, project) in &memory.projects {
            let loaded = load(&project.object).unwrap();
            assert_eq!(loaded.items, 20_000);
            assert!(loaded.feed > 1_000_000, "{format:?}: {loaded:?}");
            let (now, most) = resident().unwrap();
            assert!(now > 0 && most >= now);
        }
    }
}
