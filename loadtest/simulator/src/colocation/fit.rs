// SPDX-License-Identifier: Apache-2.0
//! Brings the jobs' core seconds to document 004's times at 10 s. Nothing else is looked at.

use super::params::Params;
use super::part4::{self, Outcome, Seeds, Way};
use super::published::{JOBS, PART4};

/// Some rounds of: as much more work as the job's time is short.
#[must_use]
pub fn fit(start: &Params, seeds: u64) -> Params {
    let mut params = start.clone();
    let Some(wanted) = PART4[0].jobs_s else {
        return params;
    };
    for _ in 0..6 {
        let run = |noise| {
            let seeds = Seeds::document(noise);
            part4::run(Way::Document, &params, PART4[0].interval_s, seeds)
        };
        let outcomes: Vec<Outcome> = (1..=seeds).map(run).collect();
        for (job, name) in JOBS.iter().enumerate() {
            let got: f64 = outcomes.iter().map(|outcome| outcome.jobs_s[job]).sum();
            let name = format!("{name}_s");
            let more = wanted[job] * seeds as f64 / got;
            let value = params.get(&name).unwrap_or(1.0) * more;
            if let Err(error) = params.set(&name, (value * 10.0).round() / 10.0) {
                unreachable!("{error}");
            }
        }
    }
    params
}
