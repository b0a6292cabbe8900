// SPDX-License-Identifier: Apache-2.0
//! Every policy on every load, beside somebody who knows the work: SIMULATED, energy of a MODEL.

use std::time::Duration;

use weir_governor::frequency::adaptive::Adaptive;
use weir_governor::frequency::hipster::Hipster;
use weir_governor::frequency::iso_latency::IsoLatency;
use weir_governor::frequency::multi_state::{ByLoad, MultiState};
use weir_governor::frequency::octopus_man::OctopusMan;
use weir_governor::frequency::rubik::Rubik;
use weir_governor::frequency::slow_to_fast::SlowToFast;
use weir_governor::frequency::three_state::ThreeState;
use weir_governor::frequency::{Frequency, Khz, Policy};
use weir_report::Table;

use super::cell::{Cell, Costs, Lab};
use super::document002::{DEADLINE_S, report};
use super::{Clairvoyant, Governor, Load, MAX, MIN, Outcome, Terms, steps};

/// The calmest of its tunings is the one that is still so far within the deadline on the seed it is tuned on.
const IN_HAND: f64 = 0.97;
/// Minutes of the runs of a tuning.
const TUNING: u32 = 10;

/// Loads that are compared: those of document 002 that its own governors meet the deadline with.
const LOADS: [(Terms, u32); 5] = [
    (Terms::Low, 1),
    (Terms::Mixed, 1),
    (Terms::High, 1),
    (Terms::Low, 3),
    (Terms::Mixed, 3),
];

/// The policies as they are by default, ours looking every 10 ms where document 002 does not say otherwise.
pub(super) fn by_default() -> Vec<(&'static str, Governor)> {
    let ours = |policy| Governor::Policy(policy, Duration::from_millis(10));
    let multi_state = MultiState {
        by_load: Some(ByLoad::default()),
        ..MultiState::default()
    };
    vec![
        ("performance", Governor::performance()),
        ("powersave", Governor::powersave()),
        ("two_state 2.6 GHz", Governor::two_state(MAX, 10)),
        ("three_state 450/50", Governor::three_state(450, 50)),
        ("multi_state by load", ours(Policy::MultiState(multi_state))),
        (
            "iso_latency",
            ours(Policy::IsoLatency(IsoLatency::default())),
        ),
        (
            "slow_to_fast",
            ours(Policy::SlowToFast(SlowToFast::default())),
        ),
        ("adaptive", ours(Policy::Adaptive(Adaptive::default()))),
        ("rubik", ours(Policy::Rubik(Rubik::default()))),
        (
            "octopus_man",
            ours(Policy::OctopusMan(OctopusMan::default())),
        ),
        ("hipster", ours(Policy::Hipster(Hipster::default()))),
    ]
}

/// Whose settings are searched: the family's name and its members.
fn families() -> Vec<(&'static str, Vec<(String, Governor)>)> {
    let fixed = steps()
        .into_iter()
        .map(|khz| (khz.to_string(), Governor::Fixed(khz)));
    let two = steps()
        .into_iter()
        .map(|khz| (khz.to_string(), Governor::two_state(khz, 10)));
    let mut three = Vec::new();
    let mut knowing = Vec::new();
    for khz in steps().into_iter().step_by(2) {
        for threshold in [100, 200, 300, 450, 600, 800] {
            let policy = ThreeState {
                hot: Frequency::Absolute(khz),
                threshold: Duration::from_millis(threshold),
                ..ThreeState::default()
            };
            let governor = Governor::Policy(Policy::ThreeState(policy), Duration::from_millis(10));
            three.push((format!("{khz}, {threshold} ms"), governor));
        }
        for most in [2_200_000, 2_400_000, 2_600_000].map(Khz) {
            for within_s in [0.6, 0.8, 0.95] {
                for aside in [MIN, Khz(1_600_000), Khz(2_000_000), MAX] {
                    let clairvoyant = Clairvoyant {
                        floor: khz,
                        most,
                        within_s,
                        aside,
                    };
                    let name = format!("from {khz}, within {within_s} s");
                    knowing.push((name, Governor::Clairvoyant(clairvoyant)));
                }
            }
        }
    }
    vec![
        ("best fixed", fixed.collect()),
        ("best two_state", two.collect()),
        ("best three_state", three),
        ("clairvoyant", knowing),
    ]
}

pub(super) fn costs(governor: &Governor) -> Costs {
    match governor {
        Governor::Policy(
            Policy::Performance(_)
            | Policy::Powersave(_)
            | Policy::Ondemand(_)
            | Policy::Schedutil(_),
            _,
        ) => Costs::None,
        Governor::Policy(..) => Costs::Ours,
        Governor::Fixed(_) | Governor::Clairvoyant(_) => Costs::None,
    }
}

/// Of those that meet the deadline the one that takes least; nothing where none does.
fn best(lab: &mut Lab, load: Load, members: Vec<(String, Governor)>) -> Option<(String, Cell)> {
    let mut least = f64::INFINITY;
    let mut found = None;
    for (name, governor) in members {
        let cell = Cell::new(governor.clone(), costs(&governor), load).lasting(TUNING);
        let p99 = lab.each(&cell, |outcome| outcome.quantile(0.99))[0];
        let watts = lab.each(&cell, Outcome::watts)[0];
        if p99 <= IN_HAND * DEADLINE_S && watts < least {
            least = watts;
            found = Some((name, cell.lasting(20)));
        }
    }
    found
}

/// All of it.
pub fn table(lab: &mut Lab) -> Table {
    let mut rows = Vec::new();
    for (terms, times) in LOADS {
        let load = Load::base(terms, times);
        let name = match times {
            1 => terms.name().to_owned(),
            times => format!("{} {times}×", terms.name()),
        };
        let ondemand = Cell::new(Governor::ondemand(), Costs::None, load);
        rows.push(report::row(lab, &name, "ondemand", &ondemand, &ondemand));
        for (policy, governor) in by_default() {
            let cell = Cell::new(governor.clone(), costs(&governor), load);
            rows.push(report::row(lab, &name, policy, &cell, &ondemand));
        }
        let mut tuning = Lab::new(lab.params().clone(), 1);
        for (family, members) in families() {
            if let Some((setting, cell)) = best(&mut tuning, load, members) {
                let label = format!("{family}: {setting}");
                rows.push(report::row(lab, &name, &label, &cell, &ondemand));
            }
        }
    }
    Table {
        header: report::header(),
        rows,
    }
}
