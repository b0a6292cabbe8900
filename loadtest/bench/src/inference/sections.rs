// SPDX-License-Identifier: Apache-2.0
//! The tables.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use weir_report::Table;

use crate::inference::figures::{self, Times, mean, percentile};
use crate::inference::plan::Plan;
use crate::inference::plots;
use crate::inference::run::Run;
use crate::inference::way::Way;
use crate::inference::workload::Workload;
use crate::section::Section;
use crate::spread::Spread;

pub(super) fn of(plan: &Plan, workload: &Workload, runs: &[Run]) -> Result<Vec<Section>> {
    let measured = Measured {
        plan,
        workload,
        runs,
    };
    Ok(vec![measured.times()?, measured.costs()?])
}

struct Measured<'a> {
    plan: &'a Plan,
    workload: &'a Workload,
    runs: &'a [Run],
}

type Figure<'a> = (&'a str, Box<dyn Fn(&Run) -> Option<f64> + 'a>);

impl Measured<'_> {
    fn times(&self) -> Result<Section> {
        let of = |time: fn(&Times) -> f64, figure: fn(&[f64]) -> f64| {
            let speed_up = self.plan.speed_up;
            Box::new(move |run: &Run| {
                let times = figures::times(run, speed_up);
                let values: Vec<f64> = times.iter().map(time).collect();
                Some(figure(&values))
            })
        };
        let figures: Vec<Figure<'_>> = vec![
            (
                "prompt tokens found / %",
                Box::new(|run| Some(figures::found(&run.answered) * 100.0)),
            ),
            ("first token, mean / s", of(|t| t.first_token_s, mean)),
            ("p50", of(|t| t.first_token_s, |v| percentile(v, 0.5))),
            ("p95", of(|t| t.first_token_s, |v| percentile(v, 0.95))),
            ("p99", of(|t| t.first_token_s, |v| percentile(v, 0.99))),
            ("whole answer, mean / s", of(|t| t.all_s, mean)),
            ("p50", of(|t| t.all_s, |v| percentile(v, 0.5))),
            ("p95", of(|t| t.all_s, |v| percentile(v, 0.95))),
            ("p99", of(|t| t.all_s, |v| percentile(v, 0.99))),
            (
                "busiest host's reading, to the mean",
                Box::new(|run| Some(figures::imbalance(&run.answered, self.plan.hosts))),
            ),
        ];
        Ok(Section {
            title: "Prompts of a language model on EMULATED hosts: what is found, and how long it takes"
                .to_owned(),
            how: self.how(),
            table: self.table(&figures)?,
            targets: vec![],
            notes: self.notes(),
            plots: plots::of(self.plan, self.runs),
        })
    }

    fn costs(&self) -> Result<Section> {
        let requests = self.workload.facts.requests as f64;
        let micros = move |cpu: std::time::Duration| cpu.as_secs_f64() * 1e6 / requests;
        let both = |run: &Run| micros(run.envoy_cpu + run.asked_cpu.unwrap_or_default());
        let plain: BTreeMap<usize, f64> = self
            .of_way(Way::LeastRequest)
            .map(both)
            .enumerate()
            .collect();
        let figures: Vec<Figure<'_>> = vec![
            (
                "Envoy CPU / µs a request",
                Box::new(move |run| Some(micros(run.envoy_cpu))),
            ),
            (
                "picker or weir-control CPU / µs a request",
                Box::new(move |run| run.asked_cpu.map(micros)),
            ),
            (
                "idle before, both / ms of CPU a second",
                Box::new(|run| Some(run.idle * 1e3)),
            ),
            (
                "on the way, p50 / ms",
                Box::new(|run| Some(self.on_the_way(run, 0.5))),
            ),
            ("p99", Box::new(|run| Some(self.on_the_way(run, 0.99)))),
            (
                "replayer's lag, p99 / ms",
                Box::new(|run| {
                    let lags: Vec<f64> =
                        run.records.iter().map(|r| r.lag_us as f64 / 1e3).collect();
                    Some(percentile(&lags, 0.99))
                }),
            ),
            (
                "machine busy / %",
                Box::new(|run| run.busy.map(|share| share * 100.0)),
            ),
        ];
        let mut table = self.table(&figures)?;
        table
            .header
            .push("Envoy and picker, to least_request".to_owned());
        for (way, row) in Way::ALL.into_iter().zip(&mut table.rows) {
            let ours: Vec<f64> = self.of_way(way).map(both).collect();
            let theirs: Vec<f64> = plain.values().copied().collect();
            let ratio = Spread::of_ratios(&ours, &theirs).context("no rounds")?;
            row.push(ratio.to_string());
        }
        Ok(Section {
            title: "Prompts of a language model on EMULATED hosts: what choosing costs".to_owned(),
            how: format!(
                "The same runs. CPU from the first request to the last answer, polls of the hosts included: EPP \
                 at its default of 50 ms, weir-control at {}. `on the way` is what an answer took outside of \
                 its host, as measured: the sidecar, whom it asks, and bodies of {:.0} kB on loopback.",
                self.plan.poll,
                self.workload.facts.prompt_tokens as f64 * 4e-3 / requests,
            ),
            table,
            targets: vec![],
            notes: vec![
                "Not alike: EPP is sent and parses every body, and knows all blocks of a prompt; Weir reads \
                 headers and knows one key. Who sends the key has to know it."
                    .to_owned(),
            ],
            plots: vec![],
        })
    }

    fn on_the_way(&self, run: &Run, share: f64) -> f64 {
        let times = figures::times(run, self.plan.speed_up);
        let ways: Vec<f64> = times.iter().map(|times| times.way_s * 1e3).collect();
        percentile(&ways, share)
    }

    fn of_way(&self, way: Way) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.way == way)
    }

    fn table(&self, figures: &[Figure<'_>]) -> Result<Table> {
        let names = figures.iter().map(|(name, _)| (*name).to_owned());
        let row = |way: Way| {
            let cell = |(_, figure): &Figure<'_>| {
                let rounds: Option<Vec<f64>> = self.of_way(way).map(figure).collect();
                match rounds {
                    Some(rounds) => Ok(Spread::of(&rounds).context("no rounds")?.to_string()),
                    None => Ok("-".to_owned()),
                }
            };
            let cells = figures.iter().map(cell).collect::<Result<Vec<_>>>()?;
            Ok([vec![way.name().to_owned()], cells].concat())
        };
        Ok(Table {
            header: std::iter::once("way".to_owned()).chain(names).collect(),
            rows: Way::ALL.into_iter().map(row).collect::<Result<_>>()?,
        })
    }

    fn how(&self) -> String {
        let (plan, facts) = (self.plan, &self.workload.facts);
        let each = |tokens: u64| tokens as f64 / facts.requests as f64;
        format!(
            "EMULATED, MODELLED: {} minutes of the Mooncake conversation trace, sped up {} times: {} requests \
             ({:.0} a second, open loop) with prompts of {:.0} tokens and answers of {:.0} in the mean, to {} \
             emulated hosts with real prefix caches of 2,500 blocks and modelled times (loadtest/llm-host). {} \
             rounds in alternating order, each from empty caches. Times are all-in and in seconds of the trace: \
             the host's part times {}, plus the rest as measured. One host with an endless cache would find \
             {:.1} % of the tokens; {:.0} % of the requests return to one of {} keys.",
            plan.minutes,
            plan.speed_up,
            facts.requests,
            facts.rate_per_s,
            each(facts.prompt_tokens),
            each(facts.output_tokens),
            plan.hosts,
            plan.rounds,
            plan.speed_up,
            facts.findable_share * 100.0,
            facts.returning_share * 100.0,
            facts.keys,
        )
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "EPP: the chart's scorers and weights (queue 2, KV-cache use 2, prefix 3), its prefix scorer told \
             the hosts' own block size and capacity, and no limit of blocks that a prompt reaches."
                .to_owned(),
            format!(
                "Weir: selection dynamic, overload breaker above {} queued requests; the key is the session's \
                 first own block, as it has no prefix keys yet. ring_hash hashes the same key.",
                self.plan.breaker_queued
            ),
            "Speeding up makes the measured part of a time, the way there and back, weigh as little as it would \
             at the trace's own speed, but polls are as many times rarer."
                .to_owned(),
        ];
        notes.extend(Way::ALL.map(|way| self.trouble(way)).into_iter().flatten());
        notes.push(self.reasons());
        notes
    }

    /// What was not answered at once.
    fn trouble(&self, way: Way) -> Option<String> {
        let all = || self.of_way(way).flat_map(|run| &run.records);
        let retried = all().filter(|record| record.attempts > 1).count();
        let failed = all().filter(|record| record.outcome != "ok").count();
        (retried + failed > 0).then(|| {
            format!(
                "{}: of {} requests {retried} were tried again and {failed} had no answer.",
                way.name(),
                all().count()
            )
        })
    }

    fn reasons(&self) -> String {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for record in self.of_way(Way::Weir).flat_map(|run| &run.records) {
            *reasons
                .entry(record.reason.as_deref().unwrap_or("none"))
                .or_default() += 1;
        }
        let told: Vec<String> = reasons
            .iter()
            .map(|(reason, n)| format!("{reason} {n}"))
            .collect();
        format!("Why Weir chose: {}.", told.join(", "))
    }
}
