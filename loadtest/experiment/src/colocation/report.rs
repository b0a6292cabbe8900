// SPDX-License-Identifier: Apache-2.0
//! The run as one page: what was set, the table, the verdicts, and the timeline of one round.

use clap::ValueEnum;
use weir_report::{Axis, BarRow, Bars, Figure, Panels, Plot, Report, Series, Strip, Strips, Style};
use weir_stage::machine;

use crate::colocation::calibration::Calibration;
use crate::colocation::figures::{intervals, of};
use crate::colocation::rounds::Round;
use crate::colocation::table;
use crate::colocation::verdict::verdicts;
use crate::colocation::way::Way;
use crate::variant::Variant;

/// How a strip is cut.
const STRETCH_S: f64 = 0.1;

/// The page. The timeline is of the rounds with the shortest interval.
#[must_use]
pub fn page(rounds: &[Round], found: &Calibration, jobs: &[&str], command: &str) -> Report {
    let mut report = Report::new(
        "memcached beside batch jobs",
        "who has the cores, six ways in one run",
    );
    report.command(command);
    report.facts(&facts(found));
    report.heading("SLO violations and batch completion");
    report.table(&table::table(rounds));
    let lines: Vec<String> = verdicts(rounds)
        .into_iter()
        .map(|verdict| verdict.to_string())
        .collect();
    report.list(&lines);
    report.panels(&bars(rounds));
    if let Some(shortest) = intervals(rounds).last() {
        report.heading(&format!("A round whose load steps every {shortest} s"));
        let limit = found.slo_us as f64 / 1e3;
        for &way in Way::value_variants() {
            let of_way = |round: &&Round| round.way == way && round.interval_s == *shortest;
            if let Some(round) = rounds.iter().find(of_way) {
                timeline(&mut report, round, jobs, limit);
            }
        }
    }
    report
}

fn facts(found: &Calibration) -> Vec<(&'static str, String)> {
    let rates = |(least, most): (f64, f64)| {
        format!("{least:.0} to {most:.0} requests of 100 keys a second")
    };
    vec![
        ("machine", machine::describe()),
        (
            "memcached on all cores carries",
            format!("{:.0} requests of 100 keys a second", found.all_cores),
        ),
        ("light load", rates(found.light())),
        ("heavy load", rates(found.heavy())),
        (
            "SLO",
            format!(
                "an interval's p95 up to {} µs, three times the {} µs of memcached alone at the heavy load",
                found.slo_us, found.alone_p95_us
            ),
        ),
        (
            "jobs",
            format!(
                "stress-ng {} operations, x264 {} frames, zstd {} bytes",
                found.sizes.operations, found.sizes.frames, found.sizes.bytes
            ),
        ),
    ]
}

fn bars(rounds: &[Round]) -> Panels {
    let names: Vec<String> = Way::value_variants().iter().map(Variant::name).collect();
    let of_measure =
        |title: &str,
         label: &str,
         measure: &dyn Fn(&crate::colocation::figures::Figures) -> f64| {
            let row = |interval: &f64| BarRow {
                label: format!("{interval} s"),
                values: Way::value_variants()
                    .iter()
                    .map(|way| of(rounds, *way, Some(*interval)).map_or(f64::NAN, |f| measure(&f)))
                    .collect(),
            };
            Figure::Bars(Bars {
                title: title.to_owned(),
                label: label.to_owned(),
                series: names.clone(),
                rows: intervals(rounds).iter().map(row).collect(),
                caption: String::new(),
            })
        };
    Panels {
        figures: vec![
            of_measure("Violations", "share of intervals / %", &|f| {
                100.0 * f.all().share()
            }),
            of_measure("Batch", "until the last job has ended / s", &|f| f.batch_s),
        ],
        ..Panels::default()
    }
}

