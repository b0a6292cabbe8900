// SPDX-License-Identifier: Apache-2.0
//! Each number and order that document 002's text gives, with the figure of the model that it is compared with.

use std::time::Duration;

use weir_governor::frequency::three_state::ThreeState;
use weir_governor::frequency::{Frequency, Khz, Policy};

use super::super::cell::{Cell, Costs, Lab};
use super::super::{Governor, Load, MAX, MIN, Outcome, Terms};
use super::DEADLINE_S;

/// What the text wants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wanted {
    /// This, and how far off is as bad as anything.
    About(f64, f64),
    /// At least this; how far below is bad.
    AtLeast(f64, f64),
    /// At most this; how far above is bad.
    AtMost(f64, f64),
}

impl Wanted {
    /// How far off; 1 is bad.
    #[must_use]
    pub fn miss(self, got: f64) -> f64 {
        match self {
            Self::About(value, off) => (got - value) / off,
            Self::AtLeast(value, off) => ((value - got) / off).max(0.0),
            Self::AtMost(value, off) => ((got - value) / off).max(0.0),
        }
    }

    /// As it is shown.
    #[must_use]
    pub fn shown(self) -> String {
        match self {
            Self::About(value, _) => format!("{value}"),
            Self::AtLeast(value, _) => format!("≥ {value}"),
            Self::AtMost(value, _) => format!("≤ {value}"),
        }
    }
}

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Where it stands.
    pub section: &'static str,
    /// What is compared.
    pub what: &'static str,
    /// What the text wants.
    pub wanted: Wanted,
    /// Whether the model's numbers were moved for it; the others are checks.
    pub fitted: bool,
    /// By seed.
    pub got: Vec<f64>,
}

impl Fact {
    /// Whether the mean of the seeds is as near as it can be called so.
    #[must_use]
    pub fn holds(&self) -> bool {
        match self.wanted {
            Wanted::About(..) => self.wanted.miss(self.mean()).abs() <= 1.0,
            Wanted::AtLeast(least, _) => self.mean() >= least,
            Wanted::AtMost(most, _) => self.mean() <= most,
        }
    }

    /// Mean of the seeds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.got.iter().sum::<f64>() / self.got.len() as f64
    }
}

fn p99(outcome: &Outcome) -> f64 {
    outcome.quantile(0.99)
}

fn per_query(outcome: &Outcome) -> f64 {
    outcome.energy.joules() / outcome.latencies.len() as f64
}

/// 2.0 GHz.
pub const MIDDLE: Khz = Khz(2_000_000);

/// `three_state` with this threshold and period, in milliseconds.
#[must_use]
pub fn hurry_up(threshold_ms: u64, period_ms: u64, load: Load) -> Cell {
    let governor = Governor::three_state(threshold_ms, period_ms);
    Cell::new(governor, Costs::Document, load)
}

/// A governor of the kernel, or none.
#[must_use]
pub fn kernel(governor: Governor, load: Load) -> Cell {
    Cell::new(governor, Costs::None, load)
}

/// Looks every 10 ms, and changes nothing.
#[must_use]
pub fn unchanging(khz: Khz) -> Governor {
    let always = Frequency::Absolute(khz);
    let three_state = ThreeState {
        idle: always,
        hot: always,
        over: always,
        ..ThreeState::default()
    };
    Governor::Policy(Policy::ThreeState(three_state), Duration::from_millis(10))
}

/// Asks for figures.
struct Asked<'a> {
    lab: &'a mut Lab,
    facts: Vec<Fact>,
}

