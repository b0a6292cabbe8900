// SPDX-License-Identifier: Apache-2.0
//! Reports as one self-contained HTML file: text, tables, bars and plots.
//!
//! ```text
//! values ─> cdf ──┐
//! series ─> thin ─┴─> Plot ─┐
//!                     Bars ─┼─> Report ─> one .html file
//!                    Table ─┘
//! ```
//! The file loads nothing, runs no script, follows the reader's light or dark theme and fits a
//! phone. Text is never part of a drawing: it stays at its size while the drawing stretches.

mod axis;
mod bars;
mod markup;
mod page;
mod plot;
mod points;
mod table;

pub use axis::{Axis, Scale};
pub use bars::{BarRow, Bars};
pub use page::{Report, WriteError};
pub use plot::{Plot, Series, Style, VerticalMark};
pub use points::{cdf, thin};
pub use table::Table;
