// SPDX-License-Identifier: Apache-2.0
//! The index of a folder of feeds, `feeds.json`.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use http::HeaderValue;
use serde::Deserialize;

use crate::bodies::bad_name;

/// Name of the index in its folder.
pub const INDEX: &str = "feeds.json";
/// Name of the folder of request bodies beside it.
pub const RULES: &str = "rules";

/// The projects of a folder of feeds. What else the index holds does not matter here.
#[derive(Debug, Clone, Deserialize)]
pub struct Index {
    /// In the order of their names, so that the index's own order decides nothing.
    pub projects: Vec<Project>,
}

/// One project.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Project {
    /// Its name, the key of its data.
    pub project: String,
    /// Size of its data as stored.
    pub bytes: u64,
    /// Request bodies, one for each channel, as files in [`RULES`].
    pub rules: Vec<String>,
}

/// Why an index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadIndex {
    /// The file is not there or cannot be read.
    #[error("cannot read {0}: {1}; `weir-feeds` makes such folders")]
    Unreadable(PathBuf, io::Error),
    /// The text is not that of an index.
    #[error("{0}: {1}")]
    Malformed(PathBuf, serde_json::Error),
    /// A field has a value that cannot be.
    #[error("{file}: {field}: {reason}")]
    Field {
        /// The index.
        file: PathBuf,
        /// Such as `projects[3].rules`.
        field: String,
        /// Why it was refused.
        reason: String,
    },
}

impl Index {
    /// Reads and checks the index of a folder, and that every body it names is there.
    pub fn open(folder: &Path) -> Result<Self, BadIndex> {
        let file = folder.join(INDEX);
        let text = fs::read(&file).map_err(|e| BadIndex::Unreadable(file.clone(), e))?;
        let index = Self::parse(&text, &file)?;
        for (at, project) in index.projects.iter().enumerate() {
            for rules in &project.rules {
                let body = folder.join(RULES).join(rules);
                if !body.is_file() {
                    let reason = format!("{} is not there", body.display());
                    return Err(bad(&file, format!("projects[{at}].rules"), reason));
                }
            }
        }
        Ok(index)
    }

    fn parse(text: &[u8], file: &Path) -> Result<Self, BadIndex> {
        let mut index: Self =
            serde_json::from_slice(text).map_err(|e| BadIndex::Malformed(file.to_owned(), e))?;
        if index.projects.is_empty() {
            let reason = "is empty".to_owned();
            return Err(bad(file, "projects".to_owned(), reason));
        }
        let mut names = HashSet::new();
        for (at, project) in index.projects.iter().enumerate() {
            if let Some((field, reason)) = project.fault(&mut names) {
                return Err(bad(file, format!("projects[{at}].{field}"), reason));
            }
        }
        index.projects.sort_by(|a, b| a.project.cmp(&b.project));
        Ok(index)
    }
}

impl Project {
    /// The field that cannot be, and why.
    fn fault<'a>(&'a self, names: &mut HashSet<&'a str>) -> Option<(&'static str, String)> {
        let name = &self.project;
        if name.is_empty() || HeaderValue::from_bytes(name.as_bytes()).is_err() {
            return Some(("project", format!("{name:?} cannot be sent in a header")));
        }
        if !names.insert(name) {
            return Some(("project", format!("{name:?} occurs twice")));
        }
        if self.rules.is_empty() {
            return Some(("rules", "is empty: nothing can be asked of it".to_owned()));
        }
        let fault = |rules: &String| Some(("rules", format!("{rules:?} {}", bad_name(rules)?)));
        self.rules.iter().find_map(fault)
    }
}

fn bad(file: &Path, field: String, reason: String) -> BadIndex {
    BadIndex::Field {
        file: file.to_owned(),
        field,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let parsed = Index::parse(text.as_bytes(), Path::new("feeds.json"));
        parsed.unwrap_err().to_string()
    }

    fn project(name: &str, rules: &str) -> String {
        format!(r#"{{"project":"{name}","items":2,"bytes":10,"rules":[{rules}]}}"#)
    }

    #[test]
    fn projects_come_in_the_order_of_their_names() {
        let (a, b) = (project("a", r#""a-1.json""#), project("b", r#""b-1.json""#));
        let text = format!(r#"{{"seed":1,"projects":[{b},{a}]}}"#);
        let index = Index::parse(text.as_bytes(), Path::new("feeds.json")).unwrap();
        let names: Vec<_> = index.projects.iter().map(|p| p.project.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(index.projects[0].rules, ["a-1.json"]);
    }

    #[test]
    fn every_error_names_the_file_and_the_field() {
        let of = |projects: String| error(&format!(r#"{{"projects":[{projects}]}}"#));
        let good = project("a", r#""a-1.json""#);
        for (error, expected) in [
            (error("{"), "feeds.json: EOF while parsing"),
            (error("{}"), "feeds.json: missing field `projects`"),
            (of(String::new()), "feeds.json: projects: is empty"),
            (
                of(good.replace("10", "-1")),
                "feeds.json: invalid value: integer `-1`",
            ),
            (
                of(project("", "")),
                "feeds.json: projects[0].project: \"\" cannot be sent",
            ),
            (
                of(format!("{good},{good}")),
                "feeds.json: projects[1].project: \"a\" occurs twice",
            ),
            (
                of(project("a", "")),
                "feeds.json: projects[0].rules: is empty",
            ),
            (
                of(project("a", r#""../x""#)),
                "feeds.json: projects[0].rules: \"../x\" is not a relative path",
            ),
        ] {
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_missing_index_or_body_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = || Index::open(folder.path()).unwrap_err().to_string();
        assert!(error().contains("feeds.json: "), "{}", error());
        let text = format!(r#"{{"projects":[{}]}}"#, project("a", r#""a-1.json""#));
        fs::write(folder.path().join(INDEX), text).unwrap();
        assert!(error().contains("a-1.json is not there"), "{}", error());
        fs::create_dir(folder.path().join(RULES)).unwrap();
        fs::write(folder.path().join(RULES).join("a-1.json"), "{}").unwrap();
        assert_eq!(Index::open(folder.path()).unwrap().projects.len(), 1);
    }
}
