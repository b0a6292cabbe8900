// SPDX-License-Identifier: Apache-2.0
//! Document 003's conclusion, asynchronous input: what it costs that the source waits for a report on its core.

use std::fmt::Write;
use std::time::Duration;

use anyhow::Result;

use super::reference::Found;
use super::run::{Input, Work};
use super::{Args, Clock, course};
use crate::orders::plan::Plan;

/// A row for each order and wait.
pub(super) fn table(
    args: &Args,
    plans: &[&'static Plan],
    work: Work<'_>,
    expected: &Found,
) -> Result<String> {
    let (clock, label) = match args.real {
        true => (Clock::Real, "Real threads, EMULATED work"),
        false => (Clock::Simulated, "SIMULATED"),
    };
    let mut table = format!(
        "{label}, 0 to {} reports a second within {} s.\n\n\
         | order | wait for a report / µs | thrashes at, asynchronous / (reports/s) | synchronous | \
         mean below half the rate, asynchronous / ms | synchronous | mean at 70–75 % of it, asynchronous / ms | synchronous |\n\
         |---|---|---|---|---|---|---|---|\n",
        args.top_rate, args.seconds
    );
    // A thread that waits gives its core to others: the comparison is of the rest.
    for plan in plans.iter().filter(|plan| plan.is_one_after_another()) {
        for micros in &args.input_wait {
            let wait = Duration::from_micros(*micros);
            let run = |input| course(args, plan, Work { input, ..work }, clock, expected);
            let asynchronous = run(Input::Asynchronous(wait))?;
            let synchronous = run(Input::Synchronous(wait))?;
            let rate = |rate: Option<f64>| rate.map_or("none".to_owned(), |r| format!("{r:.0}"));
            let both = [&asynchronous, &synchronous];
            let [at_a, at_s] = both.map(|course| rate(course.thrash_rate));
            let [low_a, low_s] = both.map(|course| course.mean_below_half * 1e3);
            let [busy_a, busy_s] = both.map(|course| course.mean_busy * 1e3);
            let name = plan.name;
            writeln!(
                table,
                "| {name} | {micros} | {at_a} | {at_s} | {low_a:.1} | {low_s:.1} | {busy_a:.1} | {busy_s:.1} |"
            )?;
        }
    }
    Ok(table)
}
