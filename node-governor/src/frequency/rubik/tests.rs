// SPDX-License-Identifier: Apache-2.0

use proptest::prelude::*;

use super::*;
use crate::frequency::Policy;
use crate::frequency::tests::{NOW, cold, hot, node};
use crate::planner::Planner;
use crate::sensed::{Core, Finished, Nanos};

const MS: u64 = 1_000_000;

/// A core whose calls have taken these milliseconds at 2.6 GHz so far.
struct Machine {
    planner: Planner,
    plan: Plan,
}

impl Machine {
    fn new(took: &[u64]) -> Self {
        let policy = Policy::Rubik(Rubik::default());
        let mut machine = Self {
            planner: Planner::new(node(1), policy, Duration::from_secs(1)),
            plan: Plan::default(),
        };
        // Too little is known: the core is at its highest from the first call on.
        machine.look(hot(&[(0, 0)]), &[], Vec::new());
        let ended = |took: &u64| Finished {
            function: 0,
            core: 0,
            took: Duration::from_millis(*took),
            at: NOW,
        };
        let finished = took.iter().map(ended).collect();
        machine.look(hot(&[(0, 0)]), &[], finished);
        machine
    }

    fn look(&mut self, core: Core, waited: &[u64], finished: Vec<Finished>) -> Khz {
        let since = |waited: &u64| Nanos(NOW.0 - waited * MS);
        let sensed = Sensed {
            now: NOW,
            cores: vec![core],
            finished,
            waiting: waited.iter().map(since).collect(),
            ..Sensed::default()
        };
        self.planner.plan(&sensed, &mut self.plan);
        self.plan.cores[0].frequency
    }
}

#[test]
fn a_call_gets_what_its_work_needs_of_the_bound_and_no_more() {
    // 200 ms at 2.6 GHz, which is counted as 205, in half of the target's second: 1.07 GHz.
    let mut machine = Machine::new(&[200; 100]);
    let khz = machine.look(hot(&[(0, 0)]), &[], Vec::new());
    assert_eq!(khz, Khz(1_200_000));
    assert_eq!(machine.look(cold(), &[], Vec::new()), Khz(1_000_000));
}

#[test]
fn who_waits_makes_the_call_before_it_faster() {
    let mut machine = Machine::new(&[120; 100]);
    let alone = machine.look(hot(&[(0, 0)]), &[], Vec::new());
    let one = machine.look(hot(&[(0, 0)]), &[0], Vec::new());
    let longer = machine.look(hot(&[(0, 0)]), &[200], Vec::new());
    let two = machine.look(hot(&[(0, 0)]), &[200, 200], Vec::new());
    assert!(
        alone < one && one < longer && longer <= two,
        "{alone} {one} {longer} {two}"
    );
}

#[test]
fn calls_that_turn_out_long_get_faster() {
    // All but one of 25 calls are short; who is still there after them is one of the long ones.
    let mut works = vec![20; 960];
    works.extend([300; 40]);
    let mut machine = Machine::new(&works);
    let [new, old] = [0, 100].map(|took| machine.look(hot(&[(0, took)]), &[], Vec::new()));
    assert!(new < old, "{new} {old}");
}

proptest! {
    #[test]
    fn at_the_frequency_that_is_needed_the_work_is_done_in_time(
        work in 0.001..10.0f64,
        seconds in -1.0..10.0f64,
        memory in 0.0..0.9f64,
    ) {
        let speed = Speed { fastest: Khz(2_600_000), memory };
        let khz = speed.needed(work, seconds);
        let takes = work / speed.at(khz);
        prop_assert!(khz == speed.fastest || takes <= seconds * (1.0 + 1e-9));
        // And a lower one would not do.
        if khz < speed.fastest && khz.0 > 1 {
            prop_assert!(work / speed.at(Khz(khz.0 - 1)) >= seconds * (1.0 - 1e-3));
        }
    }

    #[test]
    fn what_is_left_is_that_of_the_calls_that_took_longer(
        works in proptest::collection::vec(0.001..5.0f64, 60..300),
        done in 0.0..5.0f64,
    ) {
        let mut learned = Works::default();
        works.iter().for_each(|work| learned.add(*work));
        let left = learned.left(done, 0.9).unwrap();
        // As far as buckets tell: their ends are 19 % apart.
        let widest = 1.19;
        let mut longer: Vec<f64> = works.iter().copied().filter(|work| *work * widest >= done).collect();
        longer.sort_unstable_by(f64::total_cmp);
        let most = longer.last().map_or(0.0, |work| (work * widest - done).max(0.0));
        prop_assert!(left.quantile >= 0.0 && left.quantile <= most.max(done * 0.19 + 1e-3), "{left:?}");
        let whole = learned.left(0.0, 0.9).unwrap();
        let sum = left.and(&whole, 0.9);
        prop_assert!(sum.quantile.is_finite());
    }
}
