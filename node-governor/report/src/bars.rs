// SPDX-License-Identifier: Apache-2.0
//! Bars: a few numbers side by side, from zero.

use crate::axis::number;
use crate::markup::{Parts, coordinate, escape, legend};
use crate::plot::COLOURS;

/// Lying bars, one group a row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bars {
    /// Above the bars.
    pub title: String,
    /// What the numbers are, with their unit: `p99 wait / ms`.
    pub label: String,
    /// Names of the bars of each group, in order; empty when each row has one bar.
    pub series: Vec<String>,
    /// The groups, from top to bottom.
    pub rows: Vec<BarRow>,
    /// Below the bars: what to see in them.
    pub caption: String,
}

/// One group of bars.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BarRow {
    /// Name of the group.
    pub label: String,
    /// One value per series; what is not finite is shown as "no data".
    pub values: Vec<f64>,
}

impl Bars {
    pub(crate) fn parts(&self) -> Parts<'_> {
        let swatch = |n: usize| format!("<i class=\"swatch b{}\"></i>", n % COLOURS);
        Parts {
            kind: "bars",
            title: &self.title,
            legend: legend(self.series.iter().map(String::as_str), swatch),
            body: self.body(),
            caption: &self.caption,
        }
    }

    fn body(&self) -> String {
        let values = || self.rows.iter().flat_map(|row| row.values.iter().copied());
        if !values().any(f64::is_finite) {
            return "<p class=\"empty\">no data</p>\n".to_owned();
        }
        let finite = || values().filter(|value| value.is_finite());
        let low = finite().fold(0.0, f64::min);
        let high = finite().fold(0.0, f64::max);
        let width = if low == high { 1.0 } else { high - low };
        let share = |value: f64| 100.0 * (value - low) / width;
        let rows: String = self.rows.iter().map(|row| group(row, share)).collect();
        let label = escape(&self.label);
        format!("<div class=\"y-label\">{label}</div><div class=\"groups\">\n{rows}</div>\n")
    }
}

fn group(row: &BarRow, share: impl Fn(f64) -> f64) -> String {
    let bar = |(n, value): (usize, &f64)| {
        if !value.is_finite() {
            return format!(
                "<div class=\"bar\"><span style=\"left:{}%\">no data</span></div>",
                coordinate(share(0.0))
            );
        }
        let (from, to) = (share(value.min(0.0)), share(value.max(0.0)));
        format!(
            "<div class=\"bar\"><i class=\"b{}\" style=\"left:{}%;width:{}%\"></i><span style=\"left:{}%\">{}</span></div>",
            n % COLOURS,
            coordinate(from),
            coordinate(to - from),
            coordinate(to),
            number(*value, decimals(*value)),
        )
    };
    format!(
        "<div class=\"group-label\">{}</div><div class=\"group\">{}</div>\n",
        escape(&row.label),
        row.values.iter().enumerate().map(bar).collect::<String>(),
    )
}

/// Decimals that leave three digits that count.
fn decimals(value: f64) -> usize {
    if value == 0.0 || value.fract() == 0.0 {
        return 0;
    }
    (2.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(values: &[f64]) -> String {
        let row = BarRow {
            label: "a < b".to_owned(),
            values: values.to_vec(),
        };
        Bars {
            rows: vec![row],
            ..Bars::default()
        }
        .parts()
        .figure()
    }

    #[test]
    fn bars_start_at_zero_even_when_some_are_negative() {
        let html = bars(&[-10.0, 30.0]);
        assert!(
            html.contains("left:0%;width:25%") && html.contains("left:25%;width:75%"),
            "{html}"
        );
        assert!(html.contains("−10<") && html.contains("a &lt; b"));
    }

    #[test]
    fn missing_values_say_so() {
        assert_eq!(bars(&[f64::NAN, 1.0]).matches("no data").count(), 1);
        assert_eq!(bars(&[f64::NAN]).matches("no data").count(), 1);
        assert_eq!(bars(&[]).matches("no data").count(), 1);
    }

    #[test]
    fn values_show_three_digits_that_count() {
        let shown = [0.012345, 1.5, 123.456, 0.0, 7.0].map(|v| number(v, decimals(v)));
        assert_eq!(shown, ["0.0123", "1.50", "123", "0", "7"]);
    }
}
