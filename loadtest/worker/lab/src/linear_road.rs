// SPDX-License-Identifier: Apache-2.0
//! Document 003's experiments on a workflow like its own: Linear Road, whose events branch and join. Cars report ever
//! more often, and the orders differ in how long a toll notification takes and at which rate they thrash.
//!
//! ```text
//! traffic ─> reference ─ what has to come out
//!        └─> costs ─┬─> SIMULATED: each order on a clock of its own
//!                   └─> --real:    the same with real threads, which burn the modelled costs
//! ```

mod actor;
mod cost;
mod input;
mod reference;
mod report;
mod rules;
mod run;
mod simulated;
mod systems;
#[cfg(test)]
mod tests;
mod threads;
mod traffic;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::affinity;
use crate::course::Course;
use crate::orders::plan::{PLANS, Plan};
use cost::Costs;
use reference::Found;
use run::{Input, Work};
use traffic::Report;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Seconds of each run (document 003: 600). A shorter one has the same traffic of fewer cars, faster
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Reports a second at the end
    #[arg(long, default_value_t = 200.0)]
    top_rate: f64,
    /// Reports a second that the core shall be able to do: actors take that long
    #[arg(long, default_value_t = 160.0)]
    capacity: f64,
    /// Reports that one firing of the source takes in at most
    #[arg(long, default_value_t = 1_000)]
    source_batch: usize,
    /// Run real threads too, on one CPU; each order takes --seconds
    #[arg(long)]
    real: bool,
    /// Only the orders whose name contains this; repeatable
    #[arg(long, value_name = "NAME")]
    order: Vec<String>,
    /// Compare input that is read while the core does something else with input that holds the core, at this
    /// many microseconds a report; repeatable
    #[arg(long, value_name = "MICROSECONDS")]
    input_wait: Vec<u64>,
    /// Compare one stream system that has all actors with three that divide them, each on a core of its own, where
    /// each sheds reports while so many events wait in it; repeatable. SIMULATED
    #[arg(long, value_name = "EVENTS", conflicts_with_all = ["real", "input_wait"])]
    shed_above: Vec<usize>,
    /// Of the traffic
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the page with the plots here
    #[arg(long, value_name = "FILE", default_value = "linear-road.html")]
    report: PathBuf,
}

impl Args {
    fn lasts(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    fn wants(&self, plan: &Plan) -> bool {
        let named = |part: &String| plan.name.contains(part.as_str());
        self.order.is_empty() || self.order.iter().any(named)
    }

    fn reports(&self) -> Vec<Report> {
        traffic::reports(self.seed, self.top_rate, self.lasts())
    }
}

/// A way to run the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clock {
    Simulated,
    Real,
}

/// What was measured of one order.
#[derive(Debug)]
struct Row {
    plan: &'static Plan,
    simulated: Course,
    real: Option<Course>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let plans: Vec<&'static Plan> = PLANS.iter().filter(|plan| args.wants(plan)).collect();
    ensure!(!plans.is_empty(), "--order: no order has such a name");
    let reports = args.reports();
    ensure!(
        !reports.is_empty(),
        "no car reports: raise --seconds or --top-rate"
    );
    let expected = reference::of(&reports);
    let work = Work {
        reports: &reports,
        costs: Costs::new(&reports, args.capacity),
        input: Input::Asynchronous(Duration::ZERO),
    };
    if args.real {
        affinity::keep(1)?;
    }
    if !args.input_wait.is_empty() {
        println!("{}", input::table(args, &plans, work, &expected)?);
        return Ok(());
    }
    if !args.shed_above.is_empty() {
        println!("{}", systems::table(args, &plans, work, &expected)?);
        return Ok(());
    }
    let mut rows = Vec::new();
    for plan in plans {
        let simulated = course(args, plan, work, Clock::Simulated, &expected)?;
        eprint!("linear-road: {} {simulated}", plan.name);
        let real = args
            .real
            .then(|| course(args, plan, work, Clock::Real, &expected));
        let real = real.transpose()?;
        eprintln!(
            "{}",
            real.iter()
                .map(|r| format!("; real {r}"))
                .collect::<String>()
        );
        rows.push(Row {
            plan,
            simulated,
            real,
        });
    }
    println!("{}", report::markdown(args, &expected, &reports, &rows));
    report::page(args, &expected, &reports, &rows).write(&args.report)?;
    eprintln!("linear-road: the plots are in {}", args.report.display());
    Ok(())
}

/// Runs an order and compares what it has found with the reference.
fn course(
    args: &Args,
    plan: &Plan,
    work: Work<'_>,
    clock: Clock,
    expected: &Found,
) -> Result<Course> {
    let order = run::plan(plan.order(), args.source_batch);
    let results = match clock {
        Clock::Simulated => simulated::run(order, work),
        Clock::Real => threads::run(order, work),
    };
    let (found, outcomes) = results.sorted();
    ensure!(
        found == *expected,
        "{}: other results than the reference",
        plan.name
    );
    Ok(Course::new(
        &outcomes,
        args.top_rate,
        args.lasts(),
        Duration::ZERO,
    ))
}
