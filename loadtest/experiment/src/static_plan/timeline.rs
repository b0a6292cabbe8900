// SPDX-License-Identifier: Apache-2.0
//! What each job did, by the timeline that the governor of its node keeps.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use weir_governor::book::shares::state_named;
use weir_governor::jobs::State;

/// A job's course. Times are milliseconds since 1970: both governors have this machine's clock.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Course {
    /// Its name.
    pub job: String,
    /// The node whose governor tells of it.
    pub node: String,
    /// Each time that it began.
    pub began_ms: Vec<u64>,
    /// Each time that it ended, with its code; none where a signal ended it.
    pub ended_ms: Vec<(u64, Option<i32>)>,
}

impl Course {
    /// When it began and ended, if it ran once and well.
    #[must_use]
    pub fn once(&self) -> Option<(u64, u64)> {
        match (&self.began_ms[..], &self.ended_ms[..]) {
            ([began], [(ended, Some(0))]) if began <= ended => Some((*began, *ended)),
            _ => None,
        }
    }
}

/// What is read of a line of the timeline. What has not changed is left out there.
#[derive(Deserialize)]
struct Line {
    at: u64,
    #[serde(default)]
    jobs: BTreeMap<String, JobLine>,
}

#[derive(Deserialize)]
struct JobLine {
    state: String,
    code: Option<i32>,
}

/// The courses of a node's jobs, by name.
///
/// # Errors
/// The file cannot be read, or is not a timeline.
pub fn read(file: &Path, node: &str) -> Result<Vec<Course>> {
    let text = std::fs::read_to_string(file);
    let read = || courses(&text?, node);
    read().with_context(|| format!("reading {}", file.display()))
}

fn courses(text: &str, node: &str) -> Result<Vec<Course>> {
    let mut all: BTreeMap<String, (State, Course)> = BTreeMap::new();
    for line in text.lines() {
        let Line { at, jobs } = serde_json::from_str(line)?;
        for (name, JobLine { state, code }) in jobs {
            let now = state_named(&state).with_context(|| format!("no state is called {state}"))?;
            let (before, course) = all.entry(name.clone()).or_insert_with(|| {
                let course = Course {
                    job: name,
                    node: node.to_owned(),
                    ..Course::default()
                };
                (State::Waiting, course)
            });
            let goes_on = |state: State| matches!(state, State::Running | State::Paused);
            if goes_on(now) && !goes_on(*before) {
                course.began_ms.push(at);
            }
            if now.has_ended() && !before.has_ended() {
                course.ended_ms.push((at, code));
            }
            *before = now;
        }
    }
    Ok(all.into_values().map(|(_, course)| course).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(states: &[(u64, &str)]) -> String {
        let line = |(at, job): &(u64, &str)| format!("{{\"at\":{at},\"jobs\":{{\"a\":{job}}}}}\n");
        states.iter().map(line).collect()
    }

    fn one(states: &[(u64, &str)]) -> Course {
        courses(&text(states), "four").unwrap().remove(0)
    }

    #[test]
    fn a_job_runs_from_its_first_core_to_its_end_whatever_pauses_it() {
        let course = one(&[
            (1, r#"{"state":"waiting"}"#),
            (5, r#"{"state":"running","cores":"1"}"#),
            (6, r#"{"state":"paused"}"#),
            (7, r#"{"state":"running","cores":"1"}"#),
            (9, r#"{"state":"finished","code":0}"#),
        ]);
        assert_eq!((&*course.job, &*course.node), ("a", "four"));
        assert_eq!(course.once(), Some((5, 9)));
    }

    #[test]
    fn what_runs_twice_fails_or_never_begins_did_not_run_once() {
        let (running, finished) = (r#"{"state":"running"}"#, r#"{"state":"finished","code":0}"#);
        let twice = one(&[(1, running), (2, finished), (3, running), (4, finished)]);
        assert_eq!((twice.began_ms.len(), twice.once()), (2, None));
        let failed = one(&[(1, running), (2, r#"{"state":"failed","code":3}"#)]);
        assert_eq!(
            (&*failed.ended_ms, failed.once()),
            (&[(2, Some(3))][..], None)
        );
        assert_eq!(one(&[(1, r#"{"state":"waiting"}"#)]).once(), None);
        assert_eq!(one(&[(1, running)]).once(), None);
        assert!(courses(&text(&[(1, r#"{"state":"lost"}"#)]), "four").is_err());
    }
}
