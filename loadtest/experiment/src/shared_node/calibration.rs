// SPDX-License-Identifier: Apache-2.0
//! What the service can do on one core, alone.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Serialize;
use weir_governor::cores::Cores;
use weir_replay::record::Outcome;
use weir_stage::processes::Processes;

use crate::cgroups::Cgroups;
use crate::shared_node::programs::Programs;
use crate::shared_node::service;
use crate::shared_node::work::Work;

/// CPU time of a job. So much that what the mesh needs for a request is small beside it.
const JOB: Duration = Duration::from_millis(20);
/// Rules of the first guess, and the fewest and the most that are tried.
const RULES: (usize, usize, usize) = (16, 1, 900);

/// Who is measured while the machine does something else is slower than it is: of so many bursts the best counts.
const BURSTS: u32 = 2;

/// What was found.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Calibration {
    /// Rules of a job.
    pub rules: usize,
    /// Jobs a second on core 0.
    pub one_core: f64,
}

impl Calibration {
    /// Measures it; files go to `folder`.
    ///
    /// # Errors
    /// A program fails, or a job has no good answer.
    pub fn measure(programs: &Programs, folder: &Path) -> Result<Self> {
        let (first, least, most) = RULES;
        let guessed = rate(programs, &folder.join("first"), first, 20)?;
        let rules = (first as f64 * guessed * JOB.as_secs_f64()).round() as usize;
        let rules = rules.clamp(least, most);
        let one_core = rate(programs, &folder.join("second"), rules, 60)?;
        Ok(Self { rules, one_core })
    }
}

/// Jobs a second, of so many that come at once.
fn rate(programs: &Programs, folder: &Path, rules: usize, jobs: usize) -> Result<f64> {
    let work = Work::make(&folder.join("work"), rules)?;
    let mut cgroups = Cgroups::new("shared-node")?;
    cgroups.confine(&Cores::from([0]))?;
    let mut processes = Processes::bound_in(folder.to_owned())?;
    let host = service::start(&mut processes, programs, &cgroups, &work, folder)?;
    warm_up(&mut processes, programs, &work, folder, host)?;
    let burst = folder.join("burst");
    work.workload(&burst, &vec![Duration::ZERO; jobs], 1)?;
    let mut best = 0.0_f64;
    for _ in 0..BURSTS {
        let records = work.send(&mut processes, &programs.replay, &burst, host, |_| ())?;
        let good = records.iter().all(|record| record.outcome == Outcome::Ok);
        ensure!(good, "not all jobs of {} were done", burst.display());
        let durations = records.iter().map(|record| record.duration);
        best = best.max(jobs as f64 / (durations.fold(1e-3, f64::max) / 1e3));
    }
    Ok(best)
}

/// The host reads its project.
///
/// # Errors
/// weir-replay fails.
pub fn warm_up(
    processes: &mut Processes,
    programs: &Programs,
    work: &Work,
    folder: &Path,
    target: std::net::SocketAddr,
) -> Result<()> {
    let every = Duration::from_millis(100);
    let moments: Vec<Duration> = (0..3).map(|number| number * every).collect();
    let folder = folder.join("warm-up");
    work.workload(&folder, &moments, 1)?;
    work.send(processes, &programs.replay, &folder, target, |_| ())?;
    Ok(())
}