impl Asked<'_> {
    fn ratio(&mut self, of: fn(&Outcome) -> f64, cell: &Cell, to: &Cell) -> Vec<f64> {
        let (a, b) = (self.lab.each(cell, of), self.lab.each(to, of));
        a.iter().zip(&b).map(|(a, b)| a / b).collect()
    }

    /// How much less energy a cell takes than another, in percent.
    fn saved(&mut self, cell: &Cell, to: &Cell) -> Vec<f64> {
        let ratio = self.ratio(Outcome::watts, cell, to);
        ratio.iter().map(|ratio| 100.0 * (1.0 - ratio)).collect()
    }

    fn add(
        &mut self,
        section: &'static str,
        what: &'static str,
        wanted: Wanted,
        fitted: bool,
        got: Vec<f64>,
    ) {
        self.facts.push(Fact {
            section,
            what,
            wanted,
            fitted,
            got,
        });
    }
}

/// All of them, or those that the model is fitted to.
pub fn facts(lab: &mut Lab, fitted_alone: bool) -> Vec<Fact> {
    let mut asked = Asked {
        lab,
        facts: Vec::new(),
    };
    observations(&mut asked);
    baseline(&mut asked);
    states(&mut asked);
    overhead(&mut asked);
    results(&mut asked);
    if !fitted_alone {
        checks(&mut asked);
    }
    asked.facts
}

const FITTED: bool = true;

fn alone(khz: Khz, terms: Terms) -> Cell {
    kernel(Governor::Fixed(khz), Load::alone(terms)).lasting(5)
}

fn observations(asked: &mut Asked<'_>) {
    use Wanted::{About, AtLeast};
    let [low, high] = [Terms::Low, Terms::High];
    let got = asked.ratio(
        Outcome::mean,
        &alone(MIN, Terms::Mixed),
        &alone(MAX, Terms::Mixed),
    );
    asked.add(
        "3.1, obs. 1",
        "mean service time, 1.0 ÷ 2.6 GHz, mixed (\"nearly three-fold\")",
        About(2.8, 0.5),
        FITTED,
        got,
    );
    let got = asked.ratio(per_query, &alone(MAX, high), &alone(MAX, low));
    asked.add(
        "3.1, obs. 3",
        "energy a query, heavy ÷ light, 2.6 GHz (\"over fourfold\")",
        About(4.2, 0.5),
        FITTED,
        got,
    );
    let got = asked.ratio(per_query, &alone(MIN, low), &alone(MAX, low));
    asked.add(
        "3.1, obs. 3",
        "energy a query, 1.0 ÷ 2.6 GHz, light (\"higher\")",
        AtLeast(1.03, 0.05),
        FITTED,
        got,
    );
    let got = asked.ratio(per_query, &alone(MIN, high), &alone(MAX, high));
    asked.add(
        "3.1, obs. 3",
        "energy a query, 1.0 ÷ 2.6 GHz, heavy (\"higher\")",
        AtLeast(1.03, 0.05),
        FITTED,
        got,
    );
    for (khz, what) in [
        (
            1_700_000,
            "energy a query, 1.7 ÷ 2.0 GHz, light (2.0 is the lowest)",
        ),
        (
            2_300_000,
            "energy a query, 2.3 ÷ 2.0 GHz, light (2.0 is the lowest)",
        ),
    ] {
        let got = asked.ratio(per_query, &alone(Khz(khz), low), &alone(MIDDLE, low));
        asked.add("3.1, obs. 4", what, AtLeast(1.003, 0.01), FITTED, got);
    }
}

fn baseline(asked: &mut Asked<'_>) {
    use Wanted::{About, AtLeast, AtMost};
    let cell = |governor, terms| kernel(governor, Load::base(terms, 1));
    let [low, high] = [Terms::Low, Terms::High];
    let got = asked.lab.each(&cell(Governor::powersave(), low), p99);
    asked.add(
        "4.2",
        "powersave, low: p99 / s (\"at the point of the deadline\")",
        About(1.0, 0.1),
        FITTED,
        got,
    );
    let got = asked.lab.each(&cell(Governor::ondemand(), high), p99);
    asked.add(
        "4.2",
        "ondemand, high: p99 / s (meets the deadline)",
        AtMost(0.97, 0.05),
        FITTED,
        got,
    );
    let got = asked.ratio(
        Outcome::watts,
        &cell(Governor::powersave(), low),
        &cell(Governor::performance(), low),
    );
    asked.add(
        "4.2",
        "energy, powersave ÷ performance, low (\"more\")",
        AtLeast(1.01, 0.05),
        FITTED,
        got,
    );
    let got = asked.ratio(
        Outcome::watts,
        &cell(Governor::powersave(), high),
        &cell(Governor::performance(), high),
    );
    asked.add(
        "4.2",
        "energy, powersave ÷ performance, high (not more)",
        AtMost(1.0, 0.03),
        FITTED,
        got,
    );
}

