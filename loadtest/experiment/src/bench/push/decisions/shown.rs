// SPDX-License-Identifier: Apache-2.0
//! The delays as a table.

use std::time::Duration;

use anyhow::{Context, Result};
use weir_report::{Axis, Plot, Series, Style, Table, cdf};

use super::hosts::Change;
use super::{Delay, HOSTS, Plan, SIDECARS};
use crate::bench::section::Section;
use weir_report::{digits, quantile};

const HEADER: [&str; 7] = [
    "hosts asked every",
    "changes",
    "both decide by it, p50, intervals",
    "p95",
    "max",
    "p50, ms",
    "between the two, p95, ms",
];

pub(super) fn section(all: &[(Plan, Vec<Delay>)]) -> Result<Section> {
    let rows = all.iter().map(row).collect::<Result<Vec<_>>>()?;
    let kinds: Vec<&str> = Change::ALL.into_iter().map(Change::name).collect();
    let every = |(plan, _): &(Plan, _)| format!("{} ms", plan.interval.as_millis());
    let intervals: Vec<String> = all.iter().map(every).collect();
    Ok(Section {
        title: "Push: from a change at a host until both sidecars decide by it (SIMULATED hosts)"
            .to_owned(),
        how: format!(
            "weir-control with selection rendezvous and overload breaker, which asks hosts every {} and has its \
             defaults beside that, {} Envoys with the filter, {HOSTS} SIMULATED hosts: the bench plays them, \
             and their figures change when it says so. Changes at random \
             moments of the interval, in turns: {}. Each Envoy is asked all the time, a request after the \
             other, and has decided by a change with the first answer that comes from the other host.",
            intervals.join(" or "),
            SIDECARS.len(),
            kinds.join("; ")
        ),
        table: Table::new(HEADER, rows),
        notes: vec![
            "Half an interval of it is the wait until the host is asked (±10 %), on average."
                .to_owned(),
        ],
        plots: vec![plot(all)],
        ..Section::default()
    })
}

fn row((plan, delays): &(Plan, Vec<Delay>)) -> Result<Vec<String>> {
    let both = seconds(delays, Delay::both);
    let apart = seconds(delays, Delay::apart);
    let at = |delays: &[f64], share: f64| quantile(delays, share).context("no changes");
    let unit = |delay: f64| digits(delay / plan.interval.as_secs_f64());
    let ms = |delay: f64| digits(delay * 1e3);
    Ok(vec![
        format!("{} ms", plan.interval.as_millis()),
        delays.len().to_string(),
        unit(at(&both, 0.5)?),
        unit(at(&both, 0.95)?),
        unit(at(&both, 1.0)?),
        ms(at(&both, 0.5)?),
        ms(at(&apart, 0.95)?),
    ])
}

fn plot(all: &[(Plan, Vec<Delay>)]) -> Plot {
    let series = |(plan, delays): &(Plan, Vec<Delay>)| {
        let both = seconds(delays, Delay::both).into_iter();
        let units: Vec<f64> = both.map(|s| s / plan.interval.as_secs_f64()).collect();
        Series {
            name: format!("hosts asked every {} ms", plan.interval.as_millis()),
            points: cdf(&units),
            style: Style::Step,
        }
    };
    Plot {
        title: "Until both sidecars decide by a change (SIMULATED hosts)".to_owned(),
        x: Axis::linear("source intervals"),
        y: Axis::linear("share of the changes").range(0.0, 1.0),
        series: all.iter().map(series).collect(),
        marks: Vec::new(),
        caption: String::new(),
    }
}

fn seconds(delays: &[Delay], of: fn(&Delay) -> Duration) -> Vec<f64> {
    delays.iter().map(|delay| of(delay).as_secs_f64()).collect()
}
