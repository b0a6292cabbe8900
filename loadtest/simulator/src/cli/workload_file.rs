// SPDX-License-Identifier: Apache-2.0
//! A workload file. It is read once to be checked and to learn its keys, and again while it is played, so that a long
//! one needs no more memory than a short one.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use weir_llm_host::Settings;
use weir_llm_host::prompt::BYTES_PER_TOKEN;
use weir_policy::Overload;
use weir_replay::table::{self, BadInput};
use weir_replay::workload::{Request, Requests};
use weir_sim::plan::longest_first;
use weir_sim::workload::Job;
use weir_sim::{Scenario, Workload};

/// A file that can be played.
pub(super) struct WorkloadFile {
    path: PathBuf,
    pub(super) workload: Workload,
    pub(super) requests: usize,
    /// When the last request comes.
    pub(super) lasts: Duration,
    /// Cores that are busy on average when nobody waits, fetches left out; of a language model hosts that read prompts
    /// all the time, without caches.
    busy: f64,
}

impl WorkloadFile {
    /// Reads the whole file for what these hosts have to know of it.
    ///
    /// # Errors
    /// It cannot be read, or a line is bad: which, and why.
    pub(super) fn check(path: &Path, scenario: &Scenario) -> Result<Self> {
        let model = scenario.language_model.as_ref();
        let mut file = Self {
            path: path.to_owned(),
            workload: Workload::new(model.is_some()),
            requests: 0,
            lasts: Duration::ZERO,
            busy: 0.0,
        };
        let mut work = 0.0;
        for read in open(path)? {
            let (line, request) = read.with_context(|| path.display().to_string())?;
            file.workload.learn(&request);
            let job = file.workload.job(&request).ok_or_else(|| {
                anyhow!("{}: {}", path.display(), unknown_priority(line, &request))
            })?;
            work += seconds(&job, model);
            file.lasts = job.at;
            file.requests += 1;
        }
        if !file.lasts.is_zero() {
            file.busy = work / file.lasts.as_secs_f64();
        }
        Ok(file)
    }

    /// Reads it again, request by request.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) fn play(&self) -> Result<Play<'_>> {
        Ok(Play {
            file: self,
            requests: open(&self.path)?,
            failed: None,
        })
    }

    /// Makes the plan that the policy needs, if it does.
    pub(super) fn plan(&self, scenario: &mut Scenario) -> Result<()> {
        if scenario.lacks_plan() {
            let mut play = self.play()?;
            let jobs = play.by_ref().map(|(_, job)| job);
            let plan = longest_first(self.workload.keys(), jobs, scenario.hosts);
            play.end()?;
            scenario.plan = Some(plan);
        }
        Ok(())
    }

    /// Without shedding nothing settles where there is too much work, and every figure depends on how long the workload
    /// goes on. `load`: requests come so many times as fast as in the file.
    pub(super) fn flag_overload(&self, scenario: &Scenario, load: f64) {
        let busy = self.busy * load;
        if scenario.policy.overload != Overload::None {
            return;
        }
        let hosts = scenario.hosts;
        let cores = hosts * scenario.host.cores;
        if scenario.language_model.is_some() {
            if busy > hosts as f64 {
                eprintln!(
                    "warning: more work than the fleet can do without caches: {busy:.1} of {hosts} hosts would read \
                     prompts all the time, and nothing is shed"
                );
            }
        } else if busy > cores as f64 {
            eprintln!(
                "warning: more work than the fleet can do: {busy:.1} of {cores} cores would be busy, and nothing is \
                 shed; queues grow for as long as the workload lasts"
            );
        }
    }
}

/// The requests of a file while it is played, each with its job. It ends at the first line that cannot be read any
/// more: [`Play::end`] tells.
pub(super) struct Play<'a> {
    file: &'a WorkloadFile,
    requests: Requests<Box<dyn BufRead>>,
    failed: Option<anyhow::Error>,
}

