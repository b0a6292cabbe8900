// SPDX-License-Identifier: Apache-2.0
//! What is claimed of the plans, held against a run. What governors promise is asserted; what depends on the machine
//! is told.

use crate::static_plan::figures::{of, ran_once, waits};
use crate::static_plan::rounds::Round;
use crate::static_plan::way::Way;
use crate::variant::Variant;
use crate::verdict::Verdict;

/// One for each claim; of two ways where both were run.
#[must_use]
pub fn verdicts(rounds: &[Round]) -> Vec<Verdict> {
    let mut verdicts = vec![once(rounds), in_order(rounds)];
    verdicts.extend(sooner(rounds));
    verdicts.extend(apart(rounds));
    verdicts
}

fn once(rounds: &[Round]) -> Verdict {
    let jobs = |round: &Round| {
        let steps = round.way.steps();
        steps
            .iter()
            .map(|step| ran_once(round, step))
            .collect::<Vec<_>>()
    };
    let all: Vec<bool> = rounds.iter().flat_map(jobs).collect();
    let good = all.iter().filter(|once| **once).count();
    asserted(
        format!(
            "every job ran once, and on its node: {good} of {}",
            all.len()
        ),
        good == all.len(),
    )
}

fn in_order(rounds: &[Round]) -> Verdict {
    let all: Vec<_> = rounds.iter().flat_map(waits).collect();
    let kept = all.iter().filter(|wait| wait.kept).count();
    let across = all.iter().filter(|wait| wait.across).count();
    asserted(
        format!(
            "no job began before the end of those that it waits for: {kept} of {} waits, {across} of them for a job \
             of another node",
            all.len()
        ),
        kept == all.len(),
    )
}

/// Document 004: 325 s against 423 s, with jobs of several threads on nodes of several cores.
fn sooner(rounds: &[Round]) -> Option<Verdict> {
    let (written, at_once) = (of(rounds, Way::Document)?, of(rounds, Way::AtOnce)?);
    let (a, b) = (written.makespan_s.mean, at_once.makespan_s.mean);
    Some(told(
        format!(
            "jobs in the written order are done before jobs at once: {a:.1} s against {b:.1} s"
        ),
        a < b,
    ))
}

fn apart(rounds: &[Round]) -> Option<Verdict> {
    let (alone, shared) = (of(rounds, Way::Apart)?, of(rounds, Way::Across)?);
    let (a, b) = (alone.violations.share(), shared.violations.share());
    Some(told(
        format!(
            "memcached violates the SLO less on a core of its own ({}) than beside jobs ({}): {:.1} % against {:.1} %",
            Way::Apart.name(),
            Way::Across.name(),
            100.0 * a,
            100.0 * b
        ),
        a < b,
    ))
}

fn asserted(claim: String, holds: bool) -> Verdict {
    Verdict {
        claim,
        holds,
        asserted: true,
    }
}

fn told(claim: String, holds: bool) -> Verdict {
    Verdict {
        asserted: false,
        ..asserted(claim, holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_plan::figures::tests::round;

    #[test]
    fn a_run_fails_by_a_job_that_ran_twice_or_early_and_by_nothing_else() {
        let mut rounds = [Way::Document, Way::Across, Way::Apart, Way::AtOnce].map(round);
        let good = verdicts(&rounds);
        assert!(good.iter().all(|verdict| !verdict.fails()), "{good:?}");
        assert_eq!(good.len(), 4);
        assert!(good[0].to_string().ends_with("24 of 24"), "{}", good[0]);
        assert!(
            good[1].claim.contains("16 of 16 waits, 4 of them"),
            "{}",
            good[1]
        );

        rounds[1].courses[0].began_ms.push(2_000);
        rounds[2].courses[5].began_ms = vec![0];
        let bad = verdicts(&rounds);
        assert!(
            bad[0].fails() && bad[0].claim.ends_with("23 of 24"),
            "{}",
            bad[0]
        );
        assert!(bad[1].fails(), "{}", bad[1]);
        assert_eq!(verdicts(&rounds[..1]).len(), 2);
    }
}
