// SPDX-License-Identifier: Apache-2.0
//! Lanes: what each of some things did when, as bars along time.

use crate::axis::{Axis, Span};
use crate::markup::{Parts, coordinate, escape, legend};
use crate::plot::{COLOURS, tick_labels};

/// Lanes under each other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lanes {
    /// Above them.
    pub title: String,
    /// What their length stands for. Its range is needed.
    pub x: Axis,
    /// What can be done. Colours repeat after seven that are not thin.
    pub kinds: Vec<Kind>,
    /// From top to bottom.
    pub rows: Vec<Lane>,
    /// Below them: what to see in them.
    pub caption: String,
}

/// Something that a thing may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kind {
    /// Its name in the legend.
    pub name: String,
    /// A grey line instead of a bar: a pause, a wait.
    pub thin: bool,
}

/// One thing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lane {
    /// Its name.
    pub label: String,
    /// What it did, in order and without overlap. Of stretches that are too short to be told apart the bar has the
    /// kind that took most of the time, and is as high as the share of it that no thin one took.
    pub stretches: Vec<Stretch>,
    /// Places that have a stroke: begin and end.
    pub marks: Vec<f64>,
    /// How it ended, in few words, beside the lane.
    pub note: String,
    /// It ended badly: the last mark and the note stand out.
    pub bad: bool,
}

/// Some time in which one thing was done.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stretch {
    /// It began there.
    pub from: f64,
    /// And ended there.
    pub to: f64,
    /// Position in the kinds.
    pub kind: usize,
}

/// Units of the sheet: of each lane, and of the whole along time.
const HIGH: f64 = 10.0;
const WIDE: f64 = 1000.0;
/// Of a bar, and of the line that stands for a thin one.
const THICK: f64 = 8.0;
const THIN: f64 = 1.4;
/// Bars have one of so many heights.
const LEVELS: f64 = 8.0;
/// Columns drawn of all lanes, and of one at most and at least.
const DRAWN: usize = 12_000;
const MOST: usize = 1000;
const LEAST: usize = 100;

/// What is drawn: from, to, kind, height as a share.
type Block = (f64, f64, usize, f64);

