// SPDX-License-Identifier: Apache-2.0
//! The figures as rows of cells.

use clap::ValueEnum;
use weir_report::Table;

use crate::colocation::figures::{Figures, intervals, of};
use crate::colocation::rounds::Round;
use crate::colocation::way::Way;
use crate::variant::Variant;

const HEADER: [&str; 10] = [
    "load steps every",
    "way",
    "violations, light",
    "violations, heavy",
    "violations",
    "p95, light / ms",
    "p95, heavy / ms",
    "requests served / s",
    "batch done after / s",
    "load lasted / s",
];

/// A row for each way and interval, and for each way over all.
#[must_use]
pub fn table(rounds: &[Round]) -> Table {
    let mut rows = Vec::new();
    let steps = intervals(rounds);
    let each = steps
        .iter()
        .map(|interval| (format!("{interval} s"), Some(*interval)));
    let over_all = (steps.len() > 1).then(|| ("all".to_owned(), None));
    for (name, interval) in each.chain(over_all) {
        for &way in Way::value_variants() {
            rows.extend(of(rounds, way, interval).map(|figures| row(&name, way, &figures)));
        }
    }
    Table::new(HEADER, rows)
}

fn row(steps: &str, way: Way, figures: &Figures) -> Vec<String> {
    vec![
        steps.to_owned(),
        way.name(),
        figures.light.to_string(),
        figures.heavy.to_string(),
        figures.all().to_string(),
        format!("{:.2}", figures.light_p95_ms),
        format!("{:.2}", figures.heavy_p95_ms),
        format!("{:.0}", figures.served_qps),
        format!("{:.1}", figures.batch_s),
        format!("{:.1}", figures.load_s),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colocation::figures::tests::round;

    #[test]
    fn there_is_a_row_for_each_way_and_interval_and_one_over_all() {
        let rounds = [
            round(Way::NoGovernor, 10.0, [1, 2], 50.0),
            round(Way::NoGovernor, 3.0, [0, 4], 60.0),
            round(Way::Blocks, 3.0, [0, 0], 70.0),
        ];
        let text = table(&rounds).markdown();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 5, "{text}");
        assert_eq!(lines[1], "|---|---|---|---|---|---|---|---|---|---|");
        assert!(
            lines[2].starts_with("| 10 s | no-governor | 10.0 % (1 of 10) |"),
            "{text}"
        );
        assert!(
            lines[4].starts_with("| 3 s | blocks | 0.0 % (0 of 10) |"),
            "{text}"
        );
        assert!(
            lines[5].contains("| 17.5 % (7 of 40) | 5.00 | 8.00 | 10 | 55.0 | 60.0 |"),
            "{text}"
        );
    }

    #[test]
    fn of_one_interval_there_is_no_sum() {
        let text = table(&[round(Way::Blocks, 3.0, [0, 0], 7.0)]).markdown();
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}
