// SPDX-License-Identifier: Apache-2.0
//! The same requests, SIMULATED: weir-sim's scenario of the run, with what is otherwise here.

use anyhow::Result;
use weir_sim::document001::Experiment as Run;
use weir_sim::scenario::{Signal, Timeouts};
use weir_sim::tally::Tally;
use weir_sim::{Scenario, simulate_watched};

use super::plan::{Plan, Work};
use super::workload::Workload;

/// None where hosts do the work.
pub(super) fn tally(plan: &Plan, workload: &Workload, run: Run) -> Result<Option<Tally>> {
    let Work::Emulated(stretch) = &plan.work else {
        return Ok(None);
    };
    let scenario = run.scenario(&stretch.params, plan.seed);
    let scenario = Scenario {
        callers: plan.callers,
        // A request is one joblet here, which hosts do not give up.
        signal: Signal::Jobs,
        timeouts: Timeouts {
            deadline: plan.deadline * plan.speed,
            queue: None,
            ..scenario.timeouts
        },
        attempts: super::plan::ATTEMPTS,
        ..scenario
    };
    let mut tally = Tally::new(plan.hosts, stretch.lasts.as_secs_f64() / 3600.0);
    let mut history = std::mem::take(&mut tally.history);
    let jobs = workload.jobs.iter().cloned();
    let tell = |ended| tally.add(&ended, None);
    let mut watch = |sample| history.add(sample);
    simulate_watched(&scenario, &workload.keys, jobs, tell, &mut watch)?;
    tally.history = history;
    Ok(Some(tally))
}
