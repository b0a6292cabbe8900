// SPDX-License-Identifier: Apache-2.0
//! Before and after whom sidecars ask is killed.

use std::ops::Range;

use anyhow::{Context, Result};
use weir_report::{Spread, Table};

use crate::bench::inference::figures;
use crate::bench::inference::plan::Plan;
use crate::bench::inference::run::Run;
use crate::bench::inference::sections::{table, words};
use crate::bench::inference::sending::Sending;
use crate::bench::inference::way::Way;
use crate::bench::inference::workload::Workload;
use crate::bench::section::{Bound, NO_SPREAD, Section, Target};

const HEADER: [&str; 8] = [
    "way",
    "first token before, mean / s",
    "from then on / s",
    "to before",
    "the same requests, nobody killed / s",
    "to these",
    "without an answer before / %",
    "from then on / %",
];

/// What a way comes to, round by round.
struct Figures {
    before: Vec<Option<f64>>,
    after: Vec<Option<f64>>,
    calm: Vec<Option<f64>>,
    lost_before: Vec<f64>,
    lost_after: Vec<f64>,
}

/// `calm` are runs of the same ways and requests, in the same order, in which nobody is killed.
pub(in crate::bench::inference) fn killed(
    plan: &Plan,
    workload: &Workload,
    load: f64,
    sending: &Sending<'_>,
    (calm, killed): (&[Run], &[Run]),
) -> Result<Section> {
    let of = |way: &Way| Figures::of(*way, plan, sending.requests, calm, killed);
    let ways: Vec<Figures> = sending.ways.iter().map(of).collect::<Result<_>>()?;
    let mut targets = Vec::new();
    for (way, figures) in sending.ways.iter().zip(&ways) {
        if way.is_weir() {
            targets.extend(figures.targets(*way)?);
        }
    }
    let rows = sending.ways.iter().zip(&ways);
    let rows = rows.map(|(way, figures)| figures.row(*way));
    Ok(Section {
        title: "The same prompts on EMULATED hosts of a language model: picker or weir-control killed".to_owned(),
        how: format!(
            "EMULATED, MODELLED: {}, at load {load} (as in inference-loads). When half of the requests have come, the picker or \
             weir-control is killed (SIGKILL) and not started again. All ways at once, {}, from empty caches, and once more with \
             nobody killed, for the same requests: caches fill and the trace changes in any case. First tokens are of answered \
             requests, all-in and in seconds of the trace; a request that came before and had no answer yet counts as before.",
            words::trace(plan, &workload.facts),
            words::rounds(plan),
        ),
        table: Table {
            header: HEADER.map(str::to_owned).to_vec(),
            rows: rows.collect::<Result<_>>()?,
        },
        targets,
        notes: [
            "EPP: a sidecar that cannot ask it refuses, which is the default of an InferencePool (failureMode FailClose); \
             failing open (failure_mode_allow) Envoy can do without it only as long as it has sent it nothing of the body.",
            words::EPP_AND_WEIR[0],
        ]
        .map(str::to_owned)
        .into_iter()
        .chain(words::busy(calm.iter().chain(killed)))
        .collect(),
        ..Section::default()
    })
}

impl Figures {
    fn of(way: Way, plan: &Plan, requests: usize, calm: &[Run], killed: &[Run]) -> Result<Self> {
        let mut figures = Self {
            before: vec![],
            after: vec![],
            calm: vec![],
            lost_before: vec![],
            lost_after: vec![],
        };
        let rounds = of_way(calm, way).zip(of_way(killed, way));
        for (undisturbed, run) in rounds {
            let at = run.killed_at.context("nobody was killed")?;
            let first =
                |run: &Run, part: Range<usize>| figures::first_token(run, plan.speed_up, part);
            figures.before.push(first(run, 0..at));
            figures.after.push(first(run, at..requests));
            figures.calm.push(first(undisturbed, at..requests));
            figures.lost_before.push(figures::lost(run, 0..at));
            figures.lost_after.push(figures::lost(run, at..requests));
        }
        Ok(figures)
    }

    fn row(&self, way: Way) -> Result<Vec<String>> {
        let percent = |shares: &[f64]| shares.iter().map(|share| Some(share * 100.0)).collect();
        let columns: [Vec<Option<f64>>; 7] = [
            self.before.clone(),
            self.after.clone(),
            ratios(&self.after, &self.before),
            self.calm.clone(),
            ratios(&self.after, &self.calm),
            percent(&self.lost_before),
            percent(&self.lost_after),
        ];
        let cells = columns.into_iter().map(table::cell_of);
        std::iter::once(Ok(way.name().to_owned()))
            .chain(cells)
            .collect()
    }

    fn targets(&self, way: Way) -> Result<Vec<Target>> {
        let name = way.name();
        let ratio = |base: &[Option<f64>]| {
            let ratios: Option<Vec<f64>> = ratios(&self.after, base).into_iter().collect();
            ratios.unwrap_or_default()
        };
        let lost: Vec<f64> = self.lost_after.iter().map(|share| share * 100.0).collect();
        let target = |(what, limit, values): (String, f64, Vec<f64>)| {
            Ok(Target {
                what,
                bound: Bound::AtMost(limit),
                got: Spread::of(&values).context(NO_SPREAD)?,
            })
        };
        let targets = [
            (
                format!("{name}: without an answer from then on / %"),
                0.0,
                lost,
            ),
            (
                format!("{name}: first token, to before"),
                1.2,
                ratio(&self.before),
            ),
            (
                format!("{name}: first token, to the same requests with nobody killed"),
                1.2,
                ratio(&self.calm),
            ),
        ];
        targets.into_iter().map(target).collect()
    }
}

fn of_way(runs: &[Run], way: Way) -> impl Iterator<Item = &Run> {
    runs.iter().filter(move |run| run.way == way)
}

/// Round by round; none where one of both is none.
fn ratios(some: &[Option<f64>], base: &[Option<f64>]) -> Vec<Option<f64>> {
    let both = some.iter().zip(base);
    both.map(|(some, base)| Some((*some)? / (*base)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_without_answers_has_no_ratio() {
        let ratios = ratios(&[Some(3.0), None, Some(1.0)], &[Some(2.0), Some(2.0), None]);
        assert_eq!(ratios, [Some(1.5), None, None]);
    }
}
