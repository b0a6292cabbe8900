// SPDX-License-Identifier: Apache-2.0
//! Named places on the x axis and where their labels fit.

use crate::axis::Span;
use crate::markup::{coordinate, escape};

/// A named place on the x axis: a change of rate, a fault, a limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VerticalMark {
    /// Where it is.
    pub x: f64,
    /// What is there, in few words.
    pub label: String,
}

/// Width of a letter of a mark's label as a share of the narrowest drawing, that of a phone.
const LABEL_CHARACTER: f64 = 6.5 / 300.0;
/// Height of a row of marks' labels in em.
const LABEL_ROW: f64 = 1.35;

/// The labels of the marks in sight, in as many rows above the drawing as they need.
pub(super) fn labels(marks: &[VerticalMark], x: &Span) -> String {
    let marks = marks.iter().filter(|mark| x.shows(mark.x));
    let mut labels: Vec<_> = marks.map(|mark| Label::new(mark, x)).collect();
    labels.sort_by(|a, b| a.from.total_cmp(&b.from));
    // Each goes to the first row whose last label ends before it.
    let mut ends: Vec<f64> = Vec::new();
    let mut spans = String::new();
    for label in &labels {
        let row = ends.iter().position(|end| *end <= label.from);
        let row = row.unwrap_or(ends.len());
        ends.resize(ends.len().max(row + 1), 0.0);
        ends[row] = label.from + label.width;
        spans.push_str(&label.html(row));
    }
    if spans.is_empty() {
        return spans;
    }
    let height = coordinate(LABEL_ROW * ends.len() as f64);
    format!("<div class=\"marks\" style=\"height:{height}em\">{spans}</div>\n")
}

/// The label of a mark, in shares of the x axis. It runs from its mark away from the nearer end.
struct Label<'a> {
    text: &'a str,
    at: f64,
    from: f64,
    width: f64,
}

impl<'a> Label<'a> {
    fn new(mark: &'a VerticalMark, x: &Span) -> Self {
        let at = x.place(mark.x);
        let letters = mark.label.chars().count() as f64;
        let width = (letters * LABEL_CHARACTER).min(at.max(1.0 - at));
        let from = if at <= 0.5 { at } else { at - width };
        Self {
            text: &mark.label,
            at,
            from,
            width,
        }
    }

    fn html(&self, row: usize) -> String {
        let (side, start) = if self.at <= 0.5 {
            ("left", self.at)
        } else {
            ("right", 1.0 - self.at)
        };
        let label = escape(self.text);
        format!(
            "<span class=\"{side}\" title=\"{label}\" style=\"{side}:{}%;top:{}em;max-width:{}%\">{label}</span>",
            coordinate(100.0 * start),
            coordinate(LABEL_ROW * row as f64),
            coordinate(100.0 * (1.0 - start)),
        )
    }
}
