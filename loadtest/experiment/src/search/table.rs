// SPDX-License-Identifier: Apache-2.0
//! The figures as Markdown.

use clap::ValueEnum;
use weir_report::{Spread, Table};

use super::figures::{MEASURES, beside_pure, over_rounds};
use super::queries::Load;
use super::rounds::Round;
use super::way::Way;
use crate::variant::Variant;

/// One table a load: milliseconds of each way, and their ratio to `pure`.
#[must_use]
pub fn markdown(rounds: &[Round]) -> String {
    let of_load = |load: Load| {
        let ratios = MEASURES.map(|(name, _)| format!("{name} ÷ pure"));
        let names = MEASURES.map(|(name, _)| name.to_owned());
        let ways = Way::value_variants().iter();
        let table = Table {
            header: [vec![format!("{load}, ms")], names.into(), ratios.into()].concat(),
            rows: ways.filter_map(|way| row(rounds, load, *way)).collect(),
        };
        table.markdown() + "\n"
    };
    Load::ALL.map(of_load).concat()
}

/// None of a way that was not measured.
fn row(rounds: &[Round], load: Load, way: Way) -> Option<Vec<String>> {
    let figures = MEASURES.map(|(_, measure)| over_rounds(rounds, load, way, measure));
    if figures.iter().all(Option::is_none) {
        return None;
    }
    let ratios = MEASURES.map(|(_, measure)| match way {
        Way::Pure => None,
        _ => beside_pure(rounds, load, way, measure),
    });
    let cell = |figure: Option<Spread>, unit: f64, places: usize| {
        figure.map_or_else(String::new, |figure| {
            let [median, least, most] =
                [figure.median, figure.least, figure.most].map(|value| value / unit);
            format!("{median:.places$} ({least:.places$}–{most:.places$})")
        })
    };
    let figures = figures.map(|figure| cell(figure, 1e3, 2));
    let ratios = ratios.map(|ratio| cell(ratio, 1.0, 3));
    Some([vec![way.name()], figures.into(), ratios.into()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_that_was_not_measured_has_no_row_and_pure_no_ratio() {
        let round = |way, us| Round {
            load: Load::Mixed,
            way,
            p50_us: us,
            p95_us: us,
            p99_us: us,
            mean_us: us,
            cpu_us: us,
            ..Round::default()
        };
        let text = markdown(&[round(Way::Pure, 2_000.0), round(Way::Instrumented, 2_100.0)]);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("2.")).collect();
        assert_eq!(rows.len(), 2, "{text}");
        assert!(rows[0].starts_with("| pure | 2.00 (2.00–2.00) |"), "{text}");
        assert!(rows[0].ends_with("|  |  |  |  |  |"), "{text}");
        assert!(rows[1].ends_with("| 1.050 (1.050–1.050) |"), "{text}");
        assert!(!text.contains("scheduled"));
    }
}
