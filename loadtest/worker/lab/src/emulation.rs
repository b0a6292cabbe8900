// SPDX-License-Identifier: Apache-2.0
//! Does the emulated executor wait as the real one does? The same jobs on both: first for real,
//! then with joblets that last as long, and results that are as large, as the log says they were.

mod measured;

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use weir_executor::{Emulator, Event, Eviction, JobId, Order, Settings, Source, Spent};
use weir_feeds::Format;
use weir_feeds::generate::Settings as Feeds;

use crate::affinity;
use crate::arrivals::Arrivals;
use crate::jobs::Jobs;
use crate::log;
use crate::real::{self, Arrival, Outcome, Sharing};
use measured::Measured;

const PATIENCE: Duration = Duration::from_secs(60);
/// Arrivals of the run that finds out what a job costs.
const TRIAL: usize = 300;
/// How near the mean waits are to be.
const WITHIN: f64 = 0.15;
const HIGH: u8 = 0;
const LOW: u8 = 16;
/// Share of jobs of high priority: an assumption, enough of them for a mean.
const HIGH_SHARE: f64 = 0.15;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Seconds of each run
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Share of the cores' time that jobs shall need
    #[arg(long, default_value_t = 0.7)]
    utilisation: f64,
    /// Runs, each with other arrivals
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Cores, and CPUs of this machine, that the host has
    #[arg(long, default_value_t = 1)]
    cores: usize,
    /// Projects, of 200 to 20,000 items
    #[arg(long, default_value_t = 12)]
    projects: usize,
    /// Cache, in MiB: some of the results fit
    #[arg(long, default_value_t = 8)]
    cache_mib: u64,
    /// Of projects and arrivals
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    affinity::keep(args.cores)?;
    let settings = Settings {
        cores: args.cores,
        cache_bytes: args.cache_mib << 20,
        max_queued: 10_000,
        change_log: 0,
        order: Order::Priority,
        eviction: Eviction::default(),
    };
    let runtime = real::runtime(&settings)?;
    runtime.block_on(compare(args, &settings))
}

