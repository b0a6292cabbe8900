// SPDX-License-Identifier: Apache-2.0
//! Plots: lines, steps and points over two axes.
//!
//! Only the drawing is SVG, stretched to the space there is; its strokes keep their width
//! (`non-scaling-stroke`). Labels are HTML beside it, placed in percent, so that they keep their
//! size on a phone.

mod marks;

pub use marks::VerticalMark;

use crate::axis::{Axis, Span, Tick, number};
use crate::markup::{Parts, coordinate, escape, legend};
use crate::points::thin;

/// Points drawn of a series at most: about two per pixel column of a wide screen.
const DRAWN: usize = 1500;
/// Colours of series; after these the strokes change too.
pub(crate) const COLOURS: usize = 7;
/// Kinds of stroke: solid, dashed, dotted.
const STROKES: usize = 3;

/// How the points of a series are joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Style {
    /// Straight from point to point.
    #[default]
    Line,
    /// Each value holds until the next point: distributions, queue lengths.
    Step,
    /// Not at all.
    Points,
}

/// One named line of a plot.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// `(x, y)` in drawing order. What is not finite, or not above 0 on a logarithmic axis, leaves
    /// a gap, and the plot says how many were left out. Long series are [thinned](crate::thin).
    pub points: Vec<(f64, f64)>,
    /// How the points are joined.
    pub style: Style,
}

/// Series over two axes. Up to 21 series are told apart; beyond 8 it is hard to read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plot {
    /// Above the plot.
    pub title: String,
    /// The axis to the right.
    pub x: Axis,
    /// The axis upwards.
    pub y: Axis,
    /// What is drawn, later ones on top.
    pub series: Vec<Series>,
    /// Named places on the x axis.
    pub marks: Vec<VerticalMark>,
    /// Below the plot: what to see in it.
    pub caption: String,
}

impl Plot {
    pub(crate) fn parts(&self) -> Parts<'_> {
        let names = self.series.iter().map(|series| series.name.as_str());
        Parts {
            kind: "plot",
            title: &self.title,
            legend: legend(names, |n| swatch(n, self.series[n].style)),
            body: self.frame() + &self.left_out(),
            caption: &self.caption,
        }
    }

    fn frame(&self) -> String {
        let Some((x, y)) = self.spans() else {
            return "<p class=\"empty\">no data</p>\n".to_owned();
        };
        let y_ticks = y.ticks();
        let longest = y_ticks.iter().map(|tick| tick.label.chars().count()).max();
        format!(
            "<div class=\"frame\">\n<div class=\"y-label\">{y_label}</div>\n{marks}\
             <div class=\"y\" style=\"width:{y_width}ch\">{y_ticks}</div>\n{drawing}\
             <div class=\"x\">{x_ticks}</div>\n<div class=\"x-label\">{x_label}</div>\n</div>\n",
            y_label = escape(&self.y.label),
            x_label = escape(&self.x.label),
            marks = marks::labels(&self.marks, &x),
            y_width = longest.unwrap_or(0) + 1,
            y_ticks = tick_labels(&y_ticks, "bottom"),
            x_ticks = tick_labels(&x.ticks(), "left"),
            drawing = self.drawing(&x, &y),
        )
    }

    /// What the axes show; `None` without a point to draw.
    fn spans(&self) -> Option<(Span, Span)> {
        let shown: Vec<_> = self.points().filter(|point| self.holds(*point)).collect();
        shown.first()?;
        let marks = self.marks.iter().map(|mark| mark.x);
        let x = self.x.span(shown.iter().map(|p| p.0).chain(marks), false)?;
        let sighted = shown.iter().filter(|p| x.shows(p.0)).map(|p| p.1);
        let all = || self.y.span(shown.iter().map(|p| p.1), true);
        let y = self.y.span(sighted, true).or_else(all)?;
        Some((x, y))
    }

    fn drawing(&self, x: &Span, y: &Span) -> String {
        let clip = if self.x.range.is_some() || self.y.range.is_some() {
            " clip"
        } else {
            ""
        };
        let across = x
            .ticks()
            .into_iter()
            .map(|tick| format!("M{} 0V1000", coordinate(1000.0 * tick.at)));
        let along = y
            .ticks()
            .into_iter()
            .map(|tick| format!("M0 {}H1000", coordinate(1000.0 - 1000.0 * tick.at)));
        let grid: String = across.chain(along).collect();
        let marks = self.marks.iter().filter(|mark| x.shows(mark.x));
        let marks: String = marks
            .map(|mark| format!("M{} 0V1000", coordinate(1000.0 * x.place(mark.x))))
            .collect();
        let series: String = self
            .series
            .iter()
            .enumerate()
            .map(|(n, series)| self.path(n, series, x, y))
            .collect();
        format!(
            "<svg class=\"drawing{clip}\" viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{title}\">\n\
             <path class=\"grid\" d=\"{grid}\"/>\n<path class=\"mark\" d=\"{marks}\"/>\n{series}</svg>\n",
            title = escape(&self.title),
        )
    }

    fn path(&self, n: usize, series: &Series, x: &Span, y: &Span) -> String {
        let near = near(&series.points, x);
        let near_len = near.len().max(1);
        let mut d = String::new();
        for run in near.split(|point| !self.holds(*point)) {
            let share = (DRAWN * run.len()).div_ceil(near_len);
            let drawn = thin(run, share);
            let placed = drawn
                .iter()
                .map(|p| (sheet(x.place(p.0)), sheet(1.0 - y.place(p.1))));
            d.push_str(&stroke(placed, series.style));
        }
        let kind = if series.style == Style::Points {
            " points"
        } else {
            ""
        };
        format!(
            "<path class=\"series s{} d{}{kind}\" d=\"{d}\"><title>{}</title></path>\n",
            n % COLOURS,
            n / COLOURS % STROKES,
            escape(&series.name),
        )
    }

    fn left_out(&self) -> String {
        let points = match self.points().filter(|point| !self.holds(*point)).count() {
            0 => return String::new(),
            1 => "1 point is".to_owned(),
            n => format!("{} points are", number(n as f64, 0)),
        };
        format!(
            "<p class=\"left-out\">{points} left out: missing, or without a place on these axes.</p>\n"
        )
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.series
            .iter()
            .flat_map(|series| series.points.iter().copied())
    }

    fn holds(&self, (x, y): (f64, f64)) -> bool {
        self.x.holds(x) && self.y.holds(y)
    }
}