impl Lanes {
    pub(crate) fn parts(&self) -> Parts<'_> {
        let shown = |kind: usize| {
            self.rows
                .iter()
                .flat_map(|row| &row.stretches)
                .any(|s| s.kind == kind)
        };
        let names = self.kinds.iter().enumerate();
        // What never happened needs no name.
        let names = names.map(|(n, kind)| if shown(n) { kind.name.as_str() } else { "" });
        Parts {
            kind: "lanes",
            title: &self.title,
            legend: legend(names, |n| {
                format!("<i class=\"swatch {}\"></i>", self.class(n))
            }),
            body: self.body(),
            caption: &self.caption,
        }
    }

    /// Thin ones have no colour of their own.
    fn class(&self, kind: usize) -> String {
        let before = &self.kinds[..kind];
        match self.kinds[kind].thin {
            true => "thin".to_owned(),
            false => format!(
                "b{}",
                before.iter().filter(|kind| !kind.thin).count() % COLOURS
            ),
        }
    }

    fn body(&self) -> String {
        let ends = self.x.range.into_iter().flat_map(|(low, high)| [low, high]);
        let (Some(x), false) = (self.x.span(ends, false), self.rows.is_empty()) else {
            return "<p class=\"empty\">no data</p>\n".to_owned();
        };
        let rows = self.rows.len() as f64;
        let place = |n: usize| coordinate(100.0 * (n as f64 + 0.5) / rows);
        let names = self.rows.iter().enumerate().map(|(n, row)| {
            format!(
                "<span style=\"top:{}%\">{}</span>",
                place(n),
                escape(&row.label)
            )
        });
        let notes = self.rows.iter().enumerate().map(|(n, row)| {
            let bad = if row.bad { " class=\"bad\"" } else { "" };
            format!(
                "<span{bad} style=\"top:{}%\">{}</span>",
                place(n),
                escape(&row.note)
            )
        });
        let widest = |of: fn(&Lane) -> &str| {
            let widths = self.rows.iter().map(|row| of(row).chars().count());
            widths.max().unwrap_or(0) + 1
        };
        format!(
            "<div class=\"frame\">\n<div class=\"y\" style=\"width:{name}ch\">{names}</div>\n\
             <svg class=\"drawing lane\" style=\"height:{height}em\" viewBox=\"0 0 {WIDE} {sheet}\" \
             preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{title}\">\n{drawing}</svg>\n\
             <div class=\"notes\" style=\"width:{note}ch\">{notes}</div>\n\
             <div class=\"x\">{x_ticks}</div>\n<div class=\"x-label\">{x_label}</div>\n</div>\n",
            name = widest(|row| &row.label),
            names = names.collect::<String>(),
            note = widest(|row| &row.note),
            notes = notes.collect::<String>(),
            height = coordinate(1.75 * rows),
            sheet = HIGH * rows,
            title = escape(&self.title),
            drawing = self.drawing(&x),
            x_ticks = tick_labels(&x.ticks(), "left"),
            x_label = escape(&self.x.label),
        )
    }

    fn drawing(&self, x: &Span) -> String {
        let sheet = HIGH * self.rows.len() as f64;
        let grid = x.ticks().into_iter();
        let grid = grid.map(|tick| format!("M{} 0V{sheet}", coordinate(WIDE * tick.at)));
        let mut svg = format!(
            "<path class=\"grid\" d=\"{}\"/>\n",
            grid.collect::<String>()
        );
        for (kind, d) in self
            .bars(x)
            .iter()
            .enumerate()
            .filter(|(_, d)| !d.is_empty())
        {
            let name = escape(&self.kinds[kind].name);
            svg += &format!(
                "<path class=\"fill {}\" d=\"{d}\"><title>{name}</title></path>\n",
                self.class(kind)
            );
        }
        let (mut good, mut bad) = (String::new(), String::new());
        for (n, row) in self.rows.iter().enumerate() {
            for (mark, at) in row.marks.iter().enumerate().filter(|(_, at)| x.shows(**at)) {
                let top = HIGH * n as f64;
                let is_bad = row.bad && mark + 1 == row.marks.len();
                let marks = if is_bad { &mut bad } else { &mut good };
                *marks += &format!(
                    "M{} {}v{HIGH}",
                    coordinate(WIDE * x.place(*at)),
                    coordinate(top)
                );
            }
        }
        for (class, d) in [("edge", good), ("edge bad", bad)] {
            if !d.is_empty() {
                svg += &format!("<path class=\"{class}\" d=\"{d}\"/>\n");
            }
        }
        svg
    }

    /// A path for each kind.
    fn bars(&self, x: &Span) -> Vec<String> {
        let columns = (DRAWN / self.rows.len()).clamp(LEAST, MOST);
        let mut paths = vec![String::new(); self.kinds.len()];
        for (n, row) in self.rows.iter().enumerate() {
            for (from, to, kind, share) in self.blocks(row, x, columns) {
                let high = match self.kinds[kind].thin {
                    true => THIN,
                    false => (THICK * share).max(THIN),
                };
                let top = HIGH * n as f64 + (HIGH - high) / 2.0;
                let (at, wide) = (WIDE * from, WIDE * (to - from));
                let [at, top, wide, high] = [at, top, wide, high].map(coordinate);
                paths[kind] += &format!("M{at} {top}h{wide}v{high}h-{wide}z");
            }
        }
        paths
    }

    /// What is drawn of a lane, in shares of the axis.
    fn blocks(&self, row: &Lane, x: &Span, columns: usize) -> Vec<Block> {
        let mut cells = vec![Cell::default(); columns];
        for stretch in &row.stretches {
            let (from, to) = (x.place(stretch.from), x.place(stretch.to));
            // Also what is not a number is out of sight.
            let in_sight = from <= to && to >= 0.0 && from <= 1.0;
            if stretch.kind >= self.kinds.len() || !in_sight {
                continue;
            }
            let [from, to] = [from, to].map(|at| at.clamp(0.0, 1.0) * columns as f64);
            // Something so short is still something.
            let to = to.max(from + 1e-6);
            let last = (to.ceil() as usize).min(columns);
            for (n, cell) in cells.iter_mut().enumerate().take(last).skip(from as usize) {
                let (left, right) = (from.max(n as f64), to.min((n + 1) as f64));
                cell.add(left, right.max(left), stretch.kind, self.kinds.len());
            }
        }
        let blocks = cells.iter().filter_map(|cell| cell.block(&self.kinds));
        let mut merged: Vec<Block> = Vec::new();
        for block in blocks {
            match merged.last_mut() {
                Some(last) if (last.2, last.3) == (block.2, block.3) && block.0 - last.1 < 1e-9 => {
                    last.1 = block.1;
                }
                _ => merged.push(block),
            }
        }
        let share = |at: f64| at / columns as f64;
        let wide = merged.into_iter().map(|(from, to, kind, high)| {
            // Wide enough to be seen where it stands alone.
            (share(from), share(to.max(from + 1.0)).min(1.0), kind, high)
        });
        wide.collect()
    }
}

/// One column of a lane.
#[derive(Debug, Clone, Default)]
struct Cell {
    from: f64,
    to: f64,
    /// By kind; empty while nothing is there.
    spent: Vec<f64>,
}

impl Cell {
    fn add(&mut self, from: f64, to: f64, kind: usize, kinds: usize) {
        if self.spent.is_empty() {
            self.spent = vec![0.0; kinds];
            (self.from, self.to) = (from, to);
        }
        (self.from, self.to) = (self.from.min(from), self.to.max(to));
        self.spent[kind] += to - from;
    }

    fn block(&self, kinds: &[Kind]) -> Option<Block> {
        let most = |thin: bool| {
            let of = (0..self.spent.len())
                .filter(|kind| kinds[*kind].thin == thin && self.spent[*kind] > 0.0);
            of.max_by(|a, b| self.spent[*a].total_cmp(&self.spent[*b]))
        };
        let Some(kind) = most(false) else {
            return Some((self.from, self.to, most(true)?, 1.0));
        };
        let all: f64 = self.spent.iter().sum();
        let thin: f64 = (0..kinds.len())
            .filter(|kind| kinds[*kind].thin)
            .map(|kind| self.spent[kind])
            .sum();
        // However short a thin one was, it is not hidden.
        let level = (LEVELS * (1.0 - thin / all)).round();
        let level = if thin > 1e-9 * all {
            level.min(LEVELS - 1.0)
        } else {
            LEVELS
        };
        Some((self.from, self.to, kind, level.max(1.0) / LEVELS))
    }
}

#[cfg(test)]
#[path = "lanes/tests.rs"]
mod tests;
