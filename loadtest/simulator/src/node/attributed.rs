// SPDX-License-Identifier: Apache-2.0
//! The governor's attribution of energy, beside the truth of the MODEL.
//!
//! The truth of a class is what cores take while they work on its shards. The governor sees the calls of the hot
//! function alone, once a tick, and knows neither idle states nor when the package sleeps.

use std::time::Duration;

use weir_governor::energy::{Attribution, Ledger, Power};
use weir_governor::frequency::Policy;
use weir_governor::frequency::adaptive::Adaptive;
use weir_governor::frequency::performance::Performance;
use weir_governor::node::{Khz, Node};
use weir_governor::sensed::Sensed;

use weir_report::Table;

use super::cell::{Cell, Lab};
use super::chip::{Chip, MAX};
use super::compared::costs;
use super::core::Core;
use super::document002::report::spread;
use super::load::CLASSES;
use super::{Governor, Load, Terms};

/// RAPL is read this often.
const EVERY_NS: u64 = 1_000_000_000;

/// What the governor makes of a run's energy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributed {
    /// With the model's whole energy as RAPL would have counted it, and watts that are the model's.
    pub measured: Ledger,
    /// The same with watts of another processor: one that leaks three times as much, lowers its voltage more and has a
    /// smaller package.
    pub misjudged: Ledger,
    /// Without RAPL, with watts that are the model's.
    pub modelled: Ledger,
    /// The truth: joules of cores that work on shards, by step and class.
    pub truth: Vec<(Khz, [f64; CLASSES])>,
    /// The truth: all of it.
    pub whole_j: f64,
}

/// Watts that are not the model's: see [`Attributed::misjudged`].
fn another(power: Power) -> Power {
    Power {
        leak_watts: 3.0 * power.leak_watts,
        low_volts: power.low_volts - 0.05,
        package_watts: 0.8 * power.package_watts,
        awake_watts: 0.9 * power.awake_watts,
        ..power
    }
}

impl Attributed {
    /// Of this ledger of it, how far a class is off, as a share of the truth; 0 of a class that had nothing.
    #[must_use]
    pub fn error(&self, ledger: &Ledger, class: usize) -> f64 {
        let truth: f64 = self.truth.iter().map(|(_, joules)| joules[class]).sum();
        match truth > 0.0 {
            true => ledger.part(class) / truth - 1.0,
            false => 0.0,
        }
    }

    /// The largest error of a class, whatever its sign.
    #[must_use]
    pub fn worst(&self, ledger: &Ledger) -> f64 {
        let each = (0..CLASSES).map(|class| self.error(ledger, class));
        each.fold(
            0.0,
            |worst: f64, one| if one.abs() > worst.abs() { one } else { worst },
        )
    }

    /// Of the energy of all classes, the share that is at another frequency than in truth.
    #[must_use]
    pub fn misplaced(&self, ledger: &Ledger) -> f64 {
        let share = |of: f64, all: f64| if all > 0.0 { of / all } else { 0.0 };
        let classes = |joules: &[f64]| joules[..CLASSES].iter().sum::<f64>();
        let all: f64 = self.truth.iter().map(|(_, joules)| classes(joules)).sum();
        let told: f64 = (0..CLASSES).map(|class| ledger.part(class)).sum();
        let off = |(khz, joules): &(Khz, [f64; CLASSES])| {
            let found = ledger.steps.iter().find(|(step, _)| step == khz);
            let got = found.map_or(0.0, |(_, joules)| classes(joules));
            (share(got, told) - share(classes(joules), all)).abs() / 2.0
        };
        self.truth.iter().map(off).sum()
    }
}

/// What shards have taken at a step, by class.
fn truth(cores: &[Core], step: usize) -> [f64; CLASSES] {
    let sum = |class: usize| {
        cores
            .iter()
            .map(|core| core.accounts.class_j[step][class])
            .sum()
    };
    std::array::from_fn(sum)
}

/// The governor's part of it, during a run.
#[derive(Debug)]
pub(super) struct Attributions {
    measured: Attribution,
    misjudged: Attribution,
    modelled: Attribution,
    due: u64,
    /// RAPL's reading at the end of the last window.
    read_j: f64,
    truth: Vec<(Khz, [f64; CLASSES])>,
}

