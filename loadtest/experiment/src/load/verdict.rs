// SPDX-License-Identifier: Apache-2.0
//! Thresholds held against figures. Only here is a stage held against another: k6 cannot.

use serde::Serialize;

use crate::demo::table::milliseconds;
use crate::load::figures::Figures;
use crate::load::kept::share;
use crate::load::plan::{Bound, Figure, Plan, Threshold};

/// A threshold and its outcome.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Verdict {
    pub(super) met: bool,
    pub(super) line: String,
}

pub(super) fn verdicts(plan: &Plan, figures: &Figures) -> Vec<Verdict> {
    let judge = |threshold: &Threshold| threshold.judge(figures);
    plan.thresholds.iter().map(judge).collect()
}

impl Threshold {
    fn judge(&self, figures: &Figures) -> Verdict {
        let priority = self.priority.as_deref();
        let value = figures.figure(self.figure, &self.stage, priority);
        let (met, wanted) = match &self.bound {
            Bound::Least(least) => (value >= *least, format!("at least {}", self.shown(*least))),
            Bound::Most(most) => (value <= *most, format!("at most {}", self.shown(*most))),
            Bound::Times { factor, stage } => {
                let other = figures.figure(self.figure, stage, priority);
                let ratio = value / other;
                let wanted = format!(
                    "{ratio:.2} times that of {stage}, {}; at most {factor} times",
                    self.shown(other),
                );
                (value <= factor * other, wanted)
            }
        };
        let whose = priority.map_or_else(String::new, |priority| format!(", {priority}"));
        let line = format!(
            "{}: {}{whose}: {} {} ({wanted}): {}",
            if met { "met" } else { "MISSED" },
            self.stage,
            self.figure.name(),
            self.shown(value),
            self.objective,
        );
        Verdict { met, line }
    }

    fn shown(&self, value: f64) -> String {
        match self.figure {
            _ if value.is_nan() => "unknown".to_owned(),
            Figure::Success => share(value),
            Figure::Goodput => format!("{value:.3} of the capacity"),
            Figure::P50Ms | Figure::P95Ms | Figure::P99Ms => {
                format!("{} ms", milliseconds(value))
            }
        }
    }
}

impl Figure {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::P50Ms => "p50",
            Self::P95Ms => "p95",
            Self::P99Ms => "p99",
            Self::Goodput => "goodput",
        }
    }
}
