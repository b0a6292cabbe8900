// SPDX-License-Identifier: Apache-2.0
//! What is claimed of the ways, held against the figures of a run. Orders only: values differ from machine to
//! machine, and p95 on one machine a hundredfold.

use crate::figures::{Figures, of};
use crate::rounds::Round;
use crate::way::Way;

/// A claim, and whether it holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Verdict {
    /// With the figures.
    pub line: String,
    /// Whether it does.
    pub holds: bool,
}

/// A figure by which ways are put in order.
#[derive(Clone, Copy)]
enum Measure {
    Violations,
    Batch,
}

/// The first has less than the second, or where `or_same` not more.
struct Claim {
    less: Way,
    more: Way,
    measure: Measure,
    or_same: bool,
}

const CLAIMS: [Claim; 7] = [
    Claim {
        less: Way::AllToMemcached,
        more: Way::NoGovernor,
        measure: Measure::Violations,
        or_same: false,
    },
    Claim {
        less: Way::Blocks,
        more: Way::NoGovernor,
        measure: Measure::Violations,
        or_same: false,
    },
    Claim {
        less: Way::LatencySlack,
        more: Way::NoGovernor,
        measure: Measure::Violations,
        or_same: false,
    },
    Claim {
        less: Way::LatencySlack,
        more: Way::Blocks,
        measure: Measure::Violations,
        or_same: true,
    },
    Claim {
        less: Way::NoGovernor,
        more: Way::AllToMemcached,
        measure: Measure::Batch,
        or_same: false,
    },
    Claim {
        less: Way::Blocks,
        more: Way::AllToMemcached,
        measure: Measure::Batch,
        or_same: false,
    },
    Claim {
        less: Way::LatencySlack,
        more: Way::AllToMemcached,
        measure: Measure::Batch,
        or_same: false,
    },
];

/// One for each claim whose two ways were run, over all rounds.
#[must_use]
pub fn verdicts(rounds: &[Round]) -> Vec<Verdict> {
    let verdict = |claim: &Claim| {
        let less = of(rounds, claim.less, None)?;
        let more = of(rounds, claim.more, None)?;
        Some(claim.held_against(&less, &more))
    };
    CLAIMS.iter().filter_map(verdict).collect()
}

impl Claim {
    fn held_against(&self, less: &Figures, more: &Figures) -> Verdict {
        let value = |figures: &Figures| match self.measure {
            Measure::Violations => figures.all().share(),
            Measure::Batch => figures.batch_s,
        };
        let (a, b) = (value(less), value(more));
        let holds = a < b || self.or_same && a <= b;
        let word = if holds { "holds" } else { "DOES NOT HOLD" };
        let (ours, theirs) = (self.less.name(), self.more.name());
        let line = match (self.measure, self.or_same) {
            (Measure::Violations, false) => format!(
                "{word}: {ours} violates less than {theirs}: {:.1} % against {:.1} %",
                100.0 * a,
                100.0 * b
            ),
            (Measure::Violations, true) => format!(
                "{word}: {ours} violates no more than {theirs}: {:.1} % against {:.1} %",
                100.0 * a,
                100.0 * b
            ),
            (Measure::Batch, _) => format!(
                "{word}: {ours} is done with the batch before {theirs}: {a:.1} s against {b:.1} s"
            ),
        };
        Verdict { line, holds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::round;

    #[test]
    fn claims_are_held_against_the_figures_and_only_where_both_ways_were_run() {
        let rounds = [
            round(Way::NoGovernor, 3.0, [2, 8], 40.0),
            round(Way::AllToMemcached, 3.0, [0, 0], 80.0),
            round(Way::Blocks, 3.0, [0, 2], 90.0),
        ];
        let verdicts = verdicts(&rounds);
        let held: Vec<bool> = verdicts.iter().map(|verdict| verdict.holds).collect();
        assert_eq!(held, [true, true, true, false], "{verdicts:?}");
        assert_eq!(
            verdicts[1].line,
            "holds: blocks violates less than no-governor: 10.0 % against 50.0 %"
        );
        assert_eq!(
            verdicts[3].line,
            "DOES NOT HOLD: blocks is done with the batch before all-to-memcached: 90.0 s against 80.0 s"
        );
    }

    #[test]
    fn as_many_are_no_more_but_not_less() {
        let rounds = [
            round(Way::NoGovernor, 3.0, [1, 1], 40.0),
            round(Way::Blocks, 3.0, [1, 1], 90.0),
            round(Way::LatencySlack, 3.0, [1, 1], 90.0),
        ];
        let held: Vec<bool> = verdicts(&rounds)
            .iter()
            .map(|verdict| verdict.holds)
            .collect();
        assert_eq!(held, [false, false, true]);
    }
}
