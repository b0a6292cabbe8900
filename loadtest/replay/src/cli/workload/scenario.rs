// SPDX-License-Identifier: Apache-2.0
//! `weir-replay workload scenario`.

use std::path::PathBuf;
use std::time::Duration;

use weir_replay::scenario::{Fleet, Plan, Scenario as Checked};
use weir_replay::units;

use super::output::Output;

/// Makes the workload of a scenario, which k6 sends too.
///
/// MADE UP, but for the requests of a trace: moments (a Poisson process whose rate is the stage's), keys
/// (Zipf's law), users and priorities (each by its share), run times and sizes (as distributed). Every
/// choice comes from the seed: same seed, same bytes. The report (`--report`) is the plan that k6 needs
/// beside the workload: stages, priorities and thresholds.
#[derive(Debug, clap::Args)]
pub(crate) struct Scenario {
    /// The scenario, as those in loadtest/scenarios.
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    #[command(flatten)]
    fleet: Capacity,
    /// Shorten or stretch all stages so that it lasts so long.
    #[arg(long, value_name = "DURATION", value_parser = units::duration_above_0)]
    lasting: Option<Duration>,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Capacity {
    /// Cores of all hosts: each job holds one for its run time, so they do cores / mean run time.
    #[arg(long, value_parser = units::positive)]
    cores: Option<f64>,
    /// Requests a second that the hosts can do, as measured.
    #[arg(long, value_name = "RATE", value_parser = units::positive)]
    capacity: Option<f64>,
}

impl Scenario {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let fleet = match (self.fleet.cores, self.fleet.capacity) {
            (Some(cores), _) => Fleet::Cores(cores),
            (_, capacity) => Fleet::Requests(capacity.unwrap_or_default()),
        };
        let scenario = Checked::read(&self.scenario)?;
        let (requests, plan) = scenario.make(fleet, self.lasting, self.seed)?;
        anyhow::ensure!(
            !requests.is_empty(),
            "{}: no request comes at these rates in this time",
            self.scenario.display()
        );
        self.output.save(&requests, &plan)?;
        tell(&plan);
        Ok(())
    }
}

fn tell(plan: &Plan) {
    let seconds = plan.length();
    eprintln!(
        "{}: {} requests over {seconds:.1} s; the fleet does {:.1}/s of {:.1} ms",
        plan.scenario, plan.requests, plan.capacity.requests_per_s, plan.mean_run_ms,
    );
    for stage in &plan.stages {
        let length = stage.to_s - stage.from_s;
        let offered = stage.core_seconds(&plan.capacity);
        let of_capacity = offered.map_or_else(String::new, |offered| {
            format!(", {:.2} of the capacity", stage.run_s / offered)
        });
        eprintln!(
            "{}: {length:.1} s, {} requests ({:.1}/s){of_capacity}",
            stage.name,
            stage.requests,
            stage.requests as f64 / length,
        );
    }
}
