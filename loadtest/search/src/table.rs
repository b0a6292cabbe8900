// SPDX-License-Identifier: Apache-2.0
//! The figures as Markdown.

use std::fmt::Write;

use crate::figures::{MEASURES, Spread, beside_pure, over_rounds};
use crate::queries::Load;
use crate::rounds::Round;
use crate::way::Way;

/// One table a load: milliseconds of each way, and their ratio to `pure`.
#[must_use]
pub fn markdown(rounds: &[Round]) -> String {
    let mut text = String::new();
    for load in Load::ALL {
        let _ = write!(text, "| {load}, ms |");
        for (name, _) in MEASURES {
            let _ = write!(text, " {name} |");
        }
        for (name, _) in MEASURES {
            let _ = write!(text, " {name} ÷ pure |");
        }
        text.push_str("\n|---|");
        text.push_str(&"---|".repeat(2 * MEASURES.len()));
        text.push('\n');
        for way in Way::ALL {
            row(&mut text, rounds, load, way);
        }
        text.push('\n');
    }
    text
}

fn row(text: &mut String, rounds: &[Round], load: Load, way: Way) {
    let figures = MEASURES.map(|(_, measure)| over_rounds(rounds, load, way, measure));
    if figures.iter().all(Option::is_none) {
        return;
    }
    let _ = write!(text, "| {} |", way.name());
    for figure in figures {
        cell(text, figure, |figure| {
            let [median, least, most] =
                [figure.median, figure.least, figure.most].map(|us| us / 1e3);
            format!("{median:.2} ({least:.2}–{most:.2})")
        });
    }
    for (_, measure) in MEASURES {
        let ratio = (way != Way::Pure).then(|| beside_pure(rounds, load, way, measure));
        cell(text, ratio.flatten(), |ratio| {
            let Spread {
                median,
                least,
                most,
            } = ratio;
            format!("{median:.3} ({least:.3}–{most:.3})")
        });
    }
    text.push('\n');
}

fn cell(text: &mut String, figure: Option<Spread>, told: impl Fn(Spread) -> String) {
    let _ = write!(text, " {} |", figure.map(told).unwrap_or_default());
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