/// The points in sight along x and their neighbours, so that a close look is not thinned with
/// what lies outside it.
fn near(points: &[(f64, f64)], x: &Span) -> Vec<(f64, f64)> {
    let inside: Vec<bool> = points
        .iter()
        .map(|p| !p.0.is_finite() || x.shows(p.0))
        .collect();
    let around = |n: usize| inside[n.saturating_sub(1)..inside.len().min(n + 2)].contains(&true);
    (0..points.len())
        .filter(|n| around(*n))
        .map(|n| points[n])
        .collect()
}

/// A share of the axis on the sheet of 1000 units, not so far out that renderers lose precision.
fn sheet(share: f64) -> f64 {
    (1000.0 * share).clamp(-1e6, 1e6)
}

fn stroke(points: impl Iterator<Item = (f64, f64)>, style: Style) -> String {
    let mut d = String::new();
    for (n, (x, y)) in points.enumerate() {
        let (x, y) = (coordinate(x), coordinate(y));
        d.push_str(&match (style, n) {
            // A stroke without length is a dot: it has round ends.
            (Style::Points, _) | (_, 0) => format!("M{x} {y}h0"),
            (Style::Line, _) => format!("L{x} {y}"),
            (Style::Step, _) => format!("H{x}V{y}"),
        });
    }
    d
}

fn swatch(n: usize, style: Style) -> String {
    let (kind, d) = match style {
        Style::Points => (" points", "M14 5h0"),
        Style::Line | Style::Step => ("", "M2 5h24"),
    };
    format!(
        "<svg class=\"swatch\" viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"series s{} d{}{kind}\" d=\"{d}\"/></svg>",
        n % COLOURS,
        n / COLOURS % STROKES,
    )
}

pub(crate) fn tick_labels(ticks: &[Tick], side: &str) -> String {
    let label = |tick: &Tick| {
        let faint = if tick.faint { " class=\"faint\"" } else { "" };
        let at = coordinate(100.0 * tick.at);
        format!("<span{faint} style=\"{side}:{at}%\">{}</span>", tick.label)
    };
    ticks.iter().map(label).collect()
}

#[cfg(test)]
#[path = "plot/tests.rs"]
mod tests;
