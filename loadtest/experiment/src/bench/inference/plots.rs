// SPDX-License-Identifier: Apache-2.0
//! Distributions of times, and what was found over time.

use weir_report::{Axis, Plot, Series, Style, cdf};

use crate::bench::inference::figures::{self, Times};
use crate::bench::inference::plan::Plan;
use crate::bench::inference::run::Run;
use crate::bench::inference::way::Way;

/// Of the trace.
const STEP_S: f64 = 30.0;

pub(super) fn of(plan: &Plan, runs: &[Run]) -> Vec<Plot> {
    vec![
        distribution(plan, runs, "Time to the first token", |t| t.first_token_s),
        distribution(plan, runs, "Time to the whole answer", |t| t.all_s),
        hits(plan, runs),
    ]
}

fn distribution(plan: &Plan, runs: &[Run], title: &str, time: fn(&Times) -> f64) -> Plot {
    let series = Way::ALL.map(|way| {
        let times = of_way(runs, way).flat_map(|run| figures::times(run, plan.speed_up));
        let values: Vec<f64> = times.map(|times| time(&times)).collect();
        Series {
            name: way.name().to_owned(),
            points: cdf(&values),
            style: Style::Step,
        }
    });
    Plot {
        title: format!("{title} (EMULATED)"),
        x: Axis::log("seconds of the trace"),
        y: Axis::linear("share of requests").range(0.0, 1.0),
        series: series.to_vec(),
        caption: "All rounds together. Further to the left is faster.".to_owned(),
        ..Plot::default()
    }
}

fn hits(plan: &Plan, runs: &[Run]) -> Plot {
    let series = Way::ALL.map(|way| Series {
        name: way.name().to_owned(),
        points: over_time(plan, runs, way),
        style: Style::Line,
    });
    Plot {
        title: "Prompt tokens found in caches over time (EMULATED)".to_owned(),
        x: Axis::linear("minutes of the trace"),
        y: Axis::linear("share of tokens found"),
        series: series.to_vec(),
        caption: format!(
            "Of the prompts whose reading began in each {STEP_S} s. Caches are empty at the beginning."
        ),
        ..Plot::default()
    }
}

fn over_time(plan: &Plan, runs: &[Run], way: Way) -> Vec<(f64, f64)> {
    let steps = (plan.minutes as f64 * 60.0 / STEP_S) as usize;
    let at = |step: usize| {
        let within = of_way(runs, way).flat_map(|run| {
            let start = run.answered.iter().map(|a| a.begun_us).min().unwrap_or(0);
            run.answered.iter().filter(move |a| {
                let s = (a.begun_us - start) as f64 / 1e6 * f64::from(plan.speed_up);
                (s / STEP_S) as usize == step
            })
        });
        ((step as f64 + 0.5) * STEP_S / 60.0, figures::found(within))
    };
    (0..steps).map(at).collect()
}

fn of_way(runs: &[Run], way: Way) -> impl Iterator<Item = &Run> {
    runs.iter().filter(move |run| run.way == way)
}
