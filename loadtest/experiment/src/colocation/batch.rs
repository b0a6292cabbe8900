// SPDX-License-Identifier: Apache-2.0
//! Jobs that the lab starts itself, where nobody governs: in the order of their queues, two at a time, on all cores.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use weir_stage::process::Started;

use crate::colocation::jobs::Job;

/// As many as weir-governor's policies run at most.
const AT_ONCE: usize = 2;

/// A job that has ended. Times are from the round's start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ended {
    /// Its name.
    pub name: String,
    /// When it was started, where that was seen.
    pub started_s: Option<f64>,
    /// When it had ended.
    pub ended_s: f64,
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
}

/// Those of one round.
#[derive(Debug)]
pub struct Batch {
    logs: PathBuf,
    waiting: VecDeque<Job>,
    running: Vec<(&'static str, Duration, Started)>,
    ended: Vec<Ended>,
}

impl Batch {
    /// None is started yet.
    #[must_use]
    pub fn new(jobs: &[Job], logs: PathBuf) -> Self {
        Self {
            logs,
            waiting: jobs.iter().cloned().collect(),
            running: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Sees what has ended and starts what may. `now` is from the round's start.
    ///
    /// # Errors
    /// A job cannot be started.
    pub fn go_on(&mut self, now: Duration) -> Result<()> {
        for (name, started, mut process) in std::mem::take(&mut self.running) {
            match process.ended()? {
                None => self.running.push((name, started, process)),
                Some(status) => self.ended.push(Ended {
                    name: name.to_owned(),
                    started_s: Some(started.as_secs_f64()),
                    ended_s: now.as_secs_f64(),
                    code: status.code(),
                }),
            }
        }
        while self.running.len() < AT_ONCE
            && let Some(job) = self.waiting.pop_front()
        {
            let process = Started::new(job.name, job.command(), &self.logs)?;
            self.running.push((job.name, now, process));
        }
        Ok(())
    }

    /// Whether it runs.
    #[must_use]
    pub fn runs(&self, name: &str) -> bool {
        self.running.iter().any(|(running, ..)| *running == name)
    }

    /// All of them, once all have ended.
    #[must_use]
    pub fn all(&self) -> Option<&[Ended]> {
        (self.waiting.is_empty() && self.running.is_empty()).then_some(&self.ended)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn two_run_at_a_time_in_their_order_and_codes_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let job = |name, script: &str| Job {
            name,
            queue: "short",
            threads: 1,
            line: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            folder: folder.path().to_owned(),
        };
        // Each of the first two ends once the other one is there.
        let meet = |own: &str, other: &str| {
            format!("touch {own}; until [ -e {other} ]; do sleep 0.01; done")
        };
        let jobs = [
            job("a", &meet("1", "2")),
            job("b", &format!("{}; exit 3", meet("2", "1"))),
            job("c", "[ -e 1 ]"),
        ];
        let mut batch = Batch::new(&jobs, folder.path().to_owned());
        let begun = Instant::now();
        batch.go_on(Duration::ZERO).unwrap();
        assert!(batch.runs("a") && batch.runs("b") && !batch.runs("c"));
        while batch.all().is_none() {
            let waited = begun.elapsed();
            assert!(waited < Duration::from_secs(60), "not ended: {batch:?}");
            batch.go_on(begun.elapsed()).unwrap();
        }
        let mut codes: Vec<(&str, Option<i32>)> = batch
            .all()
            .unwrap()
            .iter()
            .map(|ended| (ended.name.as_str(), ended.code))
            .collect();
        codes.sort_unstable();
        assert_eq!(codes, [("a", Some(0)), ("b", Some(3)), ("c", Some(0))]);
    }
}
