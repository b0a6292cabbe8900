// SPDX-License-Identifier: Apache-2.0
//! Prometheus' text format and OpenMetrics, line by line.
//!
//! ```text
//!  page ── lines ──> Line { name, rest } ── series ──> Series { name, labels } ── value ──> f64
//!                    cheap: every line              only of the metrics that are wanted
//! ```
//!
//! The format is that of Prometheus' documentation, "Exposition formats", and of OpenMetrics 1.0.0, section
//! "Text format": blanks may stand between all parts; a timestamp and an exemplar may follow the value, and are
//! left out. Names in quotes are not known: such a line has an empty name.

mod line;
mod series;
mod sum;

pub use line::{Line, lines};
pub use series::{Fault, Reason, Series};
pub use sum::sum;
