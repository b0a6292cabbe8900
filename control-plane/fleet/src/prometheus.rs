// SPDX-License-Identifier: Apache-2.0
//! Figures of all hosts of a cluster, from a round of queries to Prometheus.
//!
//! ```text
//!  one answer a figure ── gather (label → host) ──> figures by host, complaints
//! ```

mod figure;
mod names;
mod round;
mod series;

pub use figure::Figure;
pub use names::{Named, Names};
pub use round::{Answers, Load, Round, Told, gather};
