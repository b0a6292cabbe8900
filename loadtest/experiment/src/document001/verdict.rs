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
    (Run::Estimate, Run::BreakerDynamic),
];

/// A claim for each two runs that were played.
pub(super) fn claims(rounds: &[Told]) -> Vec<Verdict> {
    let wait = |run| {
        let told = rounds.iter().find(|told| told.measured.experiment == run)?;
        Some(told.measured.tallies.first()?.rows().low_wait[0])
    };
    let claim = |(better, worse): (Run, Run)| {
        let (less, more) = (wait(better)?, wait(worse)?);
        Some(Verdict {
            claim: format!(
                "mean low wait of {} below that of {}: {less:.3} s and {more:.3} s",
                better.name(),
                worse.name()
            ),
            holds: less < more,
            asserted: true,
        })
    };
    ORDERS.into_iter().filter_map(claim).collect()
}
