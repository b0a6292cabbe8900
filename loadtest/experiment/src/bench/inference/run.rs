// SPDX-License-Identifier: Apache-2.0
//! One way, once: a workload, from empty caches.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use weir_stage::busy::Busy;
use weir_stage::interrupt;

use crate::bench::inference::Trial;
use crate::bench::inference::cpu::{Cpu, Meter};
use crate::bench::inference::hits;
use crate::bench::inference::records::{Answered, Record};
use crate::bench::inference::sending::Sending;
use crate::bench::inference::stage::Stage;
use crate::bench::inference::way::Way;
use crate::bench::reasons::Reasons;
use crate::costs::Costs;
use crate::driver::read_lines;

pub(super) struct Run {
    pub(super) way: Way,
    /// Of the requests.
    pub(super) deadline: Duration,
    /// How many requests had come when the picker or weir-control was killed.
    pub(super) killed_at: Option<usize>,
    pub(super) records: Vec<Record>,
    pub(super) answered: Vec<Answered>,
    /// Of Weir's choices.
    pub(super) reasons: Reasons,
    /// Of all its sidecars.
    pub(super) envoy: Cpu,
    /// Of the picker or weir-control, unless it was killed.
    pub(super) asked: Option<Cpu>,
    /// From the first request to the last answer.
    pub(super) lasted: Duration,
    /// Of the machine's cores, while the workload was sent.
    pub(super) busy: Option<f64>,
}

/// All ways at once.
pub(super) fn round(trial: &Trial<'_>, sending: &Sending<'_>, folder: &Path) -> Result<Vec<Run>> {
    let Trial { setting, plan, .. } = trial;
    let start = |way: &Way| {
        let way = *way;
        eprintln!("inference: starting {}", way.name());
        let folder = folder.join(way.node());
        let stage = Stage::start(setting, plan, way, &folder).context(way.name())?;
        Ok((way, stage, folder))
    };
    let stages: Vec<_> = sending.ways.iter().map(start).collect::<Result<_>>()?;
    let costs = |(_, stage, _): &(Way, Stage, PathBuf)| stage.costs();
    let alone = stages.iter().map(costs).collect::<Result<Vec<_>>>()?;
    leave_alone(plan.idle)?;
    eprintln!(
        "inference: {} requests by each way, {:.0} s",
        sending.requests,
        sending.lasts.as_secs_f64() / sending.speed
    );
    thread::scope(|scope| {
        let runs = stages.into_iter().zip(alone);
        let runs: Vec<_> = runs
            .map(|((way, stage, folder), alone)| {
                let run = move || once(trial, sending, way, stage, &alone, &folder);
                scope.spawn(move || run().context(way.name()))
            })
            .collect();
        let ended = runs.into_iter().map(|run| match run.join() {
            Ok(run) => run,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect()
    })
}

fn once(
    trial: &Trial<'_>,
    sending: &Sending<'_>,
    way: Way,
    mut stage: Stage,
    (sidecars, asked): &(Vec<Costs>, Option<Costs>),
    folder: &Path,
) -> Result<Run> {
    let earlier = stage.reasons()?;
    let sidecars = sidecars.iter().map(Meter::after);
    let sidecars = sidecars.collect::<Result<Vec<_>>>()?;
    let asked = asked.as_ref().map(Meter::after).transpose()?;
    let (busy, started) = (Busy::start(), Instant::now());
    let out = folder.join("records.ndjson");
    let mut command = Command::new(&trial.setting.programs.replay);
    command
        .args(["run", "--path", "/v1/completions"])
        .args(["--deadline", &format!("{}ms", sending.deadline.as_millis())])
        .args(["--speed", &sending.speed.to_string()])
        .args(["--max-attempts", &sending.attempts.to_string()])
        .arg("--workload")
        .arg(sending.file)
        .arg("--bodies")
        .arg(&trial.workload.bodies)
        .arg("--out")
        .arg(&out)
        .arg("--summary")
        .arg(folder.join("summary.json"));
    for envoy in &stage.envoys {
        command.args(["--target", &envoy.listener.to_string()]);
    }
    let killed_at = match sending.kills {
        true => Some(stage.run_and_kill("weir-replay", command, sending.requests / 2)?),
        false => {
            stage.processes.run("weir-replay", command, |_| ())?;
            None
        }
    };
    let (busy, lasted) = (busy.share(), started.elapsed());
    let sidecars = sidecars.iter().map(Meter::read);
    let envoy = Cpu::sum(sidecars.collect::<Result<Vec<_>>>()?);
    let asked = asked.filter(|_| killed_at.is_none());
    let asked = asked.map(|asked| asked.read()).transpose()?;
    let run = Run {
        way,
        deadline: sending.deadline,
        killed_at,
        records: read_lines(&out)?,
        answered: read_lines(&stage.request_log)?,
        reasons: stage.reasons()?.since(&earlier),
        envoy,
        asked,
        lasted,
        busy,
    };
    run.check(sending)?;
    Ok(run)
}

fn leave_alone(time: Duration) -> Result<()> {
    let started = Instant::now();
    while started.elapsed() < time {
        interrupt::check()?;
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

impl Run {
    /// One in which nothing was sent, for tests.
    #[cfg(test)]
    pub(super) fn nothing(way: Way) -> Self {
        Self {
            way,
            deadline: Duration::from_secs(60),
            killed_at: None,
            records: vec![],
            answered: vec![],
            reasons: Reasons::default(),
            envoy: Cpu::sum([]),
            asked: None,
            lasted: Duration::ZERO,
            busy: None,
        }
    }

    /// What was answered once was counted once, by both sides.
    fn check(&self, sending: &Sending<'_>) -> Result<()> {
        let (sent, wanted) = (self.records.len(), sending.requests);
        ensure!(sent == wanted, "{sent} records of {wanted} requests");
        let good = self.good().count();
        ensure!(
            sending
                .most_failed_percent
                .is_none_or(|most| (sent - good) * 100 <= sent * most),
            "{}: only {good} of {sent} requests were answered: the hosts are overloaded, or the way \
             is broken; its logs tell",
            self.way.name()
        );
        let silent = self.good().filter(|record| record.host_us().is_none());
        let silent = silent.count();
        ensure!(silent == 0, "{silent} answers without the host's times");
        let counted = self.answered.len();
        ensure!(
            counted >= good,
            "the hosts noted {counted} answers, and {good} arrived"
        );
        // What callers left behind may have been read, and found by others.
        match good == sent || sending.most_failed_percent.is_some() {
            true => hits::check(&self.answered),
            false => Ok(()),
        }
    }

    /// Share of a core that both take without requests.
    pub(super) fn idle(&self) -> f64 {
        self.envoy.idle + self.asked.map_or(0.0, |asked| asked.idle)
    }

    /// CPU time of both.
    pub(super) fn cpu(&self) -> Duration {
        self.envoy.spent + self.asked.map_or(Duration::ZERO, |asked| asked.spent)
    }

    /// The same beyond that.
    pub(super) fn cpu_of_requests(&self) -> Duration {
        let both = std::iter::once(self.envoy).chain(self.asked);
        both.map(|cpu| cpu.of_requests(self.lasted)).sum()
    }

    /// Those that were answered.
    pub(super) fn good(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| record.is_good())
    }
}
