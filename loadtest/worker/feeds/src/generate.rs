// SPDX-License-Identifier: Apache-2.0
//! Projects for load tests: items and rules of shops that do not exist.
//!
//! What is drawn follows from the seed alone: the same settings give the same files, and project 7
//! of 10 is project 7 of 1,000 but for its size. Items are written batch by batch, so memory does
//! not grow with them.

mod draw;
mod folder;
mod index;
mod item;
mod rules;
mod settings;
mod size;
#[cfg(test)]
mod tests;
mod words;
mod write;

use std::path::PathBuf;

pub use folder::Folder;
pub use index::{Index, Project};
pub use settings::{BadSetting, Settings};

use item::Shop;

/// How far it is, after each batch of items.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The project being written.
    pub project: &'a str,
    /// Its place among the projects, from 1.
    pub number: usize,
    /// All projects.
    pub projects: usize,
    /// Items of it that are written.
    pub written: u64,
    /// All items of it.
    pub items: u64,
}

/// Why there are no projects.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// A setting is out of its range.
    #[error(transparent)]
    Setting(#[from] BadSetting),
    /// The folder holds what we did not write.
    #[error("{0} is not empty and not of weir-feeds; give another folder, or --replace")]
    Foreign(PathBuf),
    /// The disk.
    #[error("{}: {source}", file.display())]
    Io {
        /// What was written or read.
        file: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
}

/// Writes projects, their rules and, when all are there, the index.
///
/// # Errors
/// [`GenerateError`]. An index is only in the folder when everything it names is.
pub fn generate(
    settings: &Settings,
    folder: &Folder,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Index, GenerateError> {
    settings.check()?;
    folder.clear()?;
    let sizes = size::of_projects(settings);
    let mut projects = Vec::with_capacity(sizes.len());
    for (at, items) in sizes.into_iter().enumerate() {
        let project = format!("shop-{:04}", at + 1);
        let mut tell = |written| {
            progress(Progress {
                project: &project,
                number: at + 1,
                projects: settings.projects,
                written,
                items,
            });
        };
        let mut draw = draw::of(settings.seed, "items", at);
        let shop = Shop::new(&project, &mut draw);
        let bytes = write::items(settings.format, folder, &shop, items, &mut draw, &mut tell)?;
        let mut draw = draw::of(settings.seed, "rules", at);
        let channels = size::of_channels(settings, &mut draw);
        let rules = rules::of_project(&shop, channels, &mut draw);
        projects.push(Project {
            rules: folder.write_rules(&project, &rules)?,
            project,
            items,
            bytes,
        });
    }
    let seed = settings.seed;
    let index = Index { seed, projects };
    folder.write_index(&index)?;
    Ok(index)
}
