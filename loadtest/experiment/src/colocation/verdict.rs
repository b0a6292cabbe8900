// SPDX-License-Identifier: Apache-2.0
//! What is claimed of the ways, held against the figures of a run. Orders only: values differ from machine to
//! machine, and p95 on one machine a hundredfold.

use crate::colocation::figures::{Figures, of};
use crate::colocation::rounds::Round;
use crate::colocation::way::Way;
use crate::variant::Variant;
use crate::verdict::Verdict;

/// A figure by which ways are put in order.
#[derive(Clone, Copy)]
enum Measure {
    Violations,
    Batch,
}

/// The first has less than the second.
struct Claim {
    less: Way,
    more: Way,
    measure: Measure,
    /// Else it is only told.
    asserted: bool,
}

const CLAIMS: [Claim; 8] = [
    asserted(Way::AllToMemcached, Measure::Violations, Way::NoGovernor),
    asserted(Way::Blocks, Measure::Violations, Way::NoGovernor),
    asserted(Way::LatencySlack, Measure::Violations, Way::NoGovernor),
    Claim {
        // With two cores both have the same two choices, and none is left that latency could ask for.
        asserted: false,
        ..asserted(Way::LatencySlack, Measure::Violations, Way::Blocks)
    },
    Claim {
        // Document 004's scheduler is Python; what a governor in Rust takes of a core may be too little to see.
        asserted: false,
        ..asserted(Way::BlocksApart, Measure::Violations, Way::BlocksBeside)
    },
    asserted(Way::NoGovernor, Measure::Batch, Way::AllToMemcached),
    asserted(Way::Blocks, Measure::Batch, Way::AllToMemcached),
    asserted(Way::LatencySlack, Measure::Batch, Way::AllToMemcached),
];

const fn asserted(less: Way, measure: Measure, more: Way) -> Claim {
    Claim {
        less,
        more,
        measure,
        asserted: true,
    }
}

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
        let (ours, theirs) = (self.less.name(), self.more.name());
        let claim = match self.measure {
            Measure::Violations => format!(
                "{ours} violates less than {theirs}: {:.1} % against {:.1} %",
                100.0 * a,
                100.0 * b
            ),
            Measure::Batch => {
                format!("{ours} is done with the batch before {theirs}: {a:.1} s against {b:.1} s")
            }
        };
        Verdict {
            claim,
            holds: a < b,
            // Where neither violates there is no order to hold.
            asserted: self.asserted && !(a == 0.0 && b == 0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colocation::figures::tests::round;

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
            verdicts[1].to_string(),
            "holds: blocks violates less than no-governor: 10.0 % against 50.0 %"
        );
        assert_eq!(
            verdicts[3].to_string(),
            "DOES NOT HOLD: blocks is done with the batch before all-to-memcached: 90.0 s against 80.0 s"
        );
    }

    #[test]
    fn as_many_are_not_less_and_some_orders_are_only_told() {
        let rounds = [
            round(Way::NoGovernor, 3.0, [1, 1], 40.0),
            round(Way::Blocks, 3.0, [1, 1], 90.0),
            round(Way::LatencySlack, 3.0, [1, 1], 90.0),
        ];
        let verdicts = verdicts(&rounds);
        assert!(verdicts.iter().all(|verdict| !verdict.holds));
        let asserted: Vec<bool> = verdicts.iter().map(|verdict| verdict.asserted).collect();
        assert_eq!(asserted, [true, true, false]);
        assert!(
            verdicts[2]
                .to_string()
                .starts_with("does not hold, and is not asserted")
        );
    }
}
