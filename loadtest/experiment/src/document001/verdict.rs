// SPDX-License-Identifier: Apache-2.0
//! What document 001 concludes, held against the figures of a run.

use weir_sim::document001::Experiment as Run;

use super::Told;
use crate::verdict::Verdict;

/// The better and the worse by the mean wait of priority low (section 10.3). Orders that its text calls near are not
/// here, and neither is a factor.
const ORDERS: [(Run, Run); 6] = [
    (Run::BreakerBaseline, Run::BaselineBaseline),
    (Run::DagorBaseline, Run::BaselineBaseline),
    (Run::BaselineDynamic, Run::BaselineBaseline),
    (Run::BreakerDynamic, Run::BaselineBaseline),
    (Run::DagorDynamic, Run::BaselineBaseline),
    (Run::Estimate, Run::BaselineBaseline),
];
/// What Weir would like, and the document says nothing of.
const WANTED: (Run, Run) = (Run::Estimate, Run::BreakerDynamic);

/// A claim for each two runs that were played. The document's are of servers that are overloaded under
/// [`Run::BaselineBaseline`], as they wait longer there than they work: where they do not, its orders are told and not
/// asserted.
pub(super) fn claims(rounds: &[Told]) -> Vec<Verdict> {
    let rows = |run| {
        let told = rounds.iter().find(|told| told.measured.experiment == run)?;
        Some(told.measured.tallies.first()?.rows())
    };
    let wait = |run| Some(rows(run)?.low_wait[0]);
    let is_overload = rows(Run::BaselineBaseline)
        .is_some_and(|rows| 2.0 * rows.low_wait[0] > rows.low_duration[0]);
    let claim = |(better, worse): (Run, Run), asserted| {
        let (less, more) = (wait(better)?, wait(worse)?);
        Some(Verdict {
            claim: format!(
                "mean low wait of {} below that of {}: {less:.3} s and {more:.3} s",
                better.name(),
                worse.name()
            ),
            holds: less < more,
            asserted,
        })
    };
    let orders = ORDERS
        .into_iter()
        .filter_map(|order| claim(order, is_overload));
    orders.chain(claim(WANTED, false)).collect()
}

#[cfg(test)]
mod tests {
    use weir_sim::document001::report::Outcome;

    use super::*;
    use crate::document001::outcome;
    use crate::document001::plan::Plan;
    use crate::replay::Record;

    fn told(run: Run, wait: f64) -> Told {
        let records = [Record::good("low", "a", wait, true)];
        let tally = outcome::tally(&Plan::emulated(0, 1), &[], &records, &[]);
        let measured = Outcome {
            experiment: run,
            tallies: vec![tally],
        };
        Told {
            name: run.name(),
            busy: None,
            lag: 0.0,
            measured,
            simulated: None,
        }
    }

    #[test]
    fn an_order_the_other_way_round_fails_and_runs_that_were_not_played_claim_nothing() {
        let rounds = [
            told(Run::BaselineBaseline, 13.0),
            told(Run::BreakerDynamic, 14.0),
            told(Run::Estimate, 11.0),
        ];
        let claims = claims(&rounds);
        let told: Vec<_> = claims
            .iter()
            .map(|claim| (claim.holds, claim.asserted))
            .collect();
        let order = [(false, true), (true, true), (true, false)];
        assert_eq!(told, order, "{claims:?}");
        assert!(claims[0].fails());
    }

    #[test]
    fn where_nobody_is_overloaded_orders_are_told_and_fail_nothing() {
        let rounds = [
            told(Run::BaselineBaseline, 3.0),
            told(Run::BreakerDynamic, 4.0),
        ];
        let claims = claims(&rounds);
        let told: Vec<_> = claims.iter().map(|it| (it.holds, it.asserted)).collect();
        assert_eq!(told, [(false, false)], "{claims:?}");
    }
}
