// SPDX-License-Identifier: Apache-2.0
//! `weir-sim what-if`: a workload on the fleet as it is, and on others.

mod shown;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use weir_replay::units;
use weir_sim::what_if::Run;
use weir_sim::workload::Job;
use weir_sim::{Scenario, at_once, simulate};

use super::scenario;
use super::workload_file::WorkloadFile;

#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    weirctl capture access.log --cores 4 --out hour.ndjson\n  \
    weir-sim what-if --workload hour.ndjson --now '--hosts 6 --cores 4' \\\n    \
    --then '--hosts 4' --then '--load 1.5' --then '--selection rendezvous' --page what-if.html")]
pub(super) struct Args {
    /// What is asked for (CSV or NDJSON, as `weirctl capture` and `weir-replay workload` write it)
    #[arg(long, value_name = "FILE")]
    workload: PathBuf,
    /// The fleet as it is: flags of `weir-sim run`, and `--load N` for requests that come N times as fast
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    now: String,
    /// What would be otherwise: more of these flags, which go before those of --now; repeatable
    #[arg(
        long,
        value_name = "FLAGS",
        allow_hyphen_values = true,
        required = true
    )]
    then: Vec<String>,
    /// So many seeds for each, from 1
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// Write a page (HTML) there
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// The flags of one fleet.
#[derive(Parser)]
#[command(
    no_binary_name = true,
    args_override_self = true,
    disable_help_flag = true
)]
struct Flags {
    #[command(flatten)]
    fleet: scenario::Args,
    #[arg(long, default_value = "1", value_parser = units::positive)]
    load: f64,
}

/// One fleet, and the workload as it sees it.
struct Variant {
    name: String,
    scenario: Scenario,
    file: WorkloadFile,
    load: f64,
}

/// A variant and what came of it, by seed.
struct Played {
    name: String,
    runs: Vec<Run>,
}

impl Args {
    pub(super) fn run(&self) -> Result<()> {
        let mut variants = vec![self.variant("now", "--now", "")?];
        for then in &self.then {
            variants.push(self.variant(then, "--then", then)?);
        }
        let seeds = 1..=self.seeds;
        let tasks: Vec<_> = variants
            .iter()
            .flat_map(|variant| seeds.clone().map(move |seed| (variant, seed)))
            .collect();
        let ended = AtomicUsize::new(0);
        let runs = at_once(&tasks, |(variant, seed)| {
            let run = variant.play(*seed);
            let ended = ended.fetch_add(1, Ordering::Relaxed) + 1;
            eprintln!("SIMULATED {ended} of {}: {}", tasks.len(), variant.name);
            run
        });
        let mut runs = runs.into_iter();
        let mut played = Vec::new();
        for variant in &variants {
            let name = variant.name.clone();
            let runs = runs.by_ref().take(self.seeds as usize);
            let runs = runs.collect::<Result<_>>();
            played.push(Played {
                runs: runs.with_context(|| name.clone())?,
                name,
            });
        }
        print!("{}", shown::text(self, &variants[0], &played));
        if let Some(page) = &self.page {
            shown::page(self, &variants[0], &played).write(page)?;
        }
        Ok(())
    }

    /// What is asked for by `--now` and these on top of it.
    fn variant(&self, name: &str, flag: &str, then: &str) -> Result<Variant> {
        let flags = self.now.split_whitespace().chain(then.split_whitespace());
        let flags = Flags::try_parse_from(flags).map_err(|error| {
            let text = error.to_string();
            let reason = text.lines().next().unwrap_or_default();
            anyhow!("{flag}: {}", reason.trim_start_matches("error: "))
        })?;
        let in_flag = || format!("{flag} {then}");
        let mut scenario = flags.fleet.scenario().with_context(in_flag)?;
        let file = WorkloadFile::check(&self.workload, &scenario)?;
        file.plan(&mut scenario)?;
        file.flag_overload(&scenario, flags.load);
        Ok(Variant {
            name: name.to_owned(),
            scenario,
            file,
            load: flags.load,
        })
    }
}

impl Variant {
    fn play(&self, seed: u64) -> Result<Run> {
        let scenario = Scenario {
            seed,
            ..self.scenario.clone()
        };
        let mut run = Run::new(self.file.requests);
        let mut play = self.file.play()?;
        let sooner = |job: Job| Job {
            at: Duration::from_secs_f64(job.at.as_secs_f64() / self.load),
            ..job
        };
        let jobs = play.by_ref().map(|(_, job)| sooner(job));
        simulate(&scenario, self.file.workload.keys(), jobs, |ended| {
            run.add(&ended)
        })?;
        play.end()?;
        Ok(run)
    }
}