impl Attributions {
    pub(super) fn new(node: &Node, power: Power) -> Self {
        Self {
            measured: Attribution::new(node, power),
            misjudged: Attribution::new(node, another(power)),
            modelled: Attribution::new(node, power),
            due: EVERY_NS,
            read_j: 0.0,
            truth: Vec::new(),
        }
    }

    /// A tick that has been sensed and not yet planned: the cores have the frequencies of the last one.
    pub(super) fn tick(&mut self, chip: &Chip, cores: &[Core], sensed: &Sensed, joules: f64) {
        let khz = |core: usize| cores.get(core).map_or(MAX, |core| chip.steps[core.step]);
        let mut all = [&mut self.measured, &mut self.misjudged, &mut self.modelled];
        all.iter_mut().for_each(|one| one.passed(sensed, khz));
        if sensed.now.0 < self.due {
            return;
        }
        self.due = sensed.now.0 + EVERY_NS;
        let used_j = joules - std::mem::replace(&mut self.read_j, joules);
        self.measured.close(sensed, Some(used_j));
        self.misjudged.close(sensed, Some(used_j));
        self.modelled.close(sensed, None);
        self.truth = (chip.steps.iter().enumerate())
            .map(|(step, khz)| (*khz, truth(cores, step)))
            .collect();
    }

    /// Up to the last window: what comes after it is in neither.
    pub(super) fn ledgers(&self) -> Attributed {
        Attributed {
            measured: self.measured.ledger().clone(),
            misjudged: self.misjudged.ledger().clone(),
            modelled: self.modelled.ledger().clone(),
            truth: self.truth.clone(),
            whole_j: self.read_j,
        }
    }
}

/// Between ticks, where a policy does not choose that.
const TICK: Duration = Duration::from_millis(10);

/// Loads of the table, each with two classes: queries of few terms and of many.
const LOADS: [(&str, Terms, u32, &[u32]); 4] = [
    ("mixed", Terms::Mixed, 1, &[3]),
    ("mixed 3×", Terms::Mixed, 3, &[3]),
    ("high", Terms::High, 1, &[14]),
    ("mixed 3×, one term apart", Terms::Mixed, 3, &[1]),
];

fn policies() -> [(&'static str, Governor); 6] {
    let adaptive = Governor::Policy(Policy::Adaptive(Adaptive::default()), TICK);
    [
        (
            "performance, 10 ms",
            Governor::Policy(Policy::Performance(Performance), TICK),
        ),
        ("schedutil", Governor::schedutil()),
        ("ondemand", Governor::ondemand()),
        ("two_state 2.6 GHz", Governor::two_state(MAX, 10)),
        ("three_state 450/50", Governor::three_state(450, 50)),
        ("adaptive", adaptive),
    ]
}

/// The attribution beside the truth, by load and policy.
pub fn table(lab: &mut Lab) -> Table {
    let mut rows = Vec::new();
    for (name, terms, times, classes) in LOADS {
        let load = Load::base(terms, times).classes(classes);
        for (policy, governor) in policies() {
            let cell = Cell::new(governor.clone(), costs(&governor), load);
            let outcomes = lab.outcomes(&cell);
            let each = |of: &dyn Fn(&Attributed) -> f64| {
                let of = outcomes
                    .iter()
                    .filter_map(|one| one.attributed.as_ref().map(of));
                of.collect::<Vec<f64>>()
            };
            let percent =
                |of: &dyn Fn(&Attributed) -> f64| spread(&each(&|one| 100.0 * of(one)), 1);
            rows.push(vec![
                name.to_owned(),
                policy.to_owned(),
                percent(&|one| one.error(&one.measured, 0)),
                percent(&|one| one.error(&one.measured, 1)),
                percent(&|one| one.worst(&one.misjudged)),
                percent(&|one| one.worst(&one.modelled)),
                percent(&|one| one.misplaced(&one.measured)),
            ]);
        }
    }
    let header = [
        "load",
        "governor",
        "few terms: error, RAPL of the MODEL / %",
        "many terms: error, RAPL of the MODEL / %",
        "worst class with watts of another processor / %",
        "worst class without RAPL / %",
        "at another frequency / %",
    ];
    Table::new(header, rows)
}
