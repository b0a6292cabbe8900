// SPDX-License-Identifier: Apache-2.0
//! One way of one round: too much for one core, little, and too much again.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use weir_governor::cores::Cores;
use weir_replay::record::Outcome;
use weir_stage::processes::Processes;
use weir_stage::usage::Process;

use crate::cgroups::{Cgroups, Seen};
use crate::governor::Governor;
use crate::replay::Record;
use crate::shared_node::batch::{self, JOB};
use crate::shared_node::calibration::{Calibration, warm_up};
use crate::shared_node::figures::Figures;
use crate::shared_node::governor;
use crate::shared_node::mesh::{self, Mesh};
use crate::shared_node::plan::Plan;
use crate::shared_node::programs::Programs;
use crate::shared_node::reaction::Reaction;
use crate::shared_node::way::Way;
use crate::shared_node::work::{Work, moments};

/// Between two looks at who has the cores: a tick of the governor.
const LOOK: Duration = Duration::from_millis(50);
/// Until weir-control tells what the governor has said of the capacity,
const CAPACITY: Duration = Duration::from_secs(10);
/// and until the governor has taken the second core from a service that has nothing to do.
const CALM: Duration = Duration::from_secs(30);

/// The part of all ways.
pub struct Setting<'a> {
    /// The programs that are run.
    pub programs: &'a Programs,
    /// How much of it.
    pub plan: &'a Plan,
    /// How much is much.
    pub found: Calibration,
    /// The requests.
    pub work: &'a Work,
    /// Consul, where the host is in its mesh.
    pub consul: Option<&'a Path>,
}

/// A way's figures of a round: a line of `rounds.jsonl`.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// Counted from 0.
    pub repeat: u32,
    /// The division of the cores.
    pub way: Way,
    /// The outcomes of requests.
    pub requests: Figures,
    /// From the first request to the last answer.
    pub seconds: f64,
    /// CPU time of the service meanwhile,
    pub service_cpu_s: f64,
    /// of the batch job,
    pub batch_cpu_s: f64,
    /// and of Envoy, weir-control and Consul.
    pub mesh_cpu_s: f64,
    /// How often the service's cores were changed.
    pub moves: u64,
    /// How soon and how long the service had both cores.
    pub reaction: Reaction,
    /// The source of weir-control's capacity of the host.
    pub capacity_from: String,
    /// When those were due that were refused; every request is in a file of its own.
    #[serde(skip)]
    pub shed_at_s: Vec<f64>,
    /// The cores over time; in a file of their own.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// A look.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    /// From the first request.
    pub at_s: f64,
    /// Cores that the service may use.
    pub service: usize,
    /// The batch job is there and not frozen.
    pub batch_runs: bool,
}

/// Runs one way. Logs go to `folder`.
///
/// # Errors
/// A program fails, the governor's capacity does not arrive, something is left behind, or a signal has come.
pub fn run(
    setting: &Setting<'_>,
    way: Way,
    (repeat, seed): (u32, u64),
    folder: &Path,
) -> Result<Round> {
    let Setting {
        programs,
        plan,
        work,
        ..
    } = *setting;
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let mut cgroups = Cgroups::new("shared-node")?;
    let mut processes = Processes::bound_in(folder.to_owned())?;
    let mut mesh = mesh::start(&mut processes, setting, &cgroups, folder)?;
    if way == Way::Static {
        cgroups.confine(&Cores::from([0]))?;
    }
    let found = cgroups.cores()?;
    warm_up(&mut processes, programs, work, folder, mesh.caller)?;
    let governor = start_batch(setting, way, &cgroups, &mut processes, &mesh, folder)?;
    let moments = moments(plan, setting.found.one_core, seed);
    work.workload(&folder.join("round"), &moments, seed)?;
    let before = Spent::now(&cgroups, &mesh.parts, governor.as_ref())?;
    let begun = Instant::now();
    let (records, samples) = ask(setting, &cgroups, &mut processes, &mesh, folder)?;
    let seconds = begun.elapsed().as_secs_f64();
    let after = Spent::now(&cgroups, &mesh.parts, governor.as_ref())?;
    let capacity_from = mesh.capacity_from()?;
    if let Some(mut governor) = governor {
        governor.must_live()?;
        governor.end()?;
        cgroups.put_back(&found)?;
    }
    processes.check()?;
    mesh.must_live()?;
    Ok(Round {
        repeat,
        way,
        requests: Figures::of(&records, plan),
        seconds,
        service_cpu_s: (after.service - before.service).as_secs_f64(),
        batch_cpu_s: after.batch.saturating_sub(before.batch).as_secs_f64(),
        mesh_cpu_s: (after.mesh - before.mesh).as_secs_f64(),
        moves: after.moves - before.moves,
        reaction: Reaction::of(&samples, plan),
        capacity_from,
        shed_at_s: shed_at_s(&records),
        samples,
    })
}

