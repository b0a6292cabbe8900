// SPDX-License-Identifier: Apache-2.0
//! Short jobs that matter beside long ones that do not, on the real host: joblets that run to their end, and joblets
//! that make room at the next batch, as the suspendable tasks of Neptune do (Garefalakis et al., SoCC 2019).
//!
//! ```text
//! a small and a large project ─cost of a job each─> arrivals ─┬─> priority    ─> responses by class
//!                                                             └─> suspending  ─> responses by class
//! ```

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use weir_executor::{Eviction, Kind, Order, Settings};
use weir_feeds::Format;
use weir_feeds::generate::Settings as Feeds;
use weir_report::quantile_of_sorted;

use crate::affinity;
use crate::arrivals::Arrivals;
use crate::jobs::Jobs;
use crate::log;
use crate::real::{self, Arrival, Outcome, Sharing};

const HIGH: u8 = 0;
const LOW: u8 = 16;
/// Jobs of each class by which it is found out what one costs.
const TRIAL: usize = 10;
const PROJECTS: usize = 10;
/// So heavy a tail that the largest of ten projects is near the most items there may be.
const SHAPE: f64 = 0.3;
const PATIENCE: Duration = Duration::from_secs(60);
const ORDERS: [(&str, Order); 2] = [
    ("between joblets only (priority)", Order::Priority),
    ("at the next batch (suspending)", Order::Suspending),
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Seconds of each run
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Runs of each order, in turn
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Cores, and CPUs of this machine, that the host has
    #[arg(long, default_value_t = 1)]
    cores: usize,
    /// Share of the cores' time that low jobs shall need
    #[arg(long, default_value_t = 0.5)]
    low: f64,
    /// Share of the cores' time that high jobs shall need
    #[arg(long, default_value_t = 0.2)]
    high: f64,
    /// Items of the largest project that may be, whose jobs are the low ones
    #[arg(long, default_value_t = 200_000)]
    most_items: u64,
    /// Of projects and arrivals
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Args {
    fn settings(&self, order: Order) -> Settings {
        Settings {
            cores: self.cores,
            cache_bytes: 4 << 30,
            max_queued: 10_000,
            change_log: 0,
            order,
            eviction: Eviction::default(),
        }
    }
}

/// A class of jobs on a project of its own.
struct Class {
    number: u8,
    /// Of the cores' time.
    share: f64,
    /// Place among the jobs.
    job: usize,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    affinity::keep(args.cores)?;
    let runtime = real::runtime(&args.settings(Order::Suspending))?;
    runtime.block_on(compare(args))
}

async fn compare(args: &Args) -> Result<()> {
    let (jobs, classes) = projects(args).await?;
    let mut rates = Vec::new();
    for class in &classes {
        let cost = cost(args, &jobs, class).await?;
        eprintln!(
            "suspension: a job of class {} takes {:.1} ms of a core, its items cached",
            class.number,
            1e3 * cost
        );
        rates.push(class.share * args.cores as f64 / cost);
    }
    let mut outcomes = ORDERS.map(|_| Vec::new());
    for round in 1..=args.rounds {
        let arrivals = arrivals(args, &classes, &rates, round);
        for class in &classes {
            ensure!(
                arrivals.iter().any(|arrival| arrival.class == class.number),
                "no job of class {} comes in {} s, so long they take: raise --seconds or lower --most-items",
                class.number,
                args.seconds
            );
        }
        for ((name, order), outcomes) in ORDERS.iter().zip(&mut outcomes) {
            eprintln!("suspension: round {round}/{}, {name}", args.rounds);
            let settings = args.settings(order.clone());
            let run = real::run(&jobs, &settings, &arrivals, Sharing::Items, PATIENCE).await?;
            ensure!(
                run.iter().all(|outcome| outcome.response.is_some()),
                "jobs were cut off: lower --low or --high"
            );
            outcomes.extend(run);
        }
    }
    println!("{}", table(&outcomes));
    Ok(())
}

/// The smallest and the largest of some projects: what is urgent is short.
async fn projects(args: &Args) -> Result<(Jobs, [Class; 2])> {
    let feeds = Feeds {
        seed: args.seed,
        projects: PROJECTS,
        items_min: 200,
        items_max: args.most_items,
        items_shape: SHAPE,
        channels_max: 1,
        format: Format::Ndjson,
    };
    let jobs = Jobs::generate(&feeds).await?;
    let size = |job: &usize| jobs.all[*job].object.bytes;
    let all = 0..jobs.all.len();
    let small = all.clone().min_by_key(size).context("no job")?;
    let large = all.max_by_key(size).context("no job")?;
    let class = |number, share, job| Class { number, share, job };
    let classes = [class(HIGH, args.high, small), class(LOW, args.low, large)];
    Ok((jobs, classes))
}

/// Core seconds of a job whose items are cached.
async fn cost(args: &Args, jobs: &Jobs, class: &Class) -> Result<f64> {
    let arrival = Arrival {
        at: Duration::ZERO,
        job: class.job,
        class: class.number,
    };
    let settings = args.settings(Order::Priority);
    real::run(jobs, &settings, &[arrival; TRIAL], Sharing::Items, PATIENCE).await?;
    let lines = log::read(&jobs.log_file())?;
    let computed = lines
        .iter()
        .filter(|line| line.kind != Kind::FeedSource.name());
    let total: Duration = computed.map(log::core_time).sum();
    Ok(total.as_secs_f64() / TRIAL as f64)
}

fn arrivals(args: &Args, classes: &[Class], rates: &[f64], round: u64) -> Vec<Arrival> {
    let mut draw = Arrivals::new(args.seed.wrapping_add(round));
    let mut all = Vec::new();
    for (class, rate) in classes.iter().zip(rates) {
        let times = draw.even(*rate, Duration::from_secs(args.seconds));
        all.extend(times.into_iter().map(|at| Arrival {
            at,
            job: class.job,
            class: class.number,
        }));
    }
    all.sort_by_key(|arrival| arrival.at);
    all
}

/// Responses by order and class.
fn table(outcomes: &[Vec<Outcome>; ORDERS.len()]) -> String {
    let mut table = "| running joblets make room | class | jobs | mean response / ms | p50 | p95 | p99 | longest |\n\
        |---|---|---:|---:|---:|---:|---:|---:|"
        .to_owned();
    for ((name, _), outcomes) in ORDERS.iter().zip(outcomes) {
        for (class, called) in [(HIGH, "high"), (LOW, "low")] {
            let of = outcomes.iter().filter(|outcome| outcome.class == class);
            let mut ms: Vec<f64> = of
                .filter_map(|outcome| Some(1e3 * outcome.response?.as_secs_f64()))
                .collect();
            ms.sort_by(f64::total_cmp);
            let mean = ms.iter().sum::<f64>() / ms.len().max(1) as f64;
            let at = |share| quantile_of_sorted(&ms, share).unwrap_or(f64::NAN);
            table += &format!(
                "\n| {name} | {called} | {} | {mean:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
                ms.len(),
                at(0.5),
                at(0.95),
                at(0.99),
                at(1.0)
            );
        }
    }
    table
}
