// SPDX-License-Identifier: Apache-2.0
//! The figures as rows of cells.

use clap::ValueEnum;
use weir_report::Table;
use weir_sim::colocation::Params;
use weir_sim::colocation::part3::Written;
use weir_sim::colocation::published::{PART3_NAIVE_S, PART3_TOTAL_S};

use crate::static_plan::figures::{Mean, of, of_job};
use crate::static_plan::jobs::{published_s, stand_in};
use crate::static_plan::rounds::Round;
use crate::static_plan::way::{NODES, Way, ends};
use crate::variant::Variant;

const WAYS: [&str; 10] = [
    "way",
    "core of memcached, four, eight",
    "all jobs ended after / s",
    "by their CPU time alone / s",
    "p95 above the SLO",
    "p95 above 2 ms",
    "p95 / ms",
    "requests served / s",
    "document 004 / s",
    "simulated / s",
];
const JOBS: [&str; 9] = [
    "way",
    "node",
    "job",
    "stand-in",
    "waits for",
    "began after / s",
    "later than the last of those by / s",
    "took / s",
    "document 004 / s",
];

/// A row for each way that was run. `scale` is the CPU time of a job for each second of document 004.
#[must_use]
pub fn ways(rounds: &[Round], scale: f64) -> Table {
    let row = |way: &Way| {
        let figures = of(rounds, *way)?;
        let cores = NODES.map(|node| way.core(node).to_string()).join(", ");
        let alone = ends(*way, &|job| scale * published_s(job));
        let (published, simulated) = beside(*way).unzip();
        Some(vec![
            way.name(),
            cores,
            told(figures.makespan_s),
            format!("{:.1}", alone.into_iter().fold(0.0, f64::max)),
            figures.violations.to_string(),
            figures.document_violations.to_string(),
            format!("{:.2}", figures.p95_ms),
            format!("{:.0}", figures.served_qps),
            published.map_or("–".to_owned(), |s| format!("{s:.0}")),
            simulated.map_or("–".to_owned(), |s| format!("{s:.1}")),
        ])
    };
    let rows: Vec<_> = Way::value_variants().iter().filter_map(row).collect();
    Table::new(WAYS, rows)
}

/// The same plan in document 004 and in the simulator, on nodes of 4 and 8 cores.
fn beside(way: Way) -> Option<(f64, f64)> {
    let (published, written) = match way {
        Way::Document => (PART3_TOTAL_S, Written::document()),
        Way::AtOnce => (PART3_NAIVE_S, Written::document().at_once()),
        Way::Across | Way::Apart => return None,
    };
    Some((published, written.play(&Params::default()).total_s))
}

/// A row for each job of each way.
#[must_use]
pub fn jobs(rounds: &[Round]) -> Table {
    let mut rows = Vec::new();
    for way in Way::value_variants() {
        for step in way.steps() {
            let Some(figures) = of_job(rounds, *way, &step) else {
                continue;
            };
            rows.push(vec![
                way.name(),
                step.node.to_owned(),
                step.job.to_owned(),
                stand_in(step.job).map_or(String::new(), |program| program.name()),
                step.after.join(", "),
                told(figures.began_s),
                figures.later_s.map_or("–".to_owned(), told),
                told(figures.took_s),
                format!("{:.2}", published_s(step.job)),
            ]);
        }
    }
    Table::new(JOBS, rows)
}

fn told(Mean { mean, deviation }: Mean) -> String {
    format!("{mean:.2} ± {deviation:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_plan::figures::tests::round;

    #[test]
    fn a_way_has_a_row_and_one_for_each_of_its_jobs() {
        let rounds = [round(Way::Document), round(Way::Apart)];
        let text = ways(&rounds, 0.01).markdown();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        let document = "| document | 0, 0, 1 | 4.00 ± 0.00 | 3.9 | 100.0 % (2 of 2) | 50.0 % (1 of 2) | 2.00 | 10 | 325 | 326.2 |";
        assert_eq!(lines[2], document);
        assert!(
            lines[3].starts_with("| apart | 0, 1, 1 |") && lines[3].ends_with("| – | – |"),
            "{text}"
        );
        let text = jobs(&rounds).markdown();
        assert_eq!(text.lines().count(), 2 + 12, "{text}");
        assert!(
            text.contains("| document | four | dedup | zstd | ferret | 1.00 ± 0.00 | 0.00 ± 0.00 | 1.00 ± 0.00 | 22.33 |"),
            "{text}"
        );
    }
}
