// SPDX-License-Identifier: Apache-2.0
//! The run as one page: what was set, the tables, the verdicts, and for each way the timeline of one round, as
//! document 004's figures 1 to 3.

use clap::ValueEnum;
use weir_memcached_load::interval::Figures;
use weir_report::{Axis, Kind, Lane, Lanes, Plot, Report, Series, Stretch, Style};
use weir_stage::machine;

use crate::static_plan::calibration::Calibration;
use crate::static_plan::figures::DOCUMENT_SLO_US;
use crate::static_plan::jobs::{STAND_INS, stand_in};
use crate::static_plan::rounds::Round;
use crate::static_plan::table;
use crate::static_plan::verdict::verdicts;
use crate::static_plan::way::{Step, Way};
use crate::variant::Variant;

/// What a job does, in the order of the kinds.
const WAITS: usize = 0;
const RUNS: usize = 1;

/// The page.
#[must_use]
pub fn page(rounds: &[Round], found: &Calibration, scale: f64, command: &str) -> Report {
    let mut report = Report::new(
        "A written plan on real parts",
        "memcached and six jobs on three nodes, a governor each",
    );
    report.command(command);
    report.note(
        "The three nodes are this one machine of two cores: each has a governor, a state directory, an admin port \
         and cgroups of its own, and a core that it may share with another node.",
    );
    report.facts(&facts(found, scale));
    report.heading("All jobs, and memcached meanwhile");
    report.table(&table::ways(rounds, scale));
    let lines: Vec<String> = verdicts(rounds).iter().map(ToString::to_string).collect();
    report.list(&lines);
    report.heading("Each job");
    report.table(&table::jobs(rounds));
    for way in Way::value_variants() {
        if let Some(round) = rounds.iter().find(|round| round.way == *way) {
            report.heading(&format!("A round of the way {}", way.name()));
            report.plot(&plot(round, found));
            report.lanes(&lanes(round));
        }
    }
    report
}

fn facts(found: &Calibration, scale: f64) -> Vec<(&'static str, String)> {
    let sizes = STAND_INS.iter().zip(found.sizes);
    let sizes: Vec<String> = sizes
        .map(|((job, program, _), size)| {
            format!("{job}: {}, {size} {}", program.name(), program.unit())
        })
        .collect();
    vec![
        ("machine", machine::describe()),
        (
            "memcached on all cores carries",
            format!("{:.0} requests of 100 keys a second", found.all_cores),
        ),
        (
            "load",
            format!("{:.0} requests a second, steadily", found.rate()),
        ),
        (
            "SLO",
            format!(
                "an interval's p95 up to {} µs, three times the {} µs of memcached alone at this load; \
                 document 004's is 2 ms",
                found.slo_us, found.alone_p95_us
            ),
        ),
        (
            "jobs",
            format!(
                "{scale} s of CPU time for each second of document 004, one thread; {}",
                sizes.join("; ")
            ),
        ),
    ]
}

fn plot(round: &Round, found: &Calibration) -> Plot {
    let end = round.makespan_s;
    let line = |name: &str, points| Series {
        name: name.to_owned(),
        points,
        style: Style::Step,
    };
    let stepped = |value: &dyn Fn(&Figures) -> f64| {
        let steps = round.intervals.iter();
        let both = steps.flat_map(|one| {
            let value = value(one);
            [(one.start_s, value), (one.start_s + one.length_s, value)]
        });
        both.collect()
    };
    let limit = |us: u64| vec![(0.0, us as f64 / 1e3), (end, us as f64 / 1e3)];
    Plot {
        title: format!("{}: memcached's p95", round.way.name()),
        x: Axis::linear("time / s").range(0.0, end),
        y: Axis::log("p95 / ms, thousand requests / s"),
        series: vec![
            line(
                "p95",
                stepped(&|one| one.latency.p95_us.map_or(f64::NAN, |us| us as f64 / 1e3)),
            ),
            line("SLO", limit(found.slo_us)),
            line("document 004's", limit(DOCUMENT_SLO_US)),
            line("requests served", stepped(&|one| one.achieved_qps / 1e3)),
        ],
        ..Plot::default()
    }
}

fn lanes(round: &Round) -> Lanes {
    let kind = |name: &str, thin| Kind {
        name: name.to_owned(),
        thin,
    };
    Lanes {
        title: format!("{}: the jobs", round.way.name()),
        x: Axis::linear("time / s").range(0.0, round.makespan_s),
        kinds: vec![kind("waits", true), kind("runs", false)],
        rows: round
            .way
            .steps()
            .iter()
            .map(|step| lane(round, step))
            .collect(),
        caption: "By the governors' timelines. A stroke is a start or an end.".to_owned(),
    }
}

fn lane(round: &Round, step: &Step) -> Lane {
    let program = stand_in(step.job).map_or(String::new(), |program| program.name());
    let label = format!(
        "{}, core {}: {} ({program})",
        step.node,
        round.way.core(step.node),
        step.job
    );
    let Some((began, ended)) = round.once(step.job) else {
        return Lane {
            label,
            note: "did not run once and well".to_owned(),
            bad: true,
            ..Lane::default()
        };
    };
    let stretch = |from, to, kind| Stretch { from, to, kind };
    let waits = (began > 0.0).then(|| stretch(0.0, began, WAITS));
    Lane {
        label,
        stretches: waits
            .into_iter()
            .chain([stretch(began, ended, RUNS)])
            .collect(),
        marks: vec![began, ended],
        note: format!("{:.1} s", ended - began),
        bad: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_plan::figures::tests::round;

    #[test]
    fn a_page_says_what_it_stands_on_and_has_a_lane_for_each_job() {
        let found = Calibration {
            all_cores: 5_000.0,
            alone_p95_us: 300,
            slo_us: 900,
            sizes: [12, 3, 4, 5, 6, 7],
        };
        let mut bad = round(Way::AtOnce);
        bad.courses[0].ended_ms.clear();
        let html = page(
            &[round(Way::Across), bad],
            &found,
            0.01,
            "cargo xtask static-plan",
        )
        .html();
        for part in [
            "are this one machine",
            "900 µs",
            "1250 requests a second",
            "eight, core 1: canneal (stress-ng, skip list)",
            "did not run once and well",
            "DOES NOT HOLD: every job ran once",
        ] {
            assert!(html.contains(part), "no {part}");
        }
        assert!(!html.contains("the way apart"));
    }
}
