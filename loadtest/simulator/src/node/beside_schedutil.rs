// SPDX-License-Identifier: Apache-2.0
//! Every policy beside the kernel's schedutil, which is what a user has without any: SIMULATED, energy of a MODEL.
//!
//! The goal is a quarter less energy at a 99th percentile that is no higher. Settings are searched on seed 1 and
//! judged on the seeds after it.

use std::time::Duration;

use weir_governor::frequency::adaptive::Adaptive;
use weir_governor::frequency::multi_state::{MultiState, Rung};
use weir_governor::frequency::rubik::Rubik;
use weir_governor::frequency::slow_to_fast::SlowToFast;
use weir_governor::frequency::three_state::ThreeState;
use weir_governor::frequency::two_state::TwoState;
use weir_governor::frequency::{Frequency, Khz, Policy};
use weir_report::Table;

use super::cell::{Cell, Costs, Lab};
use super::compared::{by_default, costs};
use super::document002::DEADLINE_S;
use super::document002::report::spread;
use super::{Clairvoyant, Governor, Load, MAX, MIN, Outcome, Terms, steps};

/// Energy against schedutil's that is the goal.
const GOAL: f64 = 0.75;
/// Minutes of the runs of a search.
const SEARCH: u32 = 10;
/// A setting of a search has a 99th percentile so far below schedutil's: on other seeds it is another.
const IN_HAND: f64 = 0.995;
/// What of a percentile above schedutil's counts as none: that of other seeds differs by more.
const EQUAL: f64 = 1.005;

/// Loads, and the numbers of terms that a program could tell its hot functions apart by.
const LOADS: [(Terms, u32, &[u32]); 6] = [
    (Terms::Low, 1, &[]),
    (Terms::Mixed, 1, &[3, 6, 10]),
    (Terms::High, 1, &[13, 15, 16]),
    (Terms::Low, 3, &[]),
    (Terms::Mixed, 3, &[3, 6, 10]),
    (Terms::High, 2, &[13, 15, 16]),
];

/// A policy of ours that looks so often.
fn ours(policy: Policy, millis: u64) -> Governor {
    Governor::Policy(policy, Duration::from_millis(millis))
}

fn khz(ghz_10: u32) -> Frequency {
    Frequency::Absolute(Khz(ghz_10 * 100_000))
}

/// Ways to the goal with the policies that there are, and their settings; `p99_s` is schedutil's.
fn ways(p99_s: f64) -> Vec<(&'static str, Vec<(String, Governor)>)> {
    let mut two = Vec::new();
    let mut three = Vec::new();
    for idle in [10, 16] {
        for hot in [16, 18, 20, 22, 24, 26] {
            let policy = TwoState {
                idle: khz(idle),
                hot: khz(hot),
            };
            let name = format!("idle {idle}, hot {hot} of 100 MHz");
            two.push((name, ours(Policy::TwoState(policy), 2)));
        }
        for hot in [10, 14, 18, 22] {
            for threshold_ms in [10, 30, 80, 160] {
                let policy = ThreeState {
                    idle: khz(idle),
                    hot: khz(hot),
                    threshold: Duration::from_millis(threshold_ms),
                    ..ThreeState::default()
                };
                let name = format!("idle {idle}, hot {hot} of 100 MHz, {threshold_ms} ms");
                three.push((name, ours(Policy::ThreeState(policy), 2)));
            }
        }
    }
    let mut learnt = Vec::new();
    for share in [0.85, 0.95, 1.0] {
        let target = Duration::from_secs_f64(share * p99_s);
        let all = [
            (
                "adaptive",
                Policy::Adaptive(Adaptive {
                    target,
                    margin: 0.0,
                    ..Adaptive::default()
                }),
            ),
            (
                "rubik",
                Policy::Rubik(Rubik {
                    target,
                    margin: 0.0,
                    ..Rubik::default()
                }),
            ),
            (
                "slow_to_fast",
                Policy::SlowToFast(SlowToFast {
                    target,
                    ..SlowToFast::default()
                }),
            ),
        ];
        learnt.extend(all.map(|(name, policy)| {
            (
                format!("{name}, target {share} of the percentile"),
                ours(policy, 2),
            )
        }));
    }
    vec![
        ("two_state", two),
        ("three_state", three),
        ("a target", learnt),
    ]
}

/// A ladder of a step for each class, the last at the highest frequency: the classes before it get slower, one step
/// at a time, as long as that is within `p99_s`.
fn ladders(search: &mut Lab, load: Load, p99_s: f64) -> (String, Governor) {
    let classes = load.classes.len() + 1;
    let policy = |hot: &[u32]| {
        let ladder = |ghz_10: &u32| {
            let frequency = khz(*ghz_10);
            vec![Rung {
                after: Duration::ZERO,
                frequency,
            }]
        };
        let multi_state = MultiState {
            idle: khz(12),
            functions: hot.iter().map(ladder).enumerate().collect(),
            ..MultiState::default()
        };
        ours(Policy::MultiState(multi_state), 2)
    };
    let mut hot = vec![26; classes];
    // From the class of most work that is not needed fast: each gets as slow as it may.
    for class in (0..classes).rev() {
        for ghz_10 in [22, 18, 14, 12, 10] {
            let mut slower = hot.clone();
            slower[class] = ghz_10;
            let (p99, _) = figures(search, &policy(&slower), load);
            if p99 > IN_HAND * p99_s {
                break;
            }
            hot = slower;
        }
    }
    (format!("{hot:?} of 100 MHz"), policy(&hot))
}

