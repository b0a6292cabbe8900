// SPDX-License-Identifier: Apache-2.0
//! The delays as a table.

use std::time::Duration;

use anyhow::{Context, Result};
use weir_report::{Axis, Plot, Series, Style, Table, cdf};

use super::hosts::Change;
use super::{Delay, HOSTS, Plan, SIDECARS};
use crate::section::Section;
use crate::spread::digits;

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
    let rows = all.iter().map(row).collect::<Result<_>>()?;
    let kinds: Vec<&str> = Change::ALL.into_iter().map(Change::name).collect();
    Ok(Section {
        title: "Push: from a change at a host until both sidecars decide by it".to_owned(),
        how: format!(
            "weir-control with its defaults, {} Envoys with the filter, {HOSTS} hosts. Changes at random \
             moments of the interval, in turns: {}. Each Envoy is asked all the time, a request after the \
             other, and has decided by a change with the first answer that comes from the other host.",
            SIDECARS.len(),
            kinds.join("; ")
        ),
        table: Table {
            header: HEADER.map(str::to_owned).to_vec(),
            rows,
        },
        targets: Vec::new(),
        notes: vec![
            "Half an interval of it is the wait until the host is asked (±10 %), on average; weir-control \
             publishes every 100 ms."
                .to_owned(),
        ],
        plots: vec![plot(all)],
    })
}

fn row((plan, delays): &(Plan, Vec<Delay>)) -> Result<Vec<String>> {
    let both = sorted(delays, Delay::both);
    let apart = sorted(delays, Delay::apart);
    let at = |sorted: &[Duration], share: f64| {
        let place = (share * (sorted.len().saturating_sub(1)) as f64).round();
        sorted.get(place as usize).copied().context("no changes")
    };
    let unit = |delay| digits(units(delay, plan));
    let ms = |delay: Duration| digits(delay.as_secs_f64() * 1e3);
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
        let units: Vec<f64> = delays
            .iter()
            .map(|delay| units(delay.both(), plan))
            .collect();
        Series {
            name: format!("hosts asked every {} ms", plan.interval.as_millis()),
            points: cdf(&units),
            style: Style::Step,
        }
    };
    Plot {
        title: "Until both sidecars decide by a change".to_owned(),
        x: Axis::linear("source intervals"),
        y: Axis::linear("share of the changes").range(0.0, 1.0),
        series: all.iter().map(series).collect(),
        marks: Vec::new(),
        caption: String::new(),
    }
}

fn sorted(delays: &[Delay], of: fn(&Delay) -> Duration) -> Vec<Duration> {
    let mut sorted: Vec<Duration> = delays.iter().map(of).collect();
    sorted.sort_unstable();
    sorted
}

fn units(delay: Duration, plan: &Plan) -> f64 {
    delay.as_secs_f64() / plan.interval.as_secs_f64()
}
