// SPDX-License-Identifier: Apache-2.0
//! Reports as one self-contained HTML file: text, tables, bars and plots.
//!
//! ```text
//! values ─> cdf ──┐
//! series ─> thin ─┴─> Plot ─┬─> Panels ─┐
//! Bars, Heat, Lanes, Strips ┴─> Stack ─┼─> Report ─> one .html file
//!                                Table ─┘
//! ```
//! The file loads nothing, runs no script, follows the reader's light or dark theme and fits a
//! phone. Text is never part of a drawing: it stays at its size while the drawing stretches.

mod axis;
mod bars;
mod heat;
mod lanes;
mod markup;
mod page;
mod panels;
mod plot;
mod points;
mod shade;
mod stack;
mod statistics;
mod strips;
mod table;

pub use axis::{Axis, Scale};
pub use bars::{BarRow, Bars};
pub use heat::{Heat, HeatRow};
pub use lanes::{Kind, Lane, Lanes, Stretch};
pub use page::{Report, WriteError};
pub use panels::{Figure, Panels};
pub use plot::{Plot, Series, Style, VerticalMark};
pub use points::{cdf, thin};
pub use stack::Stack;
pub use statistics::{Spread, digits, median, quantile, quantile_of_sorted};
pub use strips::{Strip, Strips};
pub use table::Table;
