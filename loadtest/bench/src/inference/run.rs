// SPDX-License-Identifier: Apache-2.0
//! One way, once: the whole workload, from empty caches.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use weir_stage::busy::Busy;
use weir_stage::interrupt;

use crate::Bench;
use crate::inference::figures;
use crate::inference::plan::Plan;
use crate::inference::records::{self, Answered, Record};
use crate::inference::stage::Stage;
use crate::inference::way::Way;
use crate::inference::workload::Workload;

/// More than the slowest answer takes; what is not answered by then is given up and counted.
const DEADLINE: &str = "60s";

pub(super) struct Run {
    pub(super) way: Way,
    pub(super) records: Vec<Record>,
    pub(super) answered: Vec<Answered>,
    /// CPU time of the sidecar while the workload was sent, until the last answer.
    pub(super) envoy_cpu: Duration,
    /// The same of the picker or weir-control.
    pub(super) asked_cpu: Option<Duration>,
    /// Share of a core that sidecar and picker or weir-control take without requests.
    pub(super) idle: f64,
    /// From the first request to the last answer.
    pub(super) lasted: Duration,
    /// Of the machine's cores, while the workload was sent.
    pub(super) busy: Option<f64>,
}

pub(super) fn once(
    bench: &Bench,
    plan: &Plan,
    workload: &Workload,
    way: Way,
    folder: &Path,
) -> Result<Run> {
    eprintln!(
        "inference: {}, {:.0} s",
        way.name(),
        workload.facts.duration_s
    );
    let mut stage = Stage::start(bench, plan, way, folder).context(way.name())?;
    let idle = idle(&stage, plan.idle)?;
    let cpu = |stage: &Stage| -> Result<(Duration, Option<Duration>)> {
        let asked = stage.asked.map(|process| process.cpu()).transpose()?;
        Ok((stage.envoy.process.cpu()?, asked))
    };
    let before = cpu(&stage)?;
    let (busy, started) = (Busy::start(), Instant::now());
    let out = folder.join("records.ndjson");
    let mut command = Command::new(bench.programs.release("weir-replay")?);
    command
        .args(["run", "--path", "/v1/completions", "--deadline", DEADLINE])
        .args(["--target", &stage.envoy.listener.to_string()])
        .arg("--workload")
        .arg(&workload.file)
        .arg("--bodies")
        .arg(&workload.bodies)
        .arg("--out")
        .arg(&out)
        .arg("--summary")
        .arg(folder.join("summary.json"));
    stage.processes.run("weir-replay", command, |_| ())?;
    let (busy, lasted) = (busy.share(), started.elapsed());
    let after = cpu(&stage)?;
    let run = Run {
        way,
        records: records::read(&out)?,
        answered: records::read(&stage.request_log)?,
        envoy_cpu: after.0 - before.0,
        asked_cpu: after.1.zip(before.1).map(|(after, before)| after - before),
        idle,
        lasted,
        busy,
    };
    run.check(workload)?;
    Ok(run)
}

fn idle(stage: &Stage, time: Duration) -> Result<f64> {
    let spent = || -> Result<Duration> {
        let asked = stage.asked.map(|process| process.cpu()).transpose()?;
        Ok(stage.envoy.process.cpu()? + asked.unwrap_or_default())
    };
    let (before, started) = (spent()?, Instant::now());
    while started.elapsed() < time {
        interrupt::check()?;
        sleep(Duration::from_millis(50));
    }
    Ok((spent()? - before).as_secs_f64() / started.elapsed().as_secs_f64())
}

impl Run {
    /// What was answered once was counted once, by both sides.
    fn check(&self, workload: &Workload) -> Result<()> {
        let (sent, wanted) = (self.records.len(), workload.facts.requests);
        ensure!(sent == wanted, "{sent} records of {wanted} requests");
        let good = self.good().count();
        ensure!(
            good * 10 >= sent * 9,
            "{}: only {good} of {sent} requests were answered: the hosts are overloaded, or the way \
             is broken; its logs tell",
            self.way.name()
        );
        let counted = self.answered.len();
        ensure!(
            counted >= good,
            "the hosts noted {counted} answers, and {good} arrived"
        );
        figures::check_hits(&self.answered)
    }

    /// CPU time of sidecar and picker or weir-control.
    pub(super) fn cpu(&self) -> Duration {
        self.envoy_cpu + self.asked_cpu.unwrap_or_default()
    }

    /// The same beyond what they would have taken without requests.
    pub(super) fn cpu_of_requests(&self) -> Duration {
        self.cpu().saturating_sub(self.lasted.mul_f64(self.idle))
    }

    /// Those that were answered.
    pub(super) fn good(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| record.outcome == "ok")
    }
}