fn timeline(report: &mut Report, round: &Round, jobs: &[&str], limit_ms: f64) {
    let end = round.load_s.max(round.batch_s);
    let figures = || {
        [&round.light, &round.heavy]
            .into_iter()
            .flat_map(|part| part.figures.iter().map(|figures| (part.start_s, figures)))
    };
    let stepped = |value: &dyn Fn(&weir_memcached_load::interval::Figures) -> f64| {
        figures()
            .flat_map(|(start, figures)| {
                let from = start + figures.start_s;
                let value = value(figures);
                [(from, value), (from + figures.length_s, value)]
            })
            .collect()
    };
    report.fold(&round.way.name(), |report| {
        report.plot(&Plot {
            title: format!("{}: requests and their p95", round.way.name()),
            x: Axis::linear("time / s").range(0.0, end),
            y: Axis::log("p95 / ms, thousand requests / s"),
            series: vec![
                series(
                    "p95",
                    stepped(&|f| f.latency.p95_us.map_or(f64::NAN, |us| us as f64 / 1e3)),
                ),
                series("SLO", vec![(0.0, limit_ms), (end, limit_ms)]),
                series("requests asked for", stepped(&|f| f.target_qps / 1e3)),
                series("requests served", stepped(&|f| f.achieved_qps / 1e3)),
            ],
            caption: "Where p95 has a gap, more than 5 of 100 requests had no good answer."
                .to_owned(),
            ..Plot::default()
        });
        report.strips(&strips(round, jobs, end));
    });
}

fn series(name: &str, points: Vec<(f64, f64)>) -> Series {
    Series {
        name: name.to_owned(),
        points,
        style: Style::Step,
    }
}

/// memcached's cores, and whether each job runs.
fn strips(round: &Round, jobs: &[&str], end: f64) -> Strips {
    let stretches = (end / STRETCH_S).ceil() as usize;
    let values = |of: &dyn Fn(&crate::colocation::samples::Sample) -> f64| {
        let mut values = vec![f64::NAN; stretches];
        for pair in round.samples.windows(2) {
            let place = |at_s: f64| ((at_s / STRETCH_S) as usize).min(stretches);
            let (from, to) = (place(pair[0].at_s), place(pair[1].at_s));
            values[from..to.max(from)].fill(of(&pair[0]));
        }
        values
    };
    let mut rows = vec![Strip {
        label: "memcached's cores".to_owned(),
        values: values(&|sample| sample.service as f64),
    }];
    for (index, job) in jobs.iter().enumerate() {
        rows.push(Strip {
            label: (*job).to_owned(),
            values: values(&|sample| match sample.jobs.get(index) {
                Some(0) | None => f64::NAN,
                Some(state) => f64::from(*state),
            }),
        });
    }
    Strips {
        title: format!("{}: who has the cores", round.way.name()),
        x: Axis::linear("time / s").range(0.0, end),
        rows,
        steps: vec![2.0],
        unit: "cores of memcached; of a job 1 is paused, 2 runs".to_owned(),
        caption: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colocation::figures::tests::round;
    use crate::colocation::jobs::Sizes;
    use crate::colocation::samples::Sample;

    #[test]
    fn a_page_has_a_timeline_of_every_way_that_was_run() {
        let found = Calibration {
            all_cores: 5_000.0,
            alone_p95_us: 300,
            slo_us: 1_500,
            sizes: Sizes {
                operations: 1,
                frames: 2,
                bytes: 3,
            },
        };
        let sample = |at_s, service, job| Sample {
            at_s,
            service,
            jobs: vec![job],
        };
        let mut blocks = round(Way::Blocks, 3.0, [0, 1], 70.0);
        blocks.samples = vec![
            sample(0.0, 2, 0),
            sample(1.0, 1, 2),
            sample(5.0, 2, 1),
            sample(9.0, 2, 0),
        ];
        let rounds = [round(Way::NoGovernor, 3.0, [5, 5], 60.0), blocks];
        let html = page(&rounds, &found, &["zstd"], "cargo xtask colocation").html();
        for part in [
            "who has the cores",
            "no-governor",
            "blocks",
            "1500 µs",
            "holds: blocks violates less",
        ] {
            assert!(html.contains(part), "no {part}");
        }
        assert!(!html.contains("<summary>latency_slack"));
    }

    #[test]
    fn a_strip_holds_what_was_seen_until_the_next_look() {
        let mut one = round(Way::Blocks, 3.0, [0, 0], 0.5);
        one.load_s = 0.4;
        one.samples = [(0.0, 2), (0.11, 0), (0.31, 1), (0.45, 1)]
            .map(|(at_s, job)| Sample {
                at_s,
                service: 1,
                jobs: vec![job],
            })
            .to_vec();
        let strips = strips(&one, &["a"], 0.5);
        let shown: Vec<String> = strips.rows[1].values.iter().map(f64::to_string).collect();
        assert_eq!(shown, ["2", "NaN", "NaN", "1", "NaN"]);
    }
}
