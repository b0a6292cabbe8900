// SPDX-License-Identifier: Apache-2.0
//! What is claimed of the ways, held against the figures of a run.

use crate::shared_node::rounds::Round;
use crate::shared_node::table::of;
use crate::shared_node::way::Way;
use crate::variant::Variant;
use crate::verdict::Verdict;

/// With the governor this many times fewer requests are shed.
const TIMES: u64 = 5;

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
    claims.into_iter().filter_map(verdict).collect()
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
}