impl Play<'_> {
    /// Whether all of the file was played.
    ///
    /// # Errors
    /// It is another one than was checked.
    pub(super) fn end(self) -> Result<()> {
        let changed = || format!("{}: changed since it was checked", self.file.path.display());
        self.failed
            .map_or(Ok(()), |error| Err(error.context(changed())))
    }
}

impl Iterator for Play<'_> {
    type Item = (Request, Job);

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed.is_some() {
            return None;
        }
        let (line, request) = match self.requests.next()? {
            Ok(read) => read,
            Err(error) => {
                self.failed = Some(error.into());
                return None;
            }
        };
        match self.file.workload.job(&request) {
            Some(job) => Some((request, job)),
            None => {
                let other = BadInput::new(line, "key", "is a new one");
                self.failed = Some(other.into());
                None
            }
        }
    }
}

fn open(path: &Path) -> Result<Requests<Box<dyn BufRead>>> {
    let opened = table::open(path).map_err(anyhow::Error::from);
    opened
        .and_then(|input| Ok(Requests::new(input)?))
        .with_context(|| path.display().to_string())
}

fn unknown_priority(line: usize, request: &Request) -> BadInput {
    let reason = format!("{:?} is neither high nor low", request.priority);
    BadInput::new(line, "priority", reason)
}

/// Of one core, or of a host that reads prompts.
fn seconds(job: &Job, model: Option<&Settings>) -> f64 {
    match model {
        Some(model) => {
            let tokens = job.bytes.div_ceil(BYTES_PER_TOKEN as u64);
            model.timing.prefill(tokens).as_secs_f64()
        }
        None => job.work.core_time().as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;
    use crate::cli::scenario;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        fleet: scenario::Args,
    }

    const FILE: &str =
        "t_us,key,priority,user,run_us,bytes\n0,a,high,u,1000000,5\n2000000,,low,,3000000,0\n";

    fn checked(text: &str) -> (tempfile::NamedTempFile, Result<WorkloadFile>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, text).unwrap();
        let scenario = Line::parse_from(["test"]).fleet.scenario().unwrap();
        let checked = WorkloadFile::check(file.path(), &scenario);
        (file, checked)
    }

    #[test]
    fn what_is_played_is_what_was_checked() {
        let (_kept, file) = checked(FILE);
        let file = file.unwrap();
        assert_eq!(file.lasts, Duration::from_secs(2));
        assert_eq!(file.busy, 2.0);
        let mut play = file.play().unwrap();
        let keys: Vec<_> = play
            .by_ref()
            .map(|(request, job)| (request.t_us, job.key))
            .collect();
        assert_eq!(keys, [(0, Some(0)), (2_000_000, None)]);
        play.end().unwrap();
    }

    #[test]
    fn a_file_that_changes_meanwhile_is_not_played_to_its_end() {
        for (line, reason) in [
            ("2000001,b,low,,0,0\n", "line 4: key: is a new one"),
            (
                "1,a,low,,0,0\n",
                "line 4: t_us: 1 is before 2000000 of the line above",
            ),
        ] {
            let (kept, file) = checked(FILE);
            let file = file.unwrap();
            fs::write(&kept, format!("{FILE}{line}")).unwrap();
            let mut play = file.play().unwrap();
            assert_eq!(play.by_ref().count(), 2);
            let error = format!("{:#}", play.end().unwrap_err());
            assert!(error.contains("changed since it was checked"), "{error}");
            assert!(error.ends_with(reason), "{error}");
        }
    }

    #[test]
    fn a_priority_without_a_class_is_refused_with_its_line() {
        let (_kept, file) = checked(&FILE.replace("low", "lowest"));
        let error = format!("{:#}", file.err().unwrap());
        assert!(
            error.ends_with("line 3: priority: \"lowest\" is neither high nor low"),
            "{error}"
        );
    }
}