/// 99th percentile and watts on the seed of the search.
fn figures(search: &mut Lab, governor: &Governor, load: Load) -> (f64, f64) {
    let cell = Cell::new(governor.clone(), costs(governor), load).lasting(SEARCH);
    let p99 = search.each(&cell, |outcome| outcome.quantile(0.99))[0];
    (p99, search.each(&cell, Outcome::watts)[0])
}

/// Of those within schedutil's percentile the one that takes least; nothing where none does.
fn best(
    search: &mut Lab,
    load: Load,
    p99_s: f64,
    members: Vec<(String, Governor)>,
) -> Option<(String, Governor)> {
    let mut least = f64::INFINITY;
    let mut found = None;
    for (name, governor) in members {
        let (p99, watts) = figures(search, &governor, load);
        if p99 <= IN_HAND * p99_s && watts < least {
            least = watts;
            found = Some((name, governor));
        }
    }
    found
}

/// Who knows each shard's work, told to be as late as schedutil is.
fn knowing(p99_s: f64) -> Vec<(String, Governor)> {
    let mut all = Vec::new();
    for floor in steps().into_iter().step_by(3) {
        for share in [0.9, 0.97] {
            let clairvoyant = Clairvoyant {
                floor,
                most: MAX,
                within_s: share * p99_s,
                aside: MIN,
            };
            all.push((format!("from {floor}"), Governor::Clairvoyant(clairvoyant)));
        }
    }
    all
}

fn row(lab: &mut Lab, load: (&str, Load), name: &str, governor: &Governor) -> Vec<String> {
    let (load_name, load) = load;
    let first = Cell::new(Governor::schedutil(), Costs::None, load);
    let cell = Cell::new(governor.clone(), costs(governor), load);
    let mut against = |of: &dyn Fn(&Outcome) -> f64| {
        let first = lab.each(&first, of);
        let each = lab.each(&cell, of);
        let ratio = |(one, first): (&f64, &f64)| one / first;
        each.iter().zip(&first).map(ratio).collect::<Vec<f64>>()
    };
    let p99 = against(&|one| one.quantile(0.99));
    // A load that is asked for slower is answered with less: of one answer.
    let energy = against(&|one| one.energy.joules() / one.latencies.len().max(1) as f64);
    let mean = |each: &[f64]| each.iter().sum::<f64>() / each.len().max(1) as f64;
    let percent: Vec<f64> = energy.iter().map(|ratio| 100.0 * (ratio - 1.0)).collect();
    let said = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let deadline = mean(&lab.each(&cell, |one| one.quantile(0.99))) <= DEADLINE_S;
    vec![
        load_name.to_owned(),
        name.to_owned(),
        spread(&lab.each(&cell, |one| one.quantile(0.99)), 3),
        spread(&p99, 2),
        spread(&lab.each(&cell, Outcome::watts), 1),
        spread(&percent, 1),
        said(mean(&energy) <= GOAL && mean(&p99) <= EQUAL),
        said(mean(&energy) <= GOAL && deadline),
    ]
}

/// All of it; `lab` has none of seed 1.
pub fn table(lab: &mut Lab) -> Table {
    let mut rows = Vec::new();
    for (terms, times, classes) in LOADS {
        let load = Load::base(terms, times).classes(classes);
        let name = match times {
            1 => terms.name().to_owned(),
            times => format!("{} {times}×", terms.name()),
        };
        let mut all = vec![
            ("schedutil".to_owned(), Governor::schedutil()),
            ("ondemand".to_owned(), Governor::ondemand()),
        ];
        let defaults = by_default().into_iter();
        all.extend(defaults.map(|(name, governor)| (name.to_owned(), governor)));
        let mut search = Lab::new(lab.params().clone(), 1);
        let (p99_s, _) = figures(&mut search, &Governor::schedutil(), load);
        for (way, members) in ways(p99_s)
            .into_iter()
            .chain([("clairvoyant", knowing(p99_s))])
        {
            let found = best(&mut search, load, p99_s, members);
            all.extend(found.map(|(setting, governor)| (format!("*{way}*: {setting}"), governor)));
        }
        if !classes.is_empty() {
            let (setting, governor) = ladders(&mut search, load, p99_s);
            all.push((format!("*a ladder for each class*: {setting}"), governor));
        }
        for (policy, governor) in all {
            rows.push(row(lab, (&name, load), &policy, &governor));
        }
    }
    let header = [
        "load",
        "governor",
        "p99 / s",
        "p99 against schedutil",
        "power, MODEL / W",
        "energy of an answer against schedutil, MODEL / %",
        "25 % less at no higher p99",
        "25 % less within 1 s",
    ];
    Table::new(header, rows)
}