fn states(asked: &mut Asked<'_>) {
    use Wanted::{About, AtMost};
    let high = Load::base(Terms::High, 1);
    let two = |khz| Cell::new(Governor::two_state(khz, 10), Costs::Document, high).lasting(10);
    let three = hurry_up(350, 10, high).lasting(10);
    let got = asked.lab.each(&two(MIDDLE), p99);
    asked.add(
        "4.4",
        "two_state 2.0 GHz, high: p99 / s (misses by \"about 10 %\")",
        About(1.1, 0.04),
        FITTED,
        got,
    );
    let got = asked.lab.each(&two(MAX), p99);
    asked.add(
        "4.4",
        "two_state 2.6 GHz, high: p99 / s (meets)",
        AtMost(0.97, 0.04),
        FITTED,
        got,
    );
    let got = asked.lab.each(&three, p99);
    asked.add(
        "4.4",
        "three_state, high: p99 / s (meets)",
        AtMost(0.99, 0.02),
        FITTED,
        got,
    );
    let got = asked
        .saved(&two(MAX), &three)
        .iter()
        .map(|saved| -saved)
        .collect();
    asked.add(
        "4.4",
        "energy, two_state 2.6 GHz over three_state, high / %",
        About(7.0, 2.0),
        FITTED,
        got,
    );
}

fn overhead(asked: &mut Asked<'_>) {
    use Wanted::About;
    let low = Load::base(Terms::Low, 1);
    for (khz, texts, service, energy) in [
        (
            MIN,
            [
                "service time the agent adds, low, 1.0 GHz / %",
                "energy the agent adds, low, 1.0 GHz / %",
            ],
            10.0,
            5.0,
        ),
        (
            MAX,
            [
                "service time the agent adds, low, 2.6 GHz / %",
                "energy the agent adds, low, 2.6 GHz / %",
            ],
            40.0,
            11.0,
        ),
    ] {
        let without = kernel(Governor::Fixed(khz), low);
        let with = Cell::new(unchanging(khz), Costs::Document, low);
        let got = asked.ratio(p99, &with, &without);
        let percent = |ratios: Vec<f64>| ratios.iter().map(|ratio| 100.0 * (ratio - 1.0)).collect();
        asked.add("4.5", texts[0], About(service, 9.0), FITTED, percent(got));
        let got = asked.ratio(Outcome::watts, &with, &without);
        asked.add("4.5", texts[1], About(energy, 3.0), FITTED, percent(got));
    }
}

/// Ondemand and the governor after its calibration.
fn pair(terms: Terms, times: u32) -> [Cell; 2] {
    let load = Load::base(terms, times);
    [hurry_up(450, 50, load), kernel(Governor::ondemand(), load)]
}

