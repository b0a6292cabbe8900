// SPDX-License-Identifier: Apache-2.0
//! Generated items, as a file that every contestant reads.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use weir_feeds::generate::{Folder, Settings, generate};
use weir_feeds::{Format, ItemStore};
use weir_rules::{Feed, SinkClosed};

use super::engine;

/// The project of [`Items`].
pub(super) const PROJECT: &str = "plain";

/// Leaves items as they are.
const NOTHING: &[u8] = br#"{"session_id": "lab", "project_id": "plain"}"#;

/// The items of one project.
#[derive(Debug)]
pub(super) struct Items {
    folder: TempDir,
    /// Where `file` is, for the engine.
    pub(super) store: ItemStore,
    /// NDJSON in which every value is text: jq before 1.7 loses the literal of a number, and 15.00
    /// would come out as 15.
    pub(super) file: PathBuf,
    /// The first item alone.
    pub(super) first: PathBuf,
    /// The same, decoded.
    pub(super) feed: Feed,
}

impl Items {
    pub(super) fn make(items: u64, seed: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let generated = project(folder.path(), "generated", items, seed, Format::Ndjson)?;
        let runtime = engine::runtime()?;
        let feed = engine::fetch(&runtime, &generated.store, &generated.project)?;
        let file = folder.path().join(format!("{PROJECT}.ndjson"));
        write(&feed, &file)?;
        std::fs::remove_file(&generated.object)?;
        let first = folder.path().join("first.ndjson");
        let text = std::io::BufRead::lines(std::io::BufReader::new(File::open(&file)?)).next();
        std::fs::write(&first, text.context("no items")?? + "\n")?;
        let store = open(folder.path())?;
        let feed = engine::fetch(&runtime, &store, PROJECT)?;
        ensure!(feed.items() as u64 == items, "items were lost on their way");
        Ok(Self {
            folder,
            store,
            file,
            first,
            feed,
        })
    }

    /// A place for other files.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn count(&self) -> u64 {
        self.feed.items() as u64
    }
}

fn write(feed: &Feed, file: &Path) -> Result<()> {
    let plan = engine::compile(NOTHING, true)?;
    write_result(&plan, feed, file)
}

/// Writes the result of a plan to a file.
pub(super) fn write_result(plan: &weir_rules::Plan, feed: &Feed, file: &Path) -> Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    let mut failed = Ok(());
    let written = engine::write(plan, feed, &mut |chunk| {
        failed = out.write_all(&chunk);
        failed.as_ref().map_err(|_| SinkClosed).copied()
    });
    failed
        .and_then(|()| out.flush())
        .with_context(|| format!("cannot write {}", file.display()))?;
    written
}

/// One project in a store.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) store: ItemStore,
    pub(super) project: String,
    pub(super) object: PathBuf,
}

/// Generates a project under `parent/name`.
pub(super) fn project(
    parent: &Path,
    name: &str,
    items: u64,
    seed: u64,
    format: Format,
) -> Result<Project> {
    let path = parent.join(name);
    let settings = Settings {
        seed,
        projects: 1,
        items_min: items,
        items_max: items,
        format,
        ..Settings::default()
    };
    let index = generate(&settings, &Folder::open(&path, false)?, &mut |_| {})?;
    let project = index.projects.into_iter().next().context("no project")?;
    Ok(Project {
        object: path.join(format!("{}.{}", project.project, format.suffix())),
        store: open(&path)?,
        project: project.project,
    })
}

/// Opens a folder as a store.
pub(super) fn open(folder: &Path) -> Result<ItemStore> {
    let path = folder
        .to_str()
        .context("a folder whose name is not UTF-8")?;
    Ok(ItemStore::open(path)?)
}
