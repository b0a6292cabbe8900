// SPDX-License-Identifier: Apache-2.0
//! What is claimed of the ways, held against the figures of a run.

use crate::shared_node::reaction::Reaction;
use crate::shared_node::rounds::Round;
use crate::shared_node::table::{of, reaction};
use crate::shared_node::way::Way;
use crate::variant::Variant;
use crate::verdict::Verdict;

/// With the governor this many times fewer requests are shed.
const TIMES: u64 = 5;
/// One request more of so many is chance: Poisson arrivals at a level that moves by whole ranks.
const CHANCE: u64 = 200;
/// Two ticks of the governor.
const TICKS_MS: f64 = 100.0;
/// Of the time of too much load: a tick or two of each part.
const SHARE: f64 = 0.02;

/// One for each claim whose two ways were run, over all rounds.
#[must_use]
pub fn verdicts(rounds: &[Round]) -> Vec<Verdict> {
    let shed = |way| of(rounds, way).map(|figures| figures.all().shed);
    let claims = [
        (Way::GovernorMesh, Way::Static),
        (Way::GovernorMesh, Way::Shared),
        (Way::Governor, Way::Static),
    ];
    let verdict = |(fewer, more): (Way, Way)| Some(held(fewer, shed(fewer)?, more, shed(more)?));
    let mut verdicts: Vec<Verdict> = claims.into_iter().filter_map(verdict).collect();
    verdicts.extend(told(rounds).into_iter().flatten());
    verdicts
}

fn held(fewer: Way, few: u64, more: Way, many: u64) -> Verdict {
    let holds = many > 0 && TIMES * few <= many;
    let (fewer, more) = (fewer.name(), more.name());
    Verdict {
        claim: format!(
            "{fewer} sheds {TIMES} times fewer requests than {more}: {few} against {many}"
        ),
        holds,
        asserted: true,
    }
}

/// What the mesh's row does to a governor that sees the use of CPU time as well.
fn told(rounds: &[Round]) -> Option<[Verdict; 3]> {
    let ways = [Way::GovernorMesh, Way::Governor];
    let [told, untold] = ways.map(|way| Some((of(rounds, way)?.all(), reaction(rounds, way)?)));
    let ((told, soon), (untold, late)) = (told?, untold?);
    Some([
        no_more(told.shed, untold.shed, told.sent),
        no_later(&soon, &late),
        no_shorter(&soon, &late),
    ])
}

fn no_more(told: u64, untold: u64, sent: u64) -> Verdict {
    Verdict {
        claim: format!(
            "told by the mesh a governor lets no more be shed, but for one of {CHANCE}: {told} against {untold} of {sent}"
        ),
        holds: told <= untold + sent / CHANCE,
        asserted: true,
    }
}

fn no_later(told: &Reaction, untold: &Reaction) -> Verdict {
    let (told, untold) = (told.after_ms(), untold.after_ms());
    Verdict {
        claim: format!(
            "told by the mesh it gives the second core no later, but for {TICKS_MS} ms: after {told:.0} ms against {untold:.0} ms"
        ),
        holds: told <= untold + TICKS_MS,
        asserted: true,
    }
}

fn no_shorter(told: &Reaction, untold: &Reaction) -> Verdict {
    let (told, untold) = (told.share(), untold.share());
    Verdict {
        claim: format!(
            "told by the mesh it leaves both cores to the service for no less of the overload: {:.0} % against {:.0} %",
            100.0 * told,
            100.0 * untold
        ),
        holds: told + SHARE >= untold,
        asserted: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_fewer_than_something_and_not_than_nothing() {
        for (few, many, holds) in [(0, 1, true), (2, 10, true), (3, 10, false), (0, 0, false)] {
            let verdict = held(Way::GovernorMesh, few, Way::Static, many);
            assert_eq!(verdict.holds, holds, "{}", verdict.claim);
        }
    }

    #[test]
    fn a_signal_that_has_more_requests_shed_than_none_fails_the_run() {
        // The second is what was measured once.
        for (told, untold, holds) in [(0, 0, true), (22, 0, false), (4, 0, true), (5, 10, true)] {
            let verdict = no_more(told, untold, 942);
            assert_eq!(verdict.holds, holds, "{}", verdict.claim);
            assert!(verdict.asserted);
        }
    }

    #[test]
    fn a_signal_that_brings_the_second_core_later_or_takes_it_away_fails_the_run() {
        let of = |after_s: f64, with_both| Reaction {
            second_core_after_s: vec![after_s],
            looks: 100,
            with_both,
        };
        for (told, untold, later, shorter) in [
            (of(0.1, 90), of(0.1, 80), true, true),
            (of(0.3, 90), of(0.1, 80), false, true),
            (of(0.1, 70), of(0.1, 80), true, false),
        ] {
            assert_eq!(no_later(&told, &untold).holds, later);
            assert_eq!(no_shorter(&told, &untold).holds, shorter);
        }
    }
}