async fn compare(args: &Args, settings: &Settings) -> Result<()> {
    let feeds = Feeds {
        seed: args.seed,
        projects: args.projects,
        items_min: 200,
        items_max: 20_000,
        channels_max: 4,
        format: Format::Ndjson,
        ..Feeds::default()
    };
    let jobs = Jobs::generate(&feeds).await?;
    let rate = rate(args, settings, &jobs).await?;
    eprintln!(
        "emulation: {rate:.1} jobs a second for a utilisation of {}",
        args.utilisation
    );
    println!(
        "| run | jobs | mean wait, real / ms | mean wait, EMULATED / ms | ratio | p95 wait, real / ms | p95 wait, EMULATED / ms | hits, real | hits, EMULATED |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let (mut real_sum, mut emulated_sum) = (0.0, 0.0);
    for round in 1..=args.rounds {
        let arrivals = arrivals(args, &jobs, rate, round);
        let (real, emulated) = both(settings, &jobs, &arrivals).await?;
        real_sum += real.mean;
        emulated_sum += emulated.mean;
        println!("{}", row(round, arrivals.len(), &real, &emulated));
    }
    println!("\n{}", verdict(emulated_sum / real_sum));
    println!(
        "The EMULATED joblets take what the real run's took, so this compares who waits for whom, not a forecast."
    );
    Ok(())
}

/// The figures of a real run, and of its emulation by what its log says.
async fn both(
    settings: &Settings,
    jobs: &Jobs,
    arrivals: &[Arrival],
) -> Result<(Figures, Figures)> {
    let real = real::run(jobs, settings, arrivals, Sharing::Allowed, PATIENCE).await?;
    let measured = Measured::new(&log::read(&jobs.log_file())?);
    let real: Vec<Spent> = real.into_iter().filter_map(|o: Outcome| o.spent).collect();
    ensure!(
        real.len() == arrivals.len(),
        "jobs were cut off: lower --utilisation"
    );
    let emulated = emulate(settings, jobs, arrivals, &measured);
    ensure!(
        emulated.len() == arrivals.len(),
        "an emulated job has not ended"
    );
    Ok((Figures::of(&real), Figures::of(&emulated)))
}

fn row(round: u64, jobs: usize, real: &Figures, emulated: &Figures) -> String {
    format!(
        "| {round} | {jobs} | {:.2} | {:.2} | {:.3} | {:.1} | {:.1} | {:.1} % | {:.1} % |",
        real.mean * 1e3,
        emulated.mean * 1e3,
        emulated.mean / real.mean,
        real.p95 * 1e3,
        emulated.p95 * 1e3,
        real.hits * 100.0,
        emulated.hits * 100.0,
    )
}

fn verdict(ratio: f64) -> String {
    let verdict = if (ratio - 1.0).abs() <= WITHIN {
        "within"
    } else {
        "NOT within"
    };
    format!(
        "EMULATED / real over all runs: {ratio:.3}, {verdict} {:.0} %",
        100.0 * WITHIN
    )
}

/// Jobs a second at the utilisation asked for, by what jobs cost in a slow run.
async fn rate(args: &Args, settings: &Settings, jobs: &Jobs) -> Result<f64> {
    let apart = Duration::from_millis(20);
    let mut draw = Arrivals::new(args.seed);
    let arrival = |n: u32| Arrival {
        at: n * apart,
        job: draw.pick(jobs.all.len()),
        class: LOW,
    };
    let trial: Vec<_> = (0..TRIAL as u32).map(arrival).collect();
    real::run(jobs, settings, &trial, Sharing::Allowed, PATIENCE).await?;
    let lines = log::read(&jobs.log_file())?;
    let total: Duration = lines.iter().map(log::core_time).sum();
    let each = total.as_secs_f64() / TRIAL as f64;
    Ok(args.utilisation * args.cores as f64 / each)
}

fn arrivals(args: &Args, jobs: &Jobs, rate: f64, round: u64) -> Vec<Arrival> {
    let mut draw = Arrivals::new(args.seed.wrapping_add(round));
    let times = draw.even(rate, Duration::from_secs(args.seconds));
    let arrival = |at| Arrival {
        at,
        job: draw.pick(jobs.all.len()),
        class: if draw.chance(HIGH_SHARE) { HIGH } else { LOW },
    };
    times.into_iter().map(arrival).collect()
}

fn emulate(
    settings: &Settings,
    jobs: &Jobs,
    arrivals: &[Arrival],
    measured: &Measured,
) -> Vec<Spent> {
    let mut host = Emulator::new(settings, 1);
    let mut came: HashMap<JobId, usize> = HashMap::new();
    let mut spent: Vec<Option<Spent>> = vec![None; arrivals.len()];
    let mut take = |events: Vec<Event<_>>, came: &HashMap<JobId, usize>| {
        for event in events {
            if let Event::Ended(job, Ok(time)) = event
                && let Some(n) = came.get(&job)
            {
                spent[*n] = Some(time);
            }
        }
    };
    for (n, arrival) in arrivals.iter().enumerate() {
        let request = measured.request(&jobs.all[arrival.job], arrival, n);
        if let Ok(job) = host.submit(arrival.at, request) {
            came.insert(job, n);
        }
        take(host.advance(arrival.at), &came);
    }
    take(host.advance(Duration::MAX), &came);
    spent.into_iter().flatten().collect()
}

struct Figures {
    mean: f64,
    p95: f64,
    hits: f64,
}

impl Figures {
    fn of(jobs: &[Spent]) -> Self {
        let mut waits: Vec<f64> = jobs.iter().map(|spent| spent.wait.as_secs_f64()).collect();
        waits.sort_by(f64::total_cmp);
        let n = waits.len().max(1);
        let hits = jobs
            .iter()
            .filter(|spent| spent.source == Source::Hit)
            .count();
        Self {
            mean: waits.iter().sum::<f64>() / n as f64,
            p95: waits.get(waits.len() * 95 / 100).copied().unwrap_or(0.0),
            hits: hits as f64 / n as f64,
        }
    }
}
