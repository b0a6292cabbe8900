// SPDX-License-Identifier: Apache-2.0
//! Document 003's experiments on a rule-processing host: jobs come ever faster, and the orders
//! differ in how long an answer takes and at which rate they thrash.
//!
//! ```text
//! calibrate ─> a job of 1/capacity seconds ─┬─> real:     each order on the same arrivals
//!                                           └─> EMULATED: the same with modelled joblets, at full length
//! ```

mod calibrate;
mod emulated;
pub(crate) mod plan;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use weir_executor::{Eviction, Order, Settings};

use crate::affinity;
use crate::arrivals::Arrivals;
use crate::course::Course;
use crate::real::{self, Arrival, Outcome, Sharing};
use calibrate::Sample;
use plan::{PLANS, Plan};

/// Jobs of the real runs go on for so long after the last one came.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Seconds of each real run (document 003: 600; twelve of them are two hours a round)
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Real runs of each order, in turn with the others: a machine is not the same all the time
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Seconds of each EMULATED run, which take no time
    #[arg(long, default_value_t = 600)]
    emulated_seconds: u64,
    /// Jobs a second at the end
    #[arg(long, default_value_t = 200.0)]
    top_rate: f64,
    /// Jobs a second that the cores shall be able to do: projects are made that large
    #[arg(long, default_value_t = 160.0)]
    capacity: f64,
    /// Cores, and CPUs of this machine, that the host has
    #[arg(long, default_value_t = 1)]
    cores: usize,
    /// Only the orders whose name contains this; repeatable
    #[arg(long, value_name = "NAME")]
    order: Vec<String>,
    /// Of the arrivals
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the page with the plots here
    #[arg(long, value_name = "FILE", default_value = "orders.html")]
    report: PathBuf,
}

impl Args {
    fn settings(&self, order: Order) -> Settings {
        Settings {
            cores: self.cores,
            cache_bytes: 0,
            max_queued: 20_000,
            change_log: 0,
            order,
            eviction: Eviction::default(),
        }
    }

    /// Of one or several real runs.
    fn course(&self, outcomes: &[Outcome]) -> Course {
        let lasts = Duration::from_secs(self.seconds);
        Course::new(outcomes, self.top_rate, lasts, PATIENCE)
    }

    fn wants(&self, plan: &Plan) -> bool {
        let named = |part: &String| plan.name.contains(part.as_str());
        self.order.is_empty() || self.order.iter().any(named)
    }
}

/// One order's run.
#[derive(Debug)]
struct Run {
    plan: &'static Plan,
    course: Course,
}

/// All that was measured.
#[derive(Debug)]
struct Results {
    calibrated: calibrate::Calibrated,
    real: Vec<Run>,
    emulated: Vec<Run>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let plans: Vec<&'static Plan> = PLANS.iter().filter(|plan| args.wants(plan)).collect();
    ensure!(!plans.is_empty(), "--order: no order has such a name");
    affinity::keep(args.cores)?;
    let settings = args.settings(Order::Priority);
    let runtime = real::runtime(&settings)?;
    let calibrated = runtime.block_on(calibrate::run(&settings, args.capacity))?;
    eprintln!("orders: {calibrated}");

    let mut outcomes = vec![Vec::new(); plans.len()];
    for round in 0..args.rounds {
        let arrivals = arrivals(args, args.seconds, round);
        for (n, plan) in plans.iter().enumerate() {
            let (round, rounds, all) = (round + 1, args.rounds, plans.len());
            eprint!(
                "orders: round {round}/{rounds}, {}/{all} {} ",
                n + 1,
                plan.name
            );
            let settings = args.settings(plan.order());
            let jobs = &calibrated.jobs;
            let run = real::run(jobs, &settings, &arrivals, Sharing::Off, PATIENCE);
            let run = runtime.block_on(run)?;
            eprintln!("{}", args.course(&run));
            outcomes[n].extend(run);
        }
    }
    let runs = plans.iter().zip(&outcomes);
    let real = runs.map(|(plan, outcomes)| Run {
        plan,
        course: args.course(outcomes),
    });
    let real = real.collect();
    let emulated = emulate(args, &plans, &calibrated.samples);
    let results = Results {
        calibrated,
        real,
        emulated,
    };
    println!("{}", report::markdown(args, &results));
    report::page(args, &results).write(&args.report)?;
    eprintln!("orders: the plots are in {}", args.report.display());
    Ok(())
}

fn arrivals(args: &Args, seconds: u64, round: u64) -> Vec<Arrival> {
    let mut arrivals = Arrivals::new(args.seed.wrapping_add(round));
    let times = arrivals.rising(args.top_rate, Duration::from_secs(seconds));
    let arrival = |at| Arrival {
        at,
        job: 0,
        class: 16,
    };
    times.into_iter().map(arrival).collect()
}

fn emulate(args: &Args, plans: &[&'static Plan], samples: &[Sample]) -> Vec<Run> {
    let lasts = Duration::from_secs(args.emulated_seconds);
    let arrivals = arrivals(args, args.emulated_seconds, 0);
    let run = |plan: &&'static Plan| {
        let settings = args.settings(plan.order());
        let outcomes = emulated::run(&settings, &arrivals, samples, args.seed);
        Run {
            plan,
            course: Course::new(&outcomes, args.top_rate, lasts, Duration::ZERO),
        }
    };
    plans.iter().map(run).collect()
}

#[cfg(test)]
mod tests;
