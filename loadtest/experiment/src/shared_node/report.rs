// SPDX-License-Identifier: Apache-2.0
//! The run as one page: what was set, the table, the verdicts, and the first round over time.

use clap::ValueEnum;
use weir_report::{Axis, Plot, Report, Series, Style};
use weir_stage::machine;

use crate::shared_node::calibration::Calibration;
use crate::shared_node::plan::Plan;
use crate::shared_node::rounds::Round;
use crate::shared_node::table;
use crate::shared_node::verdict::verdicts;
use crate::shared_node::way::Way;
use crate::variant::Variant;

/// The page; `command` is what makes it again.
#[must_use]
pub fn page(rounds: &[Round], plan: &Plan, found: Calibration, command: &str) -> Report {
    let mut report = Report::new(
        "A host that shares its node with a batch job",
        "what the mesh refuses, with the governor and without",
    );
    report.command(command);
    report.facts(&facts(plan, found));
    report.heading("Requests and batch");
    report.table(&table::table(rounds));
    let lines: Vec<String> = verdicts(rounds)
        .into_iter()
        .map(|verdict| verdict.to_string())
        .collect();
    report.list(&lines);
    report.heading("The first round over time");
    report.plot(&plot(
        rounds,
        plan,
        "Refused in each second",
        "requests",
        |round| refused(round, plan),
    ));
    report.plot(&plot(
        rounds,
        plan,
        "Cores of the service",
        "cores",
        |round| {
            let point =
                |sample: &crate::shared_node::rounds::Sample| (sample.at_s, sample.service as f64);
            round.samples.iter().map(point).collect()
        },
    ));
    report
}

fn facts(plan: &Plan, found: Calibration) -> Vec<(&'static str, String)> {
    let rate = |times: f64, part: std::time::Duration| {
        format!(
            "{:.1} jobs a second for {} s",
            times * found.one_core,
            part.as_secs()
        )
    };
    vec![
        (
            "machine",
            format!("{}; shared by all parts", machine::describe()),
        ),
        (
            "the host on core 0 alone",
            format!("{:.1} jobs a second", found.one_core),
        ),
        ("load", rate(plan.load, plan.over)),
        ("then", rate(plan.calm_load, plan.calm)),
        ("and again", rate(plan.load, plan.over)),
        ("rounds", plan.rounds.to_string()),
    ]
}

/// A line for each way of the first round.
fn plot(
    rounds: &[Round],
    plan: &Plan,
    title: &str,
    unit: &str,
    points: impl Fn(&Round) -> Vec<(f64, f64)>,
) -> Plot {
    let series = Way::value_variants().iter().filter_map(|way| {
        let round = rounds.iter().find(|round| round.way == *way)?;
        Some(Series {
            name: way.name(),
            points: points(round),
            style: Style::Step,
        })
    });
    Plot {
        title: title.to_owned(),
        x: Axis::linear("time / s").range(0.0, plan.length().as_secs_f64()),
        y: Axis::linear(unit),
        series: series.collect(),
        ..Plot::default()
    }
}

/// By the second in which they were due.
fn refused(round: &Round, plan: &Plan) -> Vec<(f64, f64)> {
    let mut counts = vec![0.0; plan.length().as_secs_f64().ceil() as usize];
    for at in &round.shed_at_s {
        if let Some(count) = counts.get_mut(*at as usize) {
            *count += 1.0;
        }
    }
    let counted = |(second, count)| (second as f64, count);
    counts.into_iter().enumerate().map(counted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_node::figures::Figures;
    use crate::shared_node::figures::tests::record;
    use crate::shared_node::reaction::Reaction;
    use crate::shared_node::rounds::Sample;
    use weir_replay::record::Outcome;

    fn round(way: Way, outcomes: &[Outcome]) -> Round {
        let records = outcomes.iter().map(|outcome| record(3, *outcome, 5));
        let records: Vec<_> = records.collect();
        Round {
            repeat: 0,
            way,
            requests: Figures::of(&records, &Plan::QUICK),
            seconds: 17.0,
            service_cpu_s: 8.0,
            batch_cpu_s: 8.5,
            mesh_cpu_s: 1.0,
            moves: 3,
            reaction: Reaction::default(),
            capacity_from: "node".to_owned(),
            shed_at_s: vec![3.2, 3.9],
            samples: vec![Sample {
                at_s: 0.0,
                service: 2,
                batch_runs: true,
            }],
        }
    }

    #[test]
    fn a_page_has_the_ways_that_were_run_and_what_is_claimed_of_them() {
        let rounds = [
            round(Way::Static, &[Outcome::Shed, Outcome::Ok]),
            round(Way::GovernorMesh, &[Outcome::Ok, Outcome::Ok]),
        ];
        let found = Calibration {
            rules: 3,
            one_core: 50.0,
        };
        let html = page(&rounds, &Plan::QUICK, found, "cargo xtask shared-node").html();
        for part in [
            "65.0 jobs a second for 6 s",
            "holds: governor-mesh sheds 5 times fewer requests than static: 0 against 1",
        ] {
            assert!(html.contains(part), "no {part}");
        }
        assert!(!html.contains("than shared"));
    }

    #[test]
    fn what_is_refused_is_counted_in_its_second() {
        let counts = refused(&round(Way::Static, &[Outcome::Shed]), &Plan::QUICK);
        assert_eq!(counts.len(), 17);
        assert_eq!(counts[2..5], [(2.0, 0.0), (3.0, 2.0), (4.0, 0.0)]);
    }
}