fn results(asked: &mut Asked<'_>) {
    use Wanted::{About, AtMost};
    let [ours, ondemand] = pair(Terms::High, 1);
    let got = asked.saved(&ours, &ondemand);
    asked.add(
        "4.8",
        "energy saved, high, base load / %",
        About(17.0, 2.0),
        FITTED,
        got,
    );
    let got = asked.lab.each(&ours, p99);
    asked.add(
        "4.8",
        "three_state 450/50, high: p99 / s (meets)",
        AtMost(1.0, 0.02),
        FITTED,
        got,
    );
    let [ours, ondemand] = pair(Terms::Low, 3);
    let got = asked.saved(&ours, &ondemand);
    asked.add(
        "4.8",
        "energy saved, low, 3× / %",
        About(28.0, 2.0),
        FITTED,
        got,
    );
    let got = asked.lab.each(&ours, p99);
    asked.add(
        "4.8",
        "three_state, low, 3×: p99 / s (meets)",
        AtMost(DEADLINE_S, 0.05),
        FITTED,
        got,
    );
    let [ours, ondemand] = pair(Terms::Mixed, 3);
    let got = asked.saved(&ours, &ondemand);
    asked.add(
        "4.8",
        "energy saved, mixed, 3× / %",
        About(22.0, 2.0),
        FITTED,
        got,
    );
    let got = asked.lab.each(&ours, p99);
    asked.add(
        "4.8",
        "three_state, mixed, 3×: p99 / s (meets)",
        AtMost(DEADLINE_S, 0.05),
        FITTED,
        got,
    );
}

fn checks(asked: &mut Asked<'_>) {
    use Wanted::{About, AtLeast, AtMost};
    let high = Load::base(Terms::High, 1);
    let cell = |governor, terms| kernel(governor, Load::base(terms, 1));
    let got = asked
        .lab
        .each(&cell(Governor::performance(), Terms::High), p99);
    asked.add(
        "4.2",
        "performance, high: p99 / s (meets)",
        AtMost(DEADLINE_S, 0.05),
        false,
        got,
    );
    let got = asked
        .lab
        .each(&cell(Governor::powersave(), Terms::High), p99);
    asked.add(
        "4.2",
        "powersave, high: p99 / s (misses)",
        AtLeast(DEADLINE_S, 0.05),
        false,
        got,
    );
    for (terms, what) in [
        (
            Terms::Low,
            "energy, performance ÷ ondemand, low (\"falls behind\")",
        ),
        (
            Terms::High,
            "energy, performance ÷ ondemand, high (\"falls behind\")",
        ),
    ] {
        let got = asked.ratio(
            Outcome::watts,
            &cell(Governor::performance(), terms),
            &cell(Governor::ondemand(), terms),
        );
        asked.add("4.2", what, AtLeast(1.0, 0.03), false, got);
    }
    let first = hurry_up(350, 10, high);
    let got = asked.saved(&first, &cell(Governor::ondemand(), Terms::High));
    asked.add(
        "4.3",
        "energy saved, first version (350/10), high / %",
        About(6.0, 3.0),
        false,
        got,
    );
    let [ours, ondemand] = pair(Terms::Low, 1);
    let got = asked.saved(&ours, &ondemand);
    asked.add(
        "4.8",
        "energy saved, low, base load / %",
        About(2.0, 2.0),
        false,
        got,
    );
    let [ours, ondemand] = pair(Terms::Mixed, 1);
    let got = asked.ratio(p99, &ondemand, &pair(Terms::Low, 1)[1]);
    asked.add(
        "4.8",
        "p99, mixed ÷ low, ondemand (\"lower\")",
        AtMost(0.99, 0.3),
        false,
        got,
    );
    let got = asked.lab.each(&ours, p99);
    asked.add(
        "4.8",
        "three_state 450/50, mixed: p99 / s (meets)",
        AtMost(0.95, 0.1),
        false,
        got,
    );
    for (of, what) in [
        (0, "three_state, high, 3×: p99 / s (misses)"),
        (1, "ondemand, high, 3×: p99 / s (misses)"),
    ] {
        let got = asked.lab.each(&pair(Terms::High, 3)[of], p99);
        asked.add("4.8", what, AtLeast(DEADLINE_S, 0.05), false, got);
    }
    let got = asked.lab.each(&pair(Terms::Mixed, 4)[0], p99);
    asked.add(
        "4.8",
        "three_state, mixed, 4×: p99 / s (\"just within\")",
        AtMost(DEADLINE_S, 0.1),
        false,
        got,
    );
}
