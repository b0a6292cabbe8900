// SPDX-License-Identifier: Apache-2.0
//! Thresholds held against figures. What k6 cannot judge is judged here, too: a stage beside another one.

use serde::{Deserialize, Serialize};

use crate::demo::table::milliseconds;
use crate::load::figures::Figures;
use crate::load::kept::share;
use crate::load::plan::{Figure, Plan, Threshold};

/// A threshold and what came of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
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
        let (met, wanted) = match (&self.at_most_times, self.at_most, self.at_least) {
            (Some(times), _, _) => {
                let other = figures.figure(self.figure, &times.stage, priority);
                let bound = times.factor * other;
                let ratio = value / other;
                let wanted = format!(
                    "{ratio:.2} times that of {}, {}; at most {} times",
                    times.stage,
                    self.shown(other),
                    times.factor
                );
                (value <= bound, wanted)
            }
            (_, Some(most), _) => (value <= most, format!("at most {}", self.shown(most))),
            (_, _, least) => {
                let least = least.unwrap_or(f64::NAN);
                (value >= least, format!("at least {}", self.shown(least)))
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
