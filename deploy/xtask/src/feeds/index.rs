// SPDX-License-Identifier: Apache-2.0
//! What a folder of feeds holds, as its `feeds.json` says.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Index {
    projects: Vec<Project>,
}

#[derive(Deserialize)]
struct Project {
    project: String,
    items: u64,
    /// As stored.
    bytes: u64,
    /// A request body for each channel.
    rules: Vec<String>,
}

impl Index {
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let file = folder.join("feeds.json");
        let text = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("in {}", file.display()))
    }

    fn sum(&self, of: impl Fn(&Project) -> u64) -> u64 {
        self.projects.iter().map(of).sum()
    }
}

/// In a line.
impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} projects with {} items, {} as stored, and {} kinds of requests",
            self.projects.len(),
            self.sum(|project| project.items),
            megabytes(self.sum(|project| project.bytes)),
            self.sum(|project| project.rules.len() as u64),
        )?;
        if let Some(largest) = self.projects.iter().max_by_key(|project| project.items) {
            let size = megabytes(largest.bytes);
            write!(
                f,
                "; the largest, {}, has {} items, {size}",
                largest.project, largest.items
            )?;
        }
        Ok(())
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_sums_up_and_names_the_largest() {
        let folder = tempfile::tempdir().unwrap();
        let index = r#"{"seed":1,"projects":[
            {"project":"shop-1","items":800,"bytes":1200000,"rules":["shop-1-1.json"]},
            {"project":"shop-2","items":200,"bytes":300000,"rules":["a.json","b.json"]}]}"#;
        fs::write(folder.path().join("feeds.json"), index).unwrap();
        assert_eq!(
            Index::open(folder.path()).unwrap().to_string(),
            "2 projects with 1000 items, 1.5 MB as stored, and 3 kinds of requests; \
             the largest, shop-1, has 800 items, 1.2 MB"
        );
    }

    #[test]
    fn a_missing_index_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Index::open(folder.path()).err().unwrap().to_string();
        assert!(error.contains("feeds.json"), "{error}");
    }
}
