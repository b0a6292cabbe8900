// SPDX-License-Identifier: Apache-2.0
//! What hosts have executed, by their own notes (`weir-worker --faults`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Executions of every request, by its name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Executions {
    by_id: BTreeMap<String, Vec<Execution>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Execution {
    host: String,
    ended: bool,
}

/// Requests that were executed more than once.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Doubled {
    /// More than one of the executions went to its end, or could have.
    pub doubled: Vec<String>,
    /// All but one of them ended with a host that was killed.
    pub died: Vec<String>,
}

impl Executions {
    /// Reads the notes of all hosts.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut executions = Self::default();
        let entries =
            fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            let file = entry?.path();
            let host = file.file_stem().and_then(|name| name.to_str());
            let (Some(host), Some("executions")) =
                (host, file.extension().and_then(|kind| kind.to_str()))
            else {
                continue;
            };
            let notes =
                fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            executions.add(host, &notes);
        }
        Ok(executions)
    }

    /// Adds the notes of a host.
    pub fn add(&mut self, host: &str, notes: &str) {
        for line in notes.lines() {
            let Some((what, id)) = line.split_once(' ') else {
                continue;
            };
            let of_id = self.by_id.entry(id.to_owned()).or_default();
            match what {
                "began" => of_id.push(Execution {
                    host: host.to_owned(),
                    ended: false,
                }),
                _ => {
                    let here = |execution: &&mut Execution| execution.host == host;
                    if let Some(execution) = of_id.iter_mut().rev().find(here) {
                        execution.ended = true;
                    }
                }
            }
        }
    }

    /// Requests of these names that ran more than once, when some of the hosts were killed.
    #[must_use]
    pub fn doubled<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a str>,
        killed: &BTreeSet<String>,
    ) -> Doubled {
        let mut doubled = Doubled::default();
        for id in ids {
            let executions = self.by_id.get(id).map_or(&[][..], Vec::as_slice);
            if executions.len() < 2 {
                continue;
            }
            let died = executions.iter().filter(|execution| execution.died(killed));
            match executions.len() - died.count() {
                0 | 1 => doubled.died.push(id.to_owned()),
                _ => doubled.doubled.push(id.to_owned()),
            }
        }
        doubled
    }

    /// Whether a killed host had begun this request and did not end it.
    #[must_use]
    pub fn died(&self, id: &str, killed: &BTreeSet<String>) -> bool {
        let executions = self.by_id.get(id).into_iter().flatten();
        executions
            .into_iter()
            .any(|execution| execution.died(killed))
    }

    /// Whether a host has begun it.
    #[must_use]
    pub fn began(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }
}

impl Execution {
    fn died(&self, killed: &BTreeSet<String>) -> bool {
        !self.ended && killed.contains(&self.host)
    }
}

/// Where hosts of a mesh note what they execute, and look whether they are to fail.
pub(crate) fn folder(mesh: &Path) -> PathBuf {
    mesh.join("executions")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executions() -> Executions {
        let mut executions = Executions::default();
        executions.add("a", "began 1\nended 1\nbegan 2\nbegan 3\n");
        executions.add("b", "began 2\nended 2\nbegan 3\nended 3\nbegan 4\n");
        executions
    }

    fn killed(host: &str) -> BTreeSet<String> {
        BTreeSet::from([host.to_owned()])
    }

    #[test]
    fn a_request_that_two_hosts_have_executed_is_doubled() {
        let ids = ["1", "2", "3", "4", "5"];
        let found = executions().doubled(ids, &BTreeSet::new());
        assert_eq!(
            (found.doubled, found.died.len()),
            (vec!["2".into(), "3".into()], 0)
        );
    }

    #[test]
    fn an_execution_that_ended_with_its_host_is_told_apart() {
        let found = executions().doubled(["2", "3"], &killed("a"));
        assert_eq!((found.doubled.len(), found.died.len()), (0, 2));
        // The host that answered was killed later: that excuses nothing.
        let found = executions().doubled(["2", "3"], &killed("b"));
        assert_eq!(found.doubled.len(), 2);
    }

    #[test]
    fn the_same_host_may_not_execute_twice_either() {
        let mut executions = Executions::default();
        executions.add("a", "began 1\nended 1\nbegan 1\nended 1\n");
        assert_eq!(executions.doubled(["1"], &killed("a")).doubled, ["1"]);
    }

    #[test]
    fn what_a_killed_host_had_begun_is_known() {
        let executions = executions();
        assert!(executions.died("2", &killed("a")));
        assert!(!executions.died("1", &killed("a")));
        assert!(!executions.died("2", &killed("b")));
        assert!(executions.began("4") && !executions.began("5"));
    }
}
