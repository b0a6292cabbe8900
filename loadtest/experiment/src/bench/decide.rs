// SPDX-License-Identifier: Apache-2.0
//! The part `decide`: what a decision costs, by policy and size of the fleet. Nothing but the library runs.

mod case;
mod fleet;

use anyhow::{Context, Result};
use weir_policy::Selection;
use weir_policy::selection::hot_cold;
use weir_report::{Spread, Table};
use weir_stage::interrupt;
use weir_stage::usage::Process;

use self::case::{Asked, Case};
use crate::bench::section::{Bound, NO_SPREAD, Section, Target};
use crate::bench::setting::Setting;
use crate::variant::in_turn;

const HOSTS: [usize; 3] = [14, 1000, 10_000];
/// Times that a case is run in its turn; the fastest counts, because the machine only ever adds.
const RUNS: usize = 20;
/// A decision is to cost less than a microsecond, and at 10,000 hosts at most twice what it costs at 14.
const MOST_NANOSECONDS: f64 = 1000.0;
const FLAT: f64 = 2.0;
/// Prequal's rule.
const HOT_COLD: Selection = Selection::HotCold {
    permille: hot_cold::QUANTILE_PERMILLE,
};

/// One row: the same case in fleets of each size, and the nanoseconds of each round.
struct Row {
    name: &'static str,
    /// Whether the targets are for it.
    is_decision: bool,
    cases: Vec<Box<dyn Case>>,
    rounds: Vec<Vec<f64>>,
}

impl Row {
    fn new(
        name: &'static str,
        is_decision: bool,
        case: impl Fn(usize) -> Result<Box<dyn Case>>,
    ) -> Result<Self> {
        let cases = HOSTS.into_iter().map(case).collect::<Result<Vec<_>>>()?;
        let rounds = vec![Vec::new(); cases.len()];
        Ok(Self {
            name,
            is_decision,
            cases,
            rounds,
        })
    }

    fn measure(&mut self, round: usize) -> Result<()> {
        for (case, rounds) in in_turn(round, self.cases.iter_mut().zip(&mut self.rounds)) {
            interrupt::check()?;
            rounds.push(fastest(case.as_mut())?);
        }
        Ok(())
    }

    fn spread(&self, size: usize) -> Result<Spread> {
        let rounds = self.rounds.get(size).context("a size")?;
        Spread::of(rounds).context(NO_SPREAD)
    }

    /// The largest fleet to the smallest.
    fn growth(&self) -> Result<Spread> {
        let (Some(few), Some(many)) = (self.rounds.first(), self.rounds.last()) else {
            anyhow::bail!("no sizes");
        };
        Spread::of_ratios(many, few).context(NO_SPREAD)
    }

    fn cells(&self) -> Result<Vec<String>> {
        let sizes = 0..HOSTS.len();
        let spreads = sizes.map(|size| Ok(self.spread(size)?.to_string()));
        let name = std::iter::once(Ok(self.name.to_owned()));
        let growth = std::iter::once_with(|| Ok(self.growth()?.to_string()));
        name.chain(spreads).chain(growth).collect()
    }

    fn targets(&self) -> Result<[Target; 2]> {
        let largest = self.spread(HOSTS.len() - 1)?;
        Ok([
            Target {
                what: format!("{}: 10,000 hosts to 14", self.name),
                bound: Bound::AtMost(FLAT),
                got: self.growth()?,
            },
            Target {
                what: format!("{}: nanoseconds at 10,000 hosts", self.name),
                bound: Bound::AtMost(MOST_NANOSECONDS),
                got: largest,
            },
        ])
    }
}

/// Nanoseconds of CPU for one repetition, of the fastest of some runs.
fn fastest(case: &mut dyn Case) -> Result<f64> {
    let process = Process::own();
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        case.prepare();
        let before = process.cpu()?;
        let times = case.run();
        let spent = process.cpu()?.saturating_sub(before);
        least = least.min(spent.as_nanos() as f64 / times as f64);
    }
    Ok(least)
}

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Section>> {
    let rounds = if setting.quick { 10 } else { 60 };
    let mut rows = rows()?;
    for round in 0..rounds {
        if round % 10 == 0 {
            eprintln!("decide: round {} of {rounds}", round + 1);
        }
        for row in in_turn(round, &mut rows) {
            row.measure(round)?;
        }
    }
    let mut header = vec!["nanoseconds".to_owned()];
    header.extend(HOSTS.map(|hosts| format!("{hosts} hosts")));
    header.push("10,000 to 14".to_owned());
    let decisions = rows.iter().filter(|row| row.is_decision);
    let targets = decisions.map(Row::targets).collect::<Result<Vec<_>>>()?;
    Ok(vec![Section {
        title: "A decision, by size of the fleet".to_owned(),
        how: format!(
            "CPU time of the library, compiled for this machine, of one thread: {rounds} rounds of every case \
             in turns, every other round backwards, of each the fastest of {RUNS} times {} decisions or answers, \
             or of {RUNS} times as many new tables as have {} hosts together, which are there before the clock \
             runs. The default selection is estimate. DAGOR levels, of which one in eight refuses; keys that are cached are so at three hosts.",
            case::REPEATED,
            case::TABLED
        ),
        table: Table {
            header,
            rows: rows.iter().map(Row::cells).collect::<Result<_>>()?,
        },
        targets: targets.into_iter().flatten().collect(),
        notes: vec![
            "A new table comes once a source interval, an answer's load with a request.".to_owned(),
        ],
        ..Section::default()
    }])
}

fn rows() -> Result<Vec<Row>> {
    let decisions = [
        ("estimate, key cached", Selection::Estimate, Asked::Cached),
        (
            "estimate, key not cached",
            Selection::Estimate,
            Asked::NotCached,
        ),
        ("estimate, no key", Selection::Estimate, Asked::NoKey),
        ("dynamic, key cached", Selection::Dynamic, Asked::Cached),
        (
            "dynamic, key not cached",
            Selection::Dynamic,
            Asked::NotCached,
        ),
        ("dynamic, no key", Selection::Dynamic, Asked::NoKey),
        ("baseline", Selection::Baseline, Asked::NotCached),
        ("random", Selection::Random, Asked::NotCached),
        ("rendezvous", Selection::Rendezvous, Asked::NotCached),
        ("hot_cold", HOT_COLD, Asked::NotCached),
        (
            "caching_plan, key planned",
            Selection::CachingPlan,
            Asked::Cached,
        ),
    ];
    let decisions = decisions.map(|(name, selection, asked)| {
        Row::new(name, true, move |hosts| {
            case::decisions(hosts, selection, asked)
        })
    });
    let others = [
        Row::new("a new table, by host", false, case::tables),
        Row::new("an answer that moves a host", false, case::answers),
    ];
    decisions.into_iter().chain(others).collect()
}