/// Sends the round's requests, and looks meanwhile at who has the cores.
fn ask(
    setting: &Setting<'_>,
    cgroups: &Cgroups,
    processes: &mut Processes,
    mesh: &Mesh,
    folder: &Path,
) -> Result<(Vec<Record>, Vec<Sample>)> {
    let mut samples = Vec::new();
    let (folder, target) = (folder.join("round"), mesh.caller);
    let look = |at| {
        if at >= LOOK * samples.len() as u32 {
            samples.extend(Sample::now(cgroups, at));
        }
    };
    let (program, work) = (&setting.programs.replay, setting.work);
    let records = work.send(processes, program, &folder, target, look)?;
    Ok((records, samples))
}

fn shed_at_s(records: &[Record]) -> Vec<f64> {
    let shed = records
        .iter()
        .filter(|record| record.outcome == Outcome::Shed);
    shed.map(|record| record.at).collect()
}

/// Starts the governor, which starts the job, or the job itself.
fn start_batch(
    setting: &Setting<'_>,
    way: Way,
    cgroups: &Cgroups,
    processes: &mut Processes,
    mesh: &Mesh,
    folder: &Path,
) -> Result<Option<Governor>> {
    if !way.is_governed() {
        let process = processes.start("batch", batch::command(setting.programs))?;
        let own = Cores::from([1]);
        let cores = (way == Way::Static).then_some(&own);
        cgroups.take_job(JOB, process.id().unsigned_abs(), cores)?;
        return Ok(None);
    }
    let told = (way == Way::GovernorMesh).then_some(mesh);
    let governor = governor::start(setting.programs, cgroups, told, folder)?;
    if told.is_some() {
        processes.wait_until("the governor's capacity in /tables", CAPACITY, || {
            (mesh.capacity_from().ok()? == "node").then_some(())
        })?;
    }
    processes.wait_until("one core for a service without work", CALM, || {
        (cgroups.cores().ok()?.len() == 1).then_some(())
    })?;
    Ok(Some(governor))
}

impl Sample {
    fn now(cgroups: &Cgroups, at: Duration) -> Option<Self> {
        Some(Self {
            at_s: at.as_secs_f64(),
            service: cgroups.cores().ok()?.len(),
            batch_runs: cgroups.job(JOB) == Seen::Running,
        })
    }
}

/// CPU time and moves of the service's cores so far.
struct Spent {
    service: Duration,
    batch: Duration,
    mesh: Duration,
    moves: u64,
}

impl Spent {
    fn now(cgroups: &Cgroups, mesh: &[Process], governor: Option<&Governor>) -> Result<Self> {
        let mesh = mesh.iter().map(|process| process.cpu());
        Ok(Self {
            service: cgroups.service_cpu(),
            batch: cgroups.job_cpu(JOB),
            mesh: mesh.sum::<Result<_>>()?,
            moves: governor::moves(governor)?,
        })
    }
}
