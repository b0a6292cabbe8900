// SPDX-License-Identifier: Apache-2.0
//! Strips: how much there was of something over time, a strip for each thing, as shades.

use crate::axis::{Axis, number};
use crate::markup::{Parts, coordinate, escape, legend};
use crate::plot::tick_labels;
use crate::shade;

/// Strips under each other, cut into equal stretches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Strips {
    /// Above them.
    pub title: String,
    /// What their length stands for. Its range is needed.
    pub x: Axis,
    /// From top to bottom.
    pub rows: Vec<Strip>,
    /// Where each shade but the first begins, ascending; at most seven.
    pub steps: Vec<f64>,
    /// What the values are, for the legend: `requests in progress`.
    pub unit: String,
    /// Below them: what to see in them.
    pub caption: String,
}

/// One strip.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Strip {
    /// Its name.
    pub label: String,
    /// A value for each stretch of the range; what is not finite leaves a gap.
    pub values: Vec<f64>,
}

/// Height of a strip on the sheet; the rest of 10 is between it and the next.
const THICK: f64 = 8.6;

impl Strips {
    pub(crate) fn parts(&self) -> Parts<'_> {
        Parts {
            kind: "strips",
            title: &self.title,
            legend: self.legend(),
            body: self.body(),
            caption: &self.caption,
        }
    }

    fn legend(&self) -> String {
        let last = self.steps.len();
        let names: Vec<String> = (0..=last).map(|n| self.name(n)).collect();
        let swatch = |n| format!("<i class=\"swatch f{}\"></i>", shade::of_step(n, last));
        let unit = escape(&self.unit);
        format!(
            "<div class=\"y-label\">{unit}</div>\n{}",
            legend(names.iter().map(String::as_str), swatch)
        )
    }

    /// What the n-th shade stands for.
    fn name(&self, n: usize) -> String {
        let shown = |value: f64| number(value, if value.fract() == 0.0 { 0 } else { 1 });
        match (n, self.steps.get(n)) {
            (0, None) => "any".to_owned(),
            (0, Some(end)) => format!("under {}", shown(*end)),
            _ => format!("{}+", shown(self.steps[n - 1])),
        }
    }

    fn body(&self) -> String {
        let columns = self.rows.iter().map(|row| row.values.len()).max();
        let columns = columns.unwrap_or(0);
        let values = || self.rows.iter().flat_map(|row| &row.values);
        let ends = self.x.range.into_iter().flat_map(|(low, high)| [low, high]);
        let (Some(x), true) = (self.x.span(ends, false), values().any(|v| v.is_finite())) else {
            return "<p class=\"empty\">no data</p>\n".to_owned();
        };
        let rows = self.rows.len();
        let label = |(n, row): (usize, &Strip)| {
            let at = coordinate(100.0 * (n as f64 + THICK / 20.0) / rows as f64);
            format!("<span style=\"top:{at}%\">{}</span>", escape(&row.label))
        };
        let labels: String = self.rows.iter().enumerate().map(label).collect();
        let widest = self.rows.iter().map(|row| row.label.chars().count()).max();
        format!(
            "<div class=\"frame\">\n<div class=\"y\" style=\"width:{width}ch\">{labels}</div>\n\
             <svg class=\"drawing strip\" style=\"height:{height}em\" viewBox=\"0 0 {columns} {sheet}\" \
             preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{title}\">\n{shades}</svg>\n\
             <div class=\"x\">{x_ticks}</div>\n<div class=\"x-label\">{x_label}</div>\n</div>\n",
            width = widest.unwrap_or(0) + 1,
            height = coordinate(1.45 * rows as f64),
            sheet = 10 * rows,
            title = escape(&self.title),
            shades = self.shades(),
            x_ticks = tick_labels(&x.ticks(), "left"),
            x_label = escape(&self.x.label),
        )
    }

    /// A path for each shade: a rectangle for every stretch of equal ones.
    fn shades(&self) -> String {
        let mut paths = vec![String::new(); shade::SHADES];
        for (n, row) in self.rows.iter().enumerate() {
            let mut from = 0;
            for same in row.values.chunk_by(|a, b| self.shade(*a) == self.shade(*b)) {
                if let Some(shade) = self.shade(same[0]) {
                    let (top, width) = (10 * n, same.len());
                    paths[shade].push_str(&format!("M{from} {top}h{width}v{THICK}h-{width}z"));
                }
                from += same.len();
            }
        }
        let paths = paths.iter().enumerate().filter(|(_, d)| !d.is_empty());
        paths
            .map(|(n, d)| format!("<path class=\"fill f{n}\" d=\"{d}\"/>\n"))
            .collect()
    }

    fn shade(&self, value: f64) -> Option<usize> {
        let passed = self.steps.iter().filter(|step| value >= **step).count();
        value
            .is_finite()
            .then(|| shade::of_step(passed, self.steps.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strips(values: &[f64]) -> Strips {
        Strips {
            x: Axis::linear("time / s").range(0.0, 4.0),
            rows: vec![Strip {
                label: "a < b".to_owned(),
                values: values.to_vec(),
            }],
            steps: vec![1.0, 10.0],
            ..Strips::default()
        }
    }

    #[test]
    fn equal_neighbours_are_one_rectangle_and_a_missing_value_is_a_gap() {
        let body = strips(&[0.0, 0.5, f64::NAN, 20.0]).body();
        assert!(
            body.contains("<path class=\"fill f0\" d=\"M0 0h2v8.6h-2z\"/>"),
            "{body}"
        );
        assert!(body.contains("<path class=\"fill f7\" d=\"M3 0h1v8.6h-1z\"/>"));
        assert_eq!(body.matches("<path").count(), 2);
        assert!(body.contains("a &lt; b"));
    }

    #[test]
    fn the_legend_names_where_each_shade_begins() {
        let legend = strips(&[0.0]).legend();
        for name in ["under 1<", "1+<", "10+<"] {
            assert!(legend.contains(name), "{legend}");
        }
    }

    #[test]
    fn strips_of_nothing_say_so() {
        for values in [&[][..], &[f64::NAN]] {
            assert!(strips(values).body().contains("no data"));
        }
    }
}
