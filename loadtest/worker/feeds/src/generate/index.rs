// SPDX-License-Identifier: Apache-2.0
//! `feeds.json`: what a folder holds.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a folder holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// It was made with this seed.
    pub seed: u64,
    /// By name.
    pub projects: Vec<Project>,
}

/// One project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Project {
    /// Its name.
    pub project: String,
    /// Its items.
    pub items: u64,
    /// Size of its object, as stored.
    pub bytes: u64,
    /// Files under `rules/`, one a channel.
    pub rules: Vec<String>,
}

impl Index {
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
        let index = r#"{"seed":1,"projects":[
            {"project":"shop-1","items":800,"bytes":1200000,"rules":["shop-1-1.json"]},
            {"project":"shop-2","items":200,"bytes":300000,"rules":["a.json","b.json"]}]}"#;
        let index: Index = serde_json::from_str(index).unwrap();
        assert_eq!(
            index.to_string(),
            "2 projects with 1000 items, 1.5 MB as stored, and 3 kinds of requests; \
             the largest, shop-1, has 800 items, 1.2 MB"
        );
    }
}
