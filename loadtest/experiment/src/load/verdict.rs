// SPDX-License-Identifier: Apache-2.0
//! Thresholds held against figures. Only here is a stage held against another: k6 cannot.

use weir_replay::scenario::{Bound, Figure, Plan, Threshold};

use crate::demo::table::milliseconds;
use crate::load::figures::Figures;
use crate::load::tried::share;
use crate::verdict::Verdict;

/// One for each threshold.
pub(super) fn verdicts(plan: &Plan, figures: &Figures, asserted: bool) -> Vec<Verdict> {
    let verdict = |threshold: &Threshold| {
        let (holds, claim) = judge(threshold, figures);
        Verdict {
            claim,
            holds,
            asserted,
        }
    };
    plan.thresholds.iter().map(verdict).collect()
}

/// As tables say it.
pub(super) fn line(verdict: &Verdict) -> String {
    let word = if verdict.holds { "met" } else { "MISSED" };
    format!("{word}: {}", verdict.claim)
}

/// Whether it is met, and the figures.
fn judge(threshold: &Threshold, figures: &Figures) -> (bool, String) {
    let Threshold {
        stage,
        priority,
        figure,
        bound,
        objective,
    } = threshold;
    let priority = priority.as_deref();
    let of = |stage: &str| figures.figure(*figure, stage, priority);
    let shown = |value| shown(*figure, value);
    let value = of(stage);
    let (met, wanted) = match bound {
        Bound::Least(least) => (value >= *least, format!("at least {}", shown(*least))),
        Bound::Most(most) => (value <= *most, format!("at most {}", shown(*most))),
        Bound::Times { factor, stage } => {
            let other = of(stage);
            let (ratio, other_shown) = (value / other, shown(other));
            (
                value <= factor * other,
                format!("{ratio:.2} times that of {stage}, {other_shown}; at most {factor} times"),
            )
        }
    };
    let whose = priority.map_or_else(String::new, |priority| format!(", {priority}"));
    let claim = format!(
        "{stage}{whose}: {} {} ({wanted}): {objective}",
        name(*figure),
        shown(value)
    );
    (met, claim)
}

fn shown(figure: Figure, value: f64) -> String {
    match figure {
        _ if value.is_nan() => "unknown".to_owned(),
        Figure::Success => share(value),
        Figure::Goodput => format!("{value:.3} of the capacity"),
        Figure::P50Ms | Figure::P95Ms | Figure::P99Ms => format!("{} ms", milliseconds(value)),
    }
}

fn name(figure: Figure) -> &'static str {
    match figure {
        Figure::Success => "success",
        Figure::P50Ms => "p50",
        Figure::P95Ms => "p95",
        Figure::P99Ms => "p99",
        Figure::Goodput => "goodput",
    }
}
